"""Bad habits of bridges with what the agent says."""

from __future__ import annotations

import subprocess

from tests.conform.agentproc.good_bridge import GoodBridge
from tests.conform.agentproc.habits_of_bridges import habit


@habit("br.body.verbatim", "br.body.escape")
class Strips(GoodBridge):
    def decode(self, line: bytes) -> str:
        return super().decode(line).strip()


@habit("br.body.protocol", "br.partial.and-body")
class ShowsProtocol(GoodBridge):
    def hear(self, line: bytes) -> None:
        super().hear(line)
        if line.startswith(b"AGENT_"):
            self.body.append(self.decode(line))


@habit("br.body.last-line")
class DropsTheLastLine(GoodBridge):
    def end(self) -> None:
        """Nothing."""


@habit("br.body.crlf", "br.session.trimmed")
class KeepsCarriageReturns(GoodBridge):
    def decode(self, line: bytes) -> str:
        return line.decode("utf-8", "replace")

    def hear(self, line: bytes) -> None:
        if line.startswith(b"AGENT_SESSION: "):
            return
        super().hear(line)


@habit("br.body.line-ends")
class SplitsLines(GoodBridge):
    def hear(self, line: bytes) -> None:
        for part in line.decode("utf-8", "replace").splitlines() or [""]:
            super().hear(part.encode())


@habit("br.body.characters")
class DecodesPieces(GoodBridge):
    def feed(self, data: bytes) -> None:
        super().feed(data.decode("utf-8", "replace").encode())


@habit("br.body.not-utf8")
class IsStrict(GoodBridge):
    def decode(self, line: bytes) -> str:
        return line.removesuffix(b"\r").decode("utf-8")


@habit("br.body.empty")
class WantsAnAnswer(GoodBridge):
    def code(self, returncode: int) -> int:
        return super().code(returncode) or (0 if self.body else 1)


@habit("br.body.long-line")
class ReadsShortLines(GoodBridge):
    def hear(self, line: bytes) -> None:
        super().hear(line[:65536])


@habit("br.body.stderr")
class MixesItsStreams(GoodBridge):
    def reply(self, code: int) -> str:
        return self.stderr.decode() + super().reply(code)


@habit("br.body.noise")
class LeavesErrorsUnread(GoodBridge):
    def start(self) -> subprocess.Popen[bytes]:
        process = super().start()
        assert process.stdout is not None
        if self.profile["timeout_secs"] == 20:
            self.feed(process.stdout.read())
        return process


@habit("br.body.closed")
class LeavesAtTheFirstWord(GoodBridge):
    def feed(self, data: bytes) -> None:
        super().feed(data)
        self.kill()

    def code(self, returncode: int) -> int:
        return 0


@habit("br.session.kept", "br.session.anywhere", "br.session.last", "br.session.opaque", "br.session.prefix")
class NeverListens(GoodBridge):
    def on_session(self, session: str) -> None:
        """Nothing."""


@habit("br.session.scripts")
class KnowsOneScript(GoodBridge):
    def on_session(self, session: str) -> None:
        if session.isascii():
            super().on_session(session)


@habit("br.session.last", "br.session.failed")
class KeepsTheFirst(GoodBridge):
    def on_session(self, session: str) -> None:
        if not self.told:
            super().on_session(session)


@habit("br.session.invalid", "br.session.none")
class KeepsAnything(GoodBridge):
    def __init__(self, arguments: list[str]) -> None:
        super().__init__(arguments)
        self.told = ""

    def on_session(self, session: str) -> None:
        self.told = session


@habit("br.session.prefix")
class KnowsOnePrefix(GoodBridge):
    def check(self) -> None:
        super().check()
        self.profile["session_line_prefix"] = "AGENT_SESSION:"


@habit("br.partial.shown", "br.timeout.partials")
class ShowsOnePartial(GoodBridge):
    def on_partial(self, text: str) -> None:
        """Nothing."""


@habit("br.partial.decoded", "br.error.shown")
class DecodesNothing(GoodBridge):
    def payload(self, text: str) -> str:
        return text


@habit("br.partial.live")
class ShowsAtTheEnd(GoodBridge):
    text = True

    def show(self, text: str) -> None:
        self.body.insert(0, text)


@habit("br.partial.off", "br.env.streaming")
class StreamsAlways(GoodBridge):
    def check(self) -> None:
        super().check()
        self.profile["streaming"] = True


@habit("br.partial.lenient", "br.error.lenient")
class WantsJson(GoodBridge):
    def payload(self, text: str) -> str:
        found = super().payload(text)
        return "" if found == text else found


@habit("br.partial.many")
class LosesSome(GoodBridge):
    def on_partial(self, text: str) -> None:
        if text != "<77>":
            super().on_partial(text)
