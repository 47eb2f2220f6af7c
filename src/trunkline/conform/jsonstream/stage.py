"""Where one check plays: a workspace, a home for the target's state, and as many processes as the check asks for."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from trunkline.conform.jsonstream.prompts import PROMPTS
from trunkline.conform.jsonstream.subject import SeenEvent, Subject
from trunkline.conform.record import HOST_AND_AGENT
from trunkline.conform.stage import ProgramStage, ProgramTarget
from trunkline.conform.wording import fill

#: How long the kit waits for the agent to do what it was asked, unless told otherwise: a model may take its time.
TIMEOUT_SECONDS = 30.0
#: How long the kit listens where nothing must happen. A program that does not wait acts at once, so this is plenty.
QUIET_SECONDS = 0.3
#: How long the kit waits for what needs no model: an answer to a bad command, the end of a stopped turn, an exit. Much
#: longer than any of them should take, so that only what never comes is missed.
PATIENCE_SECONDS = 5.0

#: One black pixel.
_IMAGE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
#: What the command of `processes` writes.
TICK_FILE = "conform-tick.txt"

#: What is there for the agent to work on.
_FILES = {"conform-edit.txt": b"hello\n", "conform-read.txt": b"hello\n", "conform-image.png": _IMAGE}


#: What the prompts make an agent create.
_CREATED = (*(f"conform-{name}.txt" for name in ("write", "again", "a", "b", "denied")), TICK_FILE)


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
        super().__init__(name, HOST_AND_AGENT, target.cwd, (*_FILES, *_CREATED))
        self.target = target
        for file, content in _FILES.items():
            (self.workspace / file).write_bytes(content)

    def prompt(self, name: str, **parts: str) -> str:
        """What to say to the agent."""
        return fill(self.target.prompts, name, **parts)

    async def start(self, *flags: str, without: Callable[[str], bool] = lambda name: False) -> Subject:
        """Start the target with more flags behind its own, without the variables whose names are so; do not wait."""
        argv = (*self.target.argv, *flags)
        env = {key: value for key, value in self.environment(self.target).items() if not without(key)}
        record = self.record(argv)
        return self.opened(record, await Subject.start(argv, str(self.workspace), env, record))

    @asynccontextmanager
    async def agent(self, *flags: str) -> AsyncIterator[Subject]:
        """A target that has said `ready`; ended when the block is left.

        Raises:
            NotExercised: it did not become ready.
        """
        subject = await self.start(*flags)
        try:
            await subject.hope("`ready`", is_ready, self.target.timeout)
            yield subject
        finally:
            await subject.close()


def is_ready(event: SeenEvent) -> bool:
    """Whether this is the agent's `ready`."""
    return event.type == "ready"


async def ready_of(stage: Stage, subject: Subject) -> SeenEvent:
    """The `ready` of a process that was just started.

    Raises:
        NotExercised: it did not come.
    """
    return (await subject.hope("`ready`", is_ready, stage.target.timeout))[-1]
