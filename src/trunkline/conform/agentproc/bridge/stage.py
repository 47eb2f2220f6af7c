"""Where one check plays: a folder with a profile and a part for the agent, and a bridge that is started on them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.conform.agentproc.bridge import part
from trunkline.conform.agentproc.bridge.part import Step
from trunkline.conform.agentproc.bridge.seen import Output, SeenTurn, object_of
from trunkline.conform.kit import Broken
from trunkline.conform.probe import CHILD_LOCK
from trunkline.conform.process import RunningTarget
from trunkline.conform.record import Record, Roles
from trunkline.conform.stage import AgentStage, ProgramTarget

#: How long the kit waits for a turn to end that should end by itself at once.
TIMEOUT_SECONDS = 15.0
#: How much later than it has to a bridge may do something: the start of an interpreter on a busy machine.
PATIENCE_SECONDS = 3.0

#: What is on the bridge's own standard input, and must not reach the agent.
DECOY = b"conform: this is not for the agent\n"

#: The kit is whoever writes to the bridge, and the agent behind it.
ROLES: Roles = ("user", "bridge")


class Target(ProgramTarget):
    """What is under test: a command with `{profile}`, `{message}` and more, and how it tells what came of a turn."""

    output: Output = "auto"
    timeout: float = TIMEOUT_SECONDS
    patience: float = PATIENCE_SECONDS


class Ask(Value):
    """What a bridge is asked for besides its profile. An empty text means: nothing was said of it."""

    message: str = "conform"
    session: str = ""
    session_name: str = ""
    from_user: str = ""
    image: str = ""
    file: str = ""


#: What a command may hold.
PLACEHOLDERS = ("{profile}", "{message}", "{session}", "{session_name}", "{from}", "{image}", "{file}")
#: Those of them that are left out, with the flag in front of them, when there is nothing to say.
_OPTIONAL = PLACEHOLDERS[3:]
_PLACEHOLDER = re.compile("|".join(map(re.escape, PLACEHOLDERS)))


class Got(Value):
    """What the agent was given."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    pid: int


class Stage(AgentStage):
    """The place of one check. `close` ends what it started and removes what it made."""

    def __init__(self, target: Target, name: str) -> None:
        super().__init__(name, ROLES, target.patience)
        self.target = target
        self.turn = self.folder / "0"
        """The folder of the last turn."""

    @property
    def marks(self) -> Path:
        """The folder of the last turn."""
        return self.turn

    def takes(self, placeholder: str) -> bool:
        """Whether the command has a place for it."""
        return any(placeholder in word for word in self.target.argv)

    async def begin(
        self,
        *steps: Step,
        profile: Mapping[str, Any] | None = None,
        ask: Ask | None = None,
        env: Mapping[str, str] | None = None,
    ) -> RunningTarget:
        """Start the bridge on a turn; do not wait. `profile` adds to the plain profile of the kit."""
        self.turn = self.folder / str(len(self.records))
        self.turn.mkdir()
        (self.turn / "plan.json").write_bytes(part.plan(steps))
        text = part.profile(self.turn, profile or {})
        file = self.turn / "profile.yaml"
        file.write_text(text, encoding="utf-8")
        return await self.start(str(file), ask or Ask(), env or {}, text)

    async def start(self, profile: str, ask: Ask, env: Mapping[str, str], text: str = "") -> RunningTarget:
        """Start the bridge on a profile that is there, or not."""
        argv = command(self.target.argv, profile, ask)
        record = self.record(argv)
        for line in text.splitlines():
            record.remark(f"profile: {line}")
        running = await self.run(record, self.environment(self.target) | dict(env))
        running.write(DECOY)
        return running

    async def play(
        self,
        *steps: Step,
        profile: Mapping[str, Any] | None = None,
        ask: Ask | None = None,
        env: Mapping[str, str] | None = None,
        within: float | None = None,
    ) -> SeenTurn:
        """A turn from its beginning to its end.

        Raises:
            Broken: it does not end within the time.
        """
        running = await self.begin(*steps, profile=profile, ask=ask, env=env)
        return await self.seen(running, self.target.timeout if within is None else within)

    async def seen(self, running: RunningTarget, within: float) -> SeenTurn:
        """What came of a turn.

        Raises:
            Broken: it does not end within the time.
        """
        status = await running.ended(max(within - (time.monotonic() - running.began), 0))
        if status is None or running.seconds is None:
            raise Broken(f"still running {within:g} s after the start")
        self._note(running.record)
        stdout = running.output.decode("utf-8", "replace")
        return SeenTurn(stdout, running.stderr, status, running.seconds, object_of(stdout, self.target.output))

    def got(self) -> Got:
        """What the agent was given in the last turn.

        Raises:
            Broken: it was not started.
        """
        found = self._json("got.json")
        if found is None:
            raise Broken("the agent was not started")
        return Got(tuple(found["argv"]), found["env"], found["cwd"], found["pid"])

    def ran(self) -> bool:
        """Whether the agent was started in the last turn."""
        return self.has("got.json")

    def input(self) -> tuple[bytes, bool]:
        """What the agent read from standard input, and whether that ended.

        Raises:
            Broken: it did not get that far.
        """
        found = self._json("input.json")
        if found is None:
            raise Broken("the agent was not started, or was ended too soon")
        return found["data"].encode("latin-1"), found["ended"]

    def put(self, name: str) -> None:
        """Give the agent the sign that it waits for."""
        (self.turn / name).touch()

    async def child_lives(self) -> bool:
        """Whether the process that the agent started goes on although it should not; a moment is granted."""
        return await self.is_held(CHILD_LOCK)

    def _json(self, name: str) -> Any:
        try:
            return jsontext.loads((self.turn / name).read_bytes())
        except OSError:
            return None

    def _note(self, record: Record) -> None:
        """What the agent was given belongs to the record, too."""
        if self.ran():
            got = self.got()
            record.remark(f"the agent was given the arguments {list(got.argv)!a} in {got.cwd!a}")
            given = {name: value for name, value in sorted(got.env.items()) if name.startswith("AGENT_")}
            record.remark(f"the agent was given the variables {given!a}")


def command(template: tuple[str, ...], profile: str, ask: Ask) -> tuple[str, ...]:
    """The command for one turn."""
    said = (profile, ask.message, ask.session, ask.session_name, ask.from_user, ask.image, ask.file)
    values = dict(zip(PLACEHOLDERS, said, strict=True))
    words: list[str] = []
    for number, word in enumerate(template):
        if word in _OPTIONAL and not values[word]:
            # `--from {from}` goes as a whole.
            if number and _is_flag(template[number - 1]):
                words.pop()
        else:
            words.append(_PLACEHOLDER.sub(lambda found: values[found[0]], word))
    return tuple(words)


def _is_flag(word: str) -> bool:
    """Whether a word of a command announces the next: a message in front of it does not."""
    return word.startswith("-") and word != "--" and not _PLACEHOLDER.search(word)
