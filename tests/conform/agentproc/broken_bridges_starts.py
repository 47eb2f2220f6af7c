"""Bad habits of bridges with the start: arguments, variables and standard input."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.conform.agentproc.good_bridge import GoodBridge, Refused
from tests.conform.agentproc.habits_of_bridges import habit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@habit("br.run.reply")
class ShowsNothing(GoodBridge):
    def reply(self, code: int) -> str:
        return ""


@habit("br.run.args", "br.place.message")
class SplitsEverything(GoodBridge):
    def argv(self) -> list[str]:
        return " ".join(super().argv()).split()


@habit("br.run.split")
class HonoursQuotes(GoodBridge):
    def argv(self) -> list[str]:
        import shlex

        return [*shlex.split(self.profile["command"]), *map(self.fill, self.profile["args"])]


@habit("br.run.split-args")
class SplitsOnlyWithoutArgs(GoodBridge):
    def argv(self) -> list[str]:
        if not self.profile["args"]:
            return super().argv()
        return [self.profile["command"], *map(self.fill, self.profile["args"])]


@habit("br.run.no-shell")
class AsksAShell(GoodBridge):
    def argv(self) -> list[str]:
        return ["sh", "-c", " ".join(super().argv())]


@habit("br.run.cwd", "br.place.cwd", "br.run.no-directory")
class StaysWhereItIs(GoodBridge):
    def cwd(self) -> str | None:
        return None


@habit("br.run.unknown-key")
class KnowsEveryKey(GoodBridge):
    def check(self) -> None:
        super().check()
        if "conform_no_such_key" in self.profile:
            raise Refused("unknown key")


@habit("br.run.nested")
class KnowsFlatProfilesOnly(GoodBridge):
    def parse(self, text: str) -> dict[str, Any]:
        if "agentproc:\n" in text:
            raise Refused("no command")
        return super().parse(text)


@habit("br.run.missing", "br.run.not-executable", "br.run.no-interpreter", "br.error.generic", "br.timeout.told")
class FailsWithoutAWord(GoodBridge):
    def complaint(self, code: int) -> str:
        return ""

    def tell(self, code: int) -> int:
        return super().tell(0 if code == 127 else code)


@habit("br.run.not-executable", "br.run.no-interpreter", "br.run.no-directory")
class CrashesAtTheStart(GoodBridge):
    def start(self) -> subprocess.Popen[bytes]:
        try:
            return super().start()
        except OSError as error:
            raise RuntimeError from error


@habit("br.run.no-profile", "br.run.no-command")
class CrashesOnProfiles(GoodBridge):
    def load(self) -> dict[str, Any]:
        try:
            found = super().load()
            found["command"]
        except (OSError, KeyError) as error:
            raise RuntimeError from error
        return found


@habit("br.run.script")
class RunsScripts(GoodBridge):
    def check(self) -> None:
        """Nothing."""


@habit("br.place.message", "br.place.session", "br.place.empty", "br.place.env", "br.place.cwd")
class PutsNothingIn(GoodBridge):
    def fill(self, text: str) -> str:
        return text


@habit("br.place.empty")
class DropsEmptyArguments(GoodBridge):
    def argv(self) -> list[str]:
        return [word for word in super().argv() if word]


@habit("br.place.unknown")
class ForgivesBraces(GoodBridge):
    def fill(self, text: str) -> str:
        return super().fill(re.sub(r"\{\{\s*message\s*\}\}", "{{MESSAGE}}", text, flags=re.IGNORECASE))


@habit("br.place.single-pass")
class LooksTwice(GoodBridge):
    def fill(self, text: str) -> str:
        return super().fill(super().fill(text))


@habit("br.place.literal")
class TakesMessagesForPatterns(GoodBridge):
    def fill(self, text: str) -> str:
        return re.sub(r"\{\{MESSAGE\}\}", self.message.replace("\\g<0>", ""), text)


@habit("br.place.secrets")
class ExpandsTheMessage(GoodBridge):
    def value(self, text: str) -> str:
        return self.expand(self.fill(text))


@habit("br.env.message", "br.env.large", "br.stdin.message")
class TidiesMessages(GoodBridge):
    def __init__(self, arguments: list[str]) -> None:
        super().__init__(arguments)
        self.message = self.message.strip()[:1000]


@habit("br.env.session", "br.session.opaque")
class ForgetsTheSession(GoodBridge):
    def turn(self) -> dict[str, str]:
        return super().turn() | {"AGENT_SESSION_ID": ""}


@habit("br.env.new-session", "br.env.session-name", "br.env.from", "br.env.version", "br.env.streaming")
class SetsTheMessageOnly(GoodBridge):
    def turn(self) -> dict[str, str]:
        return {"AGENT_MESSAGE": self.message}


@habit("br.env.stale", "br.env.new-session", "br.env.session-name")
class PassesEverythingOn(GoodBridge):
    def env(self) -> dict[str, str]:
        return super().env() | dict(os.environ)


@habit("br.env.image", "br.env.file", "br.env.attachments")
class DropsAttachments(GoodBridge):
    def turn(self) -> dict[str, str]:
        return {name: value for name, value in super().turn().items() if "URL" not in name and "ATTACH" not in name}


@habit("br.env.profile")
class HasNoVariables(GoodBridge):
    def expand(self, text: str) -> str:
        return text


@habit("br.env.unset")
class ExpandsLikeAShell(GoodBridge):
    def expand(self, text: str) -> str:
        return os.path.expandvars(text)


@habit("br.env.protected")
class LetsProfilesWin(GoodBridge):
    def env(self) -> dict[str, str]:
        return {**super().env(), **self.profile["env"]}


@habit("br.env.path")
class PassesNothingOn(GoodBridge):
    def base(self) -> dict[str, str]:
        return {}


@habit("br.stdin.none", "br.stdin.eof")
class LendsItsInput(GoodBridge):
    def stdin(self) -> int:
        return super().stdin() if self.profile["stdin"] == "message" else sys.stdin.fileno()


@habit("br.stdin.message")
class AddsALineFeed(GoodBridge):
    def input(self) -> bytes:
        return super().input() + b"\n"


@habit("br.stdin.unread", "br.timeout.input")
class WritesFirst(GoodBridge):
    def start(self) -> subprocess.Popen[bytes]:
        process = super().start()
        if process.stdin is not None:
            process.stdin.write(self.input())
            process.stdin.flush()
        return process
