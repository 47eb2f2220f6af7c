"""Bad habits of agents with what they write, and with the end."""

from __future__ import annotations

import json
import os
import time

from tests.conform.agentproc.good_agent import LONG_SECONDS, GoodAgent
from tests.conform.agentproc.habits_of_agents import both, habit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@habit("ap.line.utf8")
class WritesLatin1(GoodAgent):
    def answer(self) -> Iterator[str]:
        return iter(("Grüße",))

    def encode(self, text: str) -> bytes:
        return text.encode("latin-1")


@habit("ap.line.partial")
class QuotesNothing(GoodAgent):
    def say_piece(self, piece: str) -> None:
        if self.streaming:
            self.write(f"AGENT_PARTIAL:{piece!r}\n")


@habit("ap.line.error")
class SaysErrorsPlainly(GoodAgent):
    def fail(self, why: str) -> int:
        self.write(f"AGENT_ERROR:{why}\n")
        return 1


@habit("ap.line.error-text")
class ErrsWithoutAWord(GoodAgent):
    def fail(self, why: str) -> int:
        self.write('AGENT_ERROR:""\n')
        return 1


@habit("ap.line.session")
class HasAnIdOfTwoWords(GoodAgent):
    def say_session(self) -> None:
        self.write("AGENT_SESSION:two words\n")


@habit("ap.line.portable")
class HasAnOddId(GoodAgent):
    def new_id(self) -> str:
        return f"a+{time.time_ns()}"


@habit("ap.line.status", "ap4.event.error-status")
class FailsWithZero(GoodAgent):
    def fail(self, why: str) -> int:
        super().fail(why)
        return 0


@habit(*both("error.told"))
class FailsWithoutAWord(GoodAgent):
    def fail(self, why: str) -> int:
        return 1


@habit(*both("exit.children"))
class LeavesAChild(GoodAgent):
    def leave(self) -> int:
        if os.fork() == 0:
            os.closerange(0, 3)
            time.sleep(LONG_SECONDS)
            os._exit(0)
        return 0


@habit(*both("term.children"))
class LeavesAChildOnSigterm(GoodAgent):
    def on_term(self, *_: object) -> None:
        self.leave()
        if os.fork() == 0:
            os.closerange(0, 3)
            time.sleep(LONG_SECONDS)
            os._exit(0)
        super().on_term()


@habit(*both("term.prompt"))
class IgnoresSigterm(GoodAgent):
    def on_term(self, *_: object) -> None:
        """Nothing."""


@habit(*both("term.status"))
class SigtermIsSuccess(GoodAgent):
    def on_term(self, *_: object) -> None:
        os._exit(0)


@habit(*both("term.flushed"))
class IsCutOff(GoodAgent):
    def on_term(self, *_: object) -> None:
        self.write('AGENT_PARTIAL:"half a')
        super().on_term()


@habit()
class AnswersAtOnce(GoodAgent):
    """Nothing bad: there is just no time to interrupt it. It may be gone or still leaving when the signal comes."""

    def long(self) -> Iterator[str]:
        yield "1 and so on"

    def leave(self) -> int:
        time.sleep(time.time_ns() // 1_000_000 % 3 * 0.02)
        return 0


@habit()
class SilentForLong(GoodAgent):
    """Until there is a file. `SILENT` names it, and the list on which it notes that it is silent."""

    def long(self) -> Iterator[str]:
        over, notes = os.environ["SILENT"].split(":")
        with open(notes, "a") as silent:
            silent.write("x")
        while not os.path.exists(over):
            time.sleep(0.01)
        yield "all of it"

    def on_term(self, *_: object) -> None:
        os._exit(7)


@habit("ap4.line.event")
class Chats(GoodAgent):
    def begin(self) -> None:
        self.write("Loading...\n")


@habit("ap4.event.text")
class SaysNumbers(GoodAgent):
    def say_end(self) -> None:
        self.event("result", text=42)


@habit("ap4.event.session")
class HasAPathForAnId(GoodAgent):
    def event(self, type: str, **members: Any) -> None:
        self.write(json.dumps({"type": type, **members, "session_id": "a/b"}) + "\n")


@habit("ap4.event.same-session")
class ChangesItsId(GoodAgent):
    def say_piece(self, piece: str) -> None:
        self.session_id = self.new_id()
        super().say_piece(piece)


@habit("ap4.event.result-once")
class HasTwoResults(GoodAgent):
    def say_end(self) -> None:
        super().say_end()
        super().say_end()


@habit("ap4.event.result")
class HasNoResult(GoodAgent):
    def say_end(self) -> None:
        """Nothing."""


@habit("ap4.event.error-last")
class GoesOnAfterAnError(GoodAgent):
    def fail(self, why: str) -> int:
        code = super().fail(why)
        self.event("partial", text="or so")
        return code


@habit("ap4.event.request")
class AsksNobody(GoodAgent):
    def answer(self) -> Iterator[str]:
        self.event("permission_request", request_id="r0", tool_name="Read", input={})
        return super().answer()


@habit("ap4.permission.allow", "ap4.permission.deny")
class WaitsForever(GoodAgent):
    def ask(self) -> bool:
        super().ask()
        time.sleep(LONG_SECONDS)
        return False


@habit("ap4.permission.deny", "ap4.permission.eof")
class DoesItAnyway(GoodAgent):
    def ask(self) -> bool:
        super().ask()
        return True


@habit("ap4.permission.other")
class TakesAnyAnswer(GoodAgent):
    def ask(self) -> bool:
        self.event("permission_request", request_id="r1", tool_name="Write", input={})
        answer = self.line() or {}
        return bool(answer.get("behavior") == "allow")
