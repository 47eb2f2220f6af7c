"""The hooks of one conversation that are about no tool: its beginning and end, messages, answers, compaction."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from trunkline.agents.coder.hooks import NO_VERDICT, Hooks, HookVerdict, Say, to_the_log
from trunkline.agents.coder.words import HOOK_GOES_ON, HOOK_SAYS
from trunkline.core import fault_kinds
from trunkline.core.events import Event, Notice
from trunkline.core.faults import ConfigError
from trunkline.models.messages import Text

logger = logging.getLogger(__name__)

#: How long the hooks of a session's end may take, all together: who leaves does not wait for long.
END_SECONDS = 5.0


class ConversationHooks:
    """Runs them, and keeps what they tell the model until there is a message to tell it with."""

    def __init__(self, hooks: Hooks, *, resumed: bool = False) -> None:
        self._hooks = hooks
        self._source = "resume" if resumed else "startup"
        self._beginning: asyncio.Task[tuple[HookVerdict, list[Event]]] | None = None
        self._has_begun = False
        self._untold: list[str] = []

    @property
    def close_seconds(self) -> float:
        """How long `end` may take."""
        return END_SECONDS if self._hooks.has("session_end") else 0.0

    def begin(self) -> None:
        """The session begins. Nobody waits for its hooks before there is a message."""
        self._has_begun = True
        if self._hooks.has("session_start"):
            self._beginning = asyncio.get_running_loop().create_task(self._begin(), name="hooks of the session's start")

    async def end(self) -> None:
        """The session ends. Bounded in time."""
        if self._beginning is not None:
            self._beginning.cancel()
            with suppress(asyncio.CancelledError):
                await self._beginning
        if self._has_begun and self._hooks.has("session_end"):
            self._has_begun = False
            try:
                async with asyncio.timeout(END_SECONDS):
                    await self._hooks.run("session_end", to_the_log)
            except TimeoutError:
                text = f"The hooks of the session's end were ended: together they have at most {END_SECONDS:.0f} s."
                await to_the_log(Notice(text))

    async def begun(self, say: Say) -> None:
        """Wait for the hooks of the session's start, and tell what became of them."""
        if self._beginning is None:
            return
        # A turn that is stopped meanwhile leaves them to the next one.
        verdict, notices = await asyncio.shield(self._beginning)
        self._beginning = None
        for notice in notices:
            await say(notice)
        await self._objected(verdict, "the session's start", say)
        self._untold += verdict.context

    async def received(self, prompt: str, say: Say) -> Sequence[Text]:
        """A message came: what the model is told along with it.

        Raises:
            ConfigError: it must not reach the model.
        """
        said = await self._hooks.run("user_prompt_submit", say, prompt=prompt)
        if said.decision == "deny":
            raise ConfigError(f"A hook denied this message, and the model has not seen it{_because(said)}")
        told, self._untold = [*self._untold, *said.context], []
        return tuple(Text(f"{HOOK_SAYS}\n{words}") for words in told)

    async def answered(self, say: Say) -> str:
        """The model has its answer: what it is told if it must go on, or nothing."""
        said = await self._hooks.run("stop", say)
        if said.decision == "deny":
            await say(Notice(f"A hook lets the agent go on{_because(said)}"))
            return "\n\n".join([f"{HOOK_GOES_ON} {said.reason}".rstrip(), *said.context])
        self._untold += said.context
        return ""

    async def compacting(self, say: Say, *, by_hand: bool) -> tuple[str, str]:
        """A summary is to be written: why not, and what else the model is told about it."""
        said = await self._hooks.run("pre_compact", say, "manual" if by_hand else "auto")
        refusal = f"a hook denied it{_because(said)}" if said.decision == "deny" else ""
        return refusal, "\n\n".join(said.context)

    async def _begin(self) -> tuple[HookVerdict, list[Event]]:
        notices: list[Event] = []

        async def keep(event: Event) -> None:
            notices.append(event)

        try:
            return await self._hooks.run("session_start", keep, self._source), notices
        except Exception as error:
            # Whatever it is, it is over: no turn fails for it.
            if not isinstance(error, OSError):
                logger.exception("the hooks of the session's start failed badly")
            return NO_VERDICT, [*notices, Notice(f"The hooks of the session's start failed: {fault_kinds.of(error)}")]

    async def _objected(self, said: HookVerdict, what: str, say: Say) -> None:
        if said.decision == "deny":
            await say(Notice(f"A hook objects to {what}{_because(said)}"))


def _because(said: HookVerdict) -> str:
    return f": {said.reason}" if said.reason else "."
