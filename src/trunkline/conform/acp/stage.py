"""Where one check plays: a workspace, a home for the agent's state, and as many processes as the check asks for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trunkline.conform.acp.prompts import FILES, PROMPTS
from trunkline.conform.acp.subject import AcpSubject, Policy
from trunkline.conform.record import Roles
from trunkline.conform.stage import ProgramStage, ProgramTarget
from trunkline.conform.wording import fill

#: How long the kit waits for the agent to do what it was asked, unless told otherwise: a model may take its time.
TIMEOUT_SECONDS = 30.0
#: How long the kit listens where nothing must happen. A program that does not wait acts at once, so this is plenty.
QUIET_SECONDS = 0.3
#: How long the kit waits for what needs no model: an answer to a wrong request, the end of a cancelled turn, an exit.
PATIENCE_SECONDS = 5.0

ROLES: Roles = ("client", "agent")


class Target(ProgramTarget):
    """What is under test: how to start it, and how patient to be with it."""

    cwd: str | None = None
    """Where it runs; a fresh directory for each check unless given. One check at a time can have it."""
    timeout: float = TIMEOUT_SECONDS
    patience: float = PATIENCE_SECONDS
    quiet: float = QUIET_SECONDS
    prompts: Mapping[str, str] = PROMPTS


class Stage(ProgramStage):
    """The place of one check. `close` ends what it started and removes what it made."""

    def __init__(self, target: Target, name: str) -> None:
        super().__init__(name, ROLES, target.cwd, FILES.values())
        self.target = target

    def prompt(self, name: str, **parts: str) -> str:
        """What to say to the agent."""
        return fill(self.target.prompts, name, **parts)

    def file(self, prompt: str) -> Path:
        """The file that a prompt asks for."""
        return self.workspace / FILES[prompt]

    async def start(self, policy: Policy = "allow") -> AcpSubject:
        """Start the agent; do not wait."""
        subject = AcpSubject(policy)
        record = self.record(self.target.argv)
        subject.process = await self.run(record, self.environment(self.target), "pipe", subject.hear)
        return subject
