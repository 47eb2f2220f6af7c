"""Where one check plays: a workspace, a home for the agent's state, and as many turns as the check asks for."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Literal

from trunkline.base.process import child_env
from trunkline.conform.agentproc.agent.prompts import PROMPTS
from trunkline.conform.agentproc.agent.turn import EndedTurn, Turning
from trunkline.conform.kit import Broken
from trunkline.conform.record import Roles
from trunkline.conform.stage import ProgramStage, ProgramTarget
from trunkline.conform.wording import fill
from trunkline.wires.agentproc import codec, codec_ndjson
from trunkline.wires.agentproc.messages import Attachment, Dialect, TurnRequest

#: How long the kit waits for the agent's answer, unless told otherwise: a model may take its time.
TIMEOUT_SECONDS = 30.0
#: How long the kit waits for what needs no model, such as an exit.
PATIENCE_SECONDS = 5.0
#: How soon an agent should be gone after SIGTERM: well within the grace that a bridge gives by default.
EXIT_SECONDS = 2.0

#: How the agent's standard input is: nothing to read, the message and its end, or open with nothing in it.
Stdin = Literal["none", "message", "open"]


#: The kit plays the bridge.
ROLES: Roles = ("bridge", "agent")

#: Variables of a check's own; None stands for one that is not set.
Variables = Mapping[str, str | None]


class Target(ProgramTarget):
    """What is under test: how to start it, which dialect it speaks, and how patient to be with it."""

    protocol: Dialect = "0.1"
    cwd: str | None = None
    """Where it runs; a fresh directory for each check unless given. One check at a time can have it."""
    timeout: float = TIMEOUT_SECONDS
    patience: float = PATIENCE_SECONDS
    exit_seconds: float = EXIT_SECONDS
    prompts: Mapping[str, str] = PROMPTS


class Stage(ProgramStage):
    """The place of one check. `close` ends what it started and removes what it made."""

    def __init__(self, target: Target, name: str) -> None:
        super().__init__(name, ROLES, target.cwd, ("conform-write.txt",))
        self.target = target

    def prompt(self, name: str, text: str = "") -> str:
        """What to say to the agent."""
        return fill(self.target.prompts, name, text=text)

    def attachment(self, content: str) -> Attachment:
        """A file that lies there for the agent."""
        file = self.folder / f"conform-{uuid.uuid4().hex[:8]}.txt"
        file.write_text(content, encoding="utf-8")
        return Attachment("file", file.as_uri(), file.name)

    async def begin(
        self,
        turn: TurnRequest,
        stdin: Stdin = "none",
        env: Variables | None = None,
        edit: Callable[[bytes], bytes] = bytes,
    ) -> Turning:
        """Start the agent for a turn; do not wait.

        `env` are variables of the check's own, which win. In 0.4 the turn is a line on standard input, which `edit` may
        change; it ends there unless `stdin` is `open`.
        """
        old = self.target.protocol == "0.1"
        asked = {**(codec.turn_environment(turn) if old else {}), **(env or {})}
        told = {name: value for name, value in asked.items() if value is not None}
        variables = child_env(self.environment(self.target), told, ["AGENT_"])
        record = self.record(self.target.argv)
        for variable, value in told.items():
            record.add("host", f"{variable}={value}".encode("utf-8", "backslashreplace"))
        turning = Turning(turn, self.target.protocol)
        piped = not old or stdin != "none"
        turning.process = await self.run(record, variables, "pipe" if piped else "null", turning.hear)
        if not old:
            turning.send(edit(codec_ndjson.encode_turn(turn)))
        elif stdin == "message":
            turning.send(turn.message.encode("utf-8", "surrogatepass"))
        if piped and stdin != "open":
            turning.process.close_input()
        return turning

    async def take(
        self,
        turn: TurnRequest,
        stdin: Stdin = "none",
        env: Variables | None = None,
        edit: Callable[[bytes], bytes] = bytes,
    ) -> EndedTurn:
        """A turn from its beginning to its end.

        Raises:
            Broken: it does not end.
        """
        turning = await self.begin(turn, stdin, env, edit)
        heard = await turning.heard(self.target.timeout)
        if heard is None:
            raise Broken(f"still running {self.target.timeout:g} s after the start")
        await turning.process.close()
        return heard

    async def answer(
        self,
        turn: TurnRequest,
        stdin: Stdin = "none",
        env: Variables | None = None,
        edit: Callable[[bytes], bytes] = bytes,
    ) -> EndedTurn:
        """A turn that has to succeed, with some text.

        Raises:
            Broken: it does not.
        """
        heard = await self.take(turn, stdin, env, edit)
        if problem := heard.problem():
            raise Broken(problem)
        return heard
