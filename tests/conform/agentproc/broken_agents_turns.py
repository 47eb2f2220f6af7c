"""Bad habits of agents with the turn and the session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from tests.conform.agentproc.good_agent import Failure, GoodAgent, input_waits
from tests.conform.agentproc.habits_of_agents import both, habit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@habit(*both("turn.answer"))
class SaysNothing(GoodAgent):
    def write(self, text: str) -> None:
        """Nothing."""


@habit(*both("turn.message"))
class DoesNotListen(GoodAgent):
    def answer(self) -> Iterator[str]:
        yield "hello"


@habit(*both("turn.non-ascii"))
class KnowsAsciiOnly(GoodAgent):
    def encode(self, text: str) -> bytes:
        return text.encode("ascii", "replace")


@habit("ap.turn.locale")
class FollowsTheLocale(GoodAgent):
    def encode(self, text: str) -> bytes:
        return text.encode("ascii" if self.environ.get("LC_ALL") == "C" else "utf-8", "replace")


@habit(*both("turn.lines"))
class ReadsOneLine(GoodAgent):
    def answer(self) -> Iterator[str]:
        self.message = self.message.split("\n")[0]
        return super().answer()


@habit(*both("turn.dash"))
class KnowsFlags(GoodAgent):
    def answer(self) -> Iterator[str]:
        if self.message.startswith("-"):
            raise Failure("no such option")
        return super().answer()


@habit(*both("turn.shell"))
class AsksAShell(GoodAgent):
    def answer(self) -> Iterator[str]:
        subprocess.run(f"echo {self.message}", shell=True, capture_output=True, check=False)
        return super().answer()


@habit(*both("turn.large"))
class ChokesSilently(GoodAgent):
    def answer(self) -> Iterator[str]:
        return iter(()) if len(self.message) > 100_000 else super().answer()


@habit(*both("turn.empty"), *both("attach.alone"))
class IgnoresEmptyMessages(GoodAgent):
    def fail(self, why: str) -> int:
        return 0 if not self.message else super().fail(why)

    def answer(self) -> Iterator[str]:
        return super().answer() if self.message else iter(())


@habit("ap.turn.version")
class KnowsOneVersion(GoodAgent):
    def read_variables(self) -> None:
        super().read_variables()
        if self.environ.get("AGENT_PROTOCOL_VERSION", "0.1") != "0.1":
            raise Failure("unknown version")


@habit("ap.turn.bare")
class NeedsEveryVariable(GoodAgent):
    def read_variables(self) -> None:
        if "AGENT_STREAMING" not in self.environ:
            raise Failure("no AGENT_STREAMING")
        super().read_variables()


@habit("ap4.turn.unknown-members")
class KnowsEveryMember(GoodAgent):
    def take_turn(self, turn: dict[str, Any]) -> None:
        super().take_turn(turn)
        if "conform_no_such_member" in turn:
            raise Failure("unknown member")


@habit(*both("turn.names"))
class NameIsAFileName(GoodAgent):
    def open_session(self) -> None:
        if "/" in self.session_name:
            raise Failure("no such directory")
        super().open_session()


@habit("ap.stdin.none", "ap4.stdin.open")
class ReadsToTheEnd(GoodAgent):
    def begin(self) -> None:
        while chunk := os.read(0, 1 << 16):
            self.buffer += chunk


@habit("ap.stdin.message")
class ChokesOnInput(GoodAgent):
    def read_variables(self) -> None:
        if input_waits() and os.read(0, 1):
            raise Failure("unexpected input")
        super().read_variables()


@habit("ap.stream.off")
class StreamsAlways(GoodAgent):
    def read_variables(self) -> None:
        super().read_variables()
        self.streaming = True


@habit("ap.stream.once")
class SaysItTwice(GoodAgent):
    def say_end(self) -> None:
        self.say_body()


@habit("ap.stream.partials")
class NeverStreams(GoodAgent):
    def read_variables(self) -> None:
        super().read_variables()
        self.streaming = False


@habit("ap4.stream.partials")
class AnswersAtTheEnd(GoodAgent):
    def say_piece(self, piece: str) -> None:
        """Nothing."""


@habit("ap4.stream.once")
class AddsItsResult(GoodAgent):
    def say_piece(self, piece: str) -> None:
        super().say_piece(piece)
        super().say_piece(piece)


@habit("ap.body.forged")
class EscapesNothing(GoodAgent):
    def say_body(self) -> None:
        self.write(f"{self.text}\n")


@habit(*both("attach.answered"), *both("attach.alone"))
class IgnoresAttachments(GoodAgent):
    def answer(self) -> Iterator[str]:
        return iter(()) if self.names else super().answer()


@habit(*both("attach.seen"))
class IsBlind(GoodAgent):
    def answer(self) -> Iterator[str]:
        self.names = []
        return super().answer()


@habit("ap.session.told")
class KeepsItsId(GoodAgent):
    def say_session(self) -> None:
        """Nothing."""


@habit("ap4.session.told")
class KeepsItsIdToItself(GoodAgent):
    def event(self, type: str, **members: Any) -> None:
        self.write(json.dumps({"type": type, **members}) + "\n")


@habit(*both("session.resume"))
class ResumesNothing(GoodAgent):
    def open_session(self) -> None:
        if self.session_id:
            self.on_unknown()
        super().open_session()


@habit(*both("session.remembers"))
class Forgets(GoodAgent):
    def count(self) -> int:
        return 0


@habit(*both("session.fresh"))
class HasOneSession(GoodAgent):
    def new_id(self) -> str:
        return "the-one"


@habit(*both("session.unknown"))
class LeavesWithoutAWord(GoodAgent):
    def on_unknown(self) -> None:
        sys.exit(3)


@habit(*both("session.hostile"))
class IdIsAPath(GoodAgent):
    def file(self) -> str:
        return os.path.join(self.home, self.session_id)

    def on_unknown(self) -> None:
        """A new one."""

    def new_id(self) -> str:
        return f"s{time.time_ns()}"
