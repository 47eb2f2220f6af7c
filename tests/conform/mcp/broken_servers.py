"""Bad habits on standard streams."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from tests.conform.mcp.good_server import GoodServer, Refusal
from tests.conform.mcp.habits_of_servers import habit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tests.conform.mcp.good_server import Send

# The beginning


@habit("init.answer", among=())
class HasNoName(GoodServer):
    def info(self) -> Any:
        return {"version": "1"}


@habit("init.same-version")
class ChangesItsMind(GoodServer):
    def version(self, wanted: Any) -> Any:
        return "2025-06-18" if wanted == "2025-11-25" else "2025-11-25"


@habit("init.other-version")
class AgreesToEverything(GoodServer):
    def version(self, wanted: Any) -> Any:
        return wanted


@habit("init.announced")
class AnnouncesTooMuch(GoodServer):
    def do_prompts_list(self, params: dict[str, Any]) -> Any:
        raise Refusal(-32601)


@habit("init.not-announced")
class AnnouncesTooLittle(GoodServer):
    offered = ("tools",)

    def unknown_method(self, method: str) -> Any:
        return {}


@habit("ping.answer")
class Chatters(GoodServer):
    def do_ping(self, params: dict[str, Any]) -> Any:
        return {"pong": True}


# JSON-RPC


@habit("rpc.shape")
class ForgetsTheVersion(GoodServer):
    def result(self, id: Any, result: Any) -> Any:
        return {"id": id, "result": result}


@habit("rpc.once")
class AnswersTwice(GoodServer):
    def answer(self, message: Any, send: Send) -> None:
        super().answer(message, send)
        super().answer(message, send)


@habit("rpc.ids", among=())
class MakesNumbersOfIds(GoodServer):
    def result(self, id: Any, result: Any) -> Any:
        return super().result(int(id) if str(id).isdigit() else id, result)


@habit("rpc.unknown-method")
class KnowsEveryMethod(GoodServer):
    def unknown_method(self, method: str) -> Any:
        return {}


@habit("rpc.notification", "rpc.once")
class AnswersNotifications(GoodServer):
    def notification(self, message: Any, send: Send) -> None:
        super().notification(message, send)
        if "initialized" not in message["method"]:
            send(self.result(9000, {}))


@habit("rpc.params")
class ReadsNothing(GoodServer):
    def do_resources_read(self, params: dict[str, Any]) -> Any:
        return {"contents": []}


@habit("rpc.params-code")
class HasOneCode(GoodServer):
    def do_tools_call(self, params: dict[str, Any]) -> Any:
        try:
            return super().do_tools_call(params)
        except Refusal:
            raise Refusal(-32000) from None


@habit("rpc.parse-error")
class IsSilentAboutGarbage(GoodServer):
    def broken(self, code: int, id: Any) -> None:
        if code != -32700:
            super().broken(code, id)


@habit("rpc.invalid-request")
class IsSilentAboutRequests(GoodServer):
    def broken(self, code: int, id: Any) -> None:
        if code == -32700:
            super().broken(code, id)


@habit("rpc.parallel")
class LosesCount(GoodServer):
    seen = 0

    def do_ping(self, params: dict[str, Any]) -> Any:
        self.seen += 1
        return super().do_ping(params)

    def answer(self, message: Any, send: Send) -> None:
        if self.seen < 20:
            super().answer(message, send)


@habit("line.only")
class Talks(GoodServer):
    def do_initialize(self, params: dict[str, Any]) -> Any:
        self.out.write(b"Welcome!\n")
        return super().do_initialize(params)


@habit("line.one", among=())
class ReadsOneLineAtATime(GoodServer):
    def run(self) -> None:
        import threading

        self.out = sys.stdout.buffer
        self.lock = threading.Lock()
        while data := os.read(0, 65536):
            self.line(data)


# What it offers


@habit("tools.shape")
class HasNoSchemas(GoodServer):
    def tools(self) -> Any:
        return [{**each, "inputSchema": {**each["inputSchema"], "type": "array"}} for each in super().tools()]


@habit("tools.names")
class HasOneName(GoodServer):
    def tools(self) -> Any:
        return [*super().tools(), super().tools()[0]]


@habit("tools.names")
class HasOddNames(GoodServer):
    def tools(self) -> Any:
        return [*super().tools(), {"name": "my tool!", "inputSchema": {"type": "object"}}]


@habit("tools.cursor")
class IgnoresCursors(GoodServer):
    def page(self, params: dict[str, Any]) -> None:
        """Fine."""


@habit("tools.unknown")
class HasEveryTool(GoodServer):
    def unknown_tool(self) -> Any:
        return self.content("here, too")


@habit("tools.call")
class GivesText(GoodServer):
    def content(self, text: str) -> Any:
        return {"content": text, "structuredContent": {"text": text}}


@habit("tools.call")
class HasItsOwnContent(GoodServer):
    def content(self, text: str) -> Any:
        return {"content": [{"type": "words", "text": text}], "structuredContent": {"text": text}}


@habit("tools.structured")
class ForgetsTheStructure(GoodServer):
    def content(self, text: str) -> Any:
        return {"content": [{"type": "text", "text": text}]}


@habit("tools.structured")
class GivesLessThanItSays(GoodServer):
    def content(self, text: str) -> Any:
        return {"content": [{"type": "text", "text": text}], "structuredContent": {}}


@habit("tools.arguments")
class NeedsNothing(GoodServer):
    def lacks_arguments(self) -> Any:
        return self.content("never mind")


@habit("resources.shape")
class ResourcesHaveNoNames(GoodServer):
    def resources(self) -> Any:
        return [{"uri": "good://one"}]


@habit("resources.templates")
class TemplatesHaveNoUris(GoodServer):
    def do_resources_templates_list(self, params: dict[str, Any]) -> Any:
        return {"resourceTemplates": [{"name": "any"}]}


@habit("resources.read")
class ResourcesAreEmpty(GoodServer):
    def read(self, uri: str) -> Any:
        found = super().read(uri)
        return {"contents": [{"uri": each["uri"]} for each in found["contents"]]}


@habit("resources.unknown", "resources.code")
class HasEveryResource(GoodServer):
    def unknown_resource(self) -> Any:
        return {"contents": []}


@habit("resources.code")
class HasAnotherCode(GoodServer):
    def unknown_resource(self) -> Any:
        raise Refusal(-1)


@habit("prompts.shape")
class PromptsHaveNoNames(GoodServer):
    def prompts(self) -> Any:
        return [*super().prompts(), {"description": "nameless"}]


@habit("prompts.get")
class PromptsHaveNoRoles(GoodServer):
    def message(self) -> Any:
        return {"content": {"type": "text", "text": "Say hello"}}


@habit("prompts.unknown")
class HasEveryPrompt(GoodServer):
    def unknown_prompt(self) -> Any:
        return {"messages": []}


@habit("prompts.arguments")
class GreetsNobody(GoodServer):
    def lacks_who(self) -> Any:
        return {"messages": []}


@habit("complete.shape")
class CompletesTooMuch(GoodServer):
    def values(self) -> Any:
        return [str(number) for number in range(101)]


# What takes its time


@habit("progress.token")
class HasItsOwnToken(GoodServer):
    def token(self, given: Any) -> Any:
        return "mine"


@habit("progress.token")
class TellsEverybody(GoodServer):
    told = 0

    def do_tools_call(self, params: dict[str, Any]) -> Any:
        self.told += 1
        note = {"progressToken": "x", "progress": self.told}
        self.write({"jsonrpc": "2.0", "method": "notifications/progress", "params": note})
        return super().do_tools_call(params)


@habit("progress.grows")
class GoesBack(GoodServer):
    def steps(self) -> Any:
        return (2, 1)


@habit("cancel.unknown")
class StumblesOverCancelling(GoodServer):
    def cancel(self, id: Any) -> None:
        self.cancelled[id].set()


@habit("cancel.silent")
class AnswersWhatWasCancelled(GoodServer):
    def ignores_cancelling(self) -> bool:
        return True


@habit("cancel.meanwhile", "cancel.silent")
class DoesOneThingAtATime(GoodServer):
    def slow(self, message: Any, send: Send) -> None:
        time.sleep(1.5)
        send(self.result(message["id"], self.content("done")))


# Input that nobody should send


class Fragile(GoodServer):
    """Ends when it meets what it does not expect."""

    def line(self, line: bytes) -> None:
        if self.is_too_much(line):
            os._exit(1)
        super().line(line)

    def is_too_much(self, line: bytes) -> bool:
        raise NotImplementedError


@habit("bad.malformed")
class EndsAtBrokenJson(Fragile):
    def is_too_much(self, line: bytes) -> bool:
        return line.strip().endswith(b":")


@habit("bad.garbage")
class EndsAtGarbage(Fragile):
    def is_too_much(self, line: bytes) -> bool:
        return line.startswith(b"hello")


@habit("bad.not-object")
class EndsAtTexts(Fragile):
    def is_too_much(self, line: bytes) -> bool:
        return line.startswith(b'"')


@habit("bad.utf8")
class EndsAtBadUtf8(Fragile):
    def is_too_much(self, line: bytes) -> bool:
        return b"\xff" in line


@habit("bad.deep")
class EndsAtDeepJson(Fragile):
    def is_too_much(self, line: bytes) -> bool:
        return line.startswith(b"[[[")


@habit("bad.response")
class EndsAtAnswers(Fragile):
    def is_too_much(self, line: bytes) -> bool:
        return b'"id":991' in line


@habit("bad.members")
class EndsAtWrongMembers(Fragile):
    def is_too_much(self, line: bytes) -> bool:
        return b'"id":{}' in line


@habit("bad.types")
class EndsAtLists(Fragile):
    def is_too_much(self, line: bytes) -> bool:
        return b'"arguments":[' in line


@habit("bad.surrogate")
class EndsAtSurrogates(Fragile):
    def is_too_much(self, line: bytes) -> bool:
        return b"\\ud800" in line


@habit("bad.long")
class EndsAtLongLines(Fragile):
    def is_too_much(self, line: bytes) -> bool:
        return len(line) > 1_000_000


# The end


@habit("exit.eof", "exit.children")
class StaysAround(GoodServer):
    def ending(self) -> None:
        time.sleep(60)


@habit("exit.sigterm")
class IgnoresSignals(GoodServer):
    def run(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        super().run()


@habit("exit.children")
class LeavesAChild(GoodServer):
    def ending(self) -> None:
        subprocess.Popen(
            ["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
