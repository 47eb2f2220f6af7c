"""Checks of `init_history`."""

from __future__ import annotations

from trunkline.conform.jsonstream.scenes import ask, greet, text_of
from trunkline.conform.jsonstream.sessions import leave, new_session_id
from trunkline.conform.jsonstream.stage import Stage
from trunkline.conform.jsonstream.subject import Subject
from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.kit import Broken

#: Words that no agent would guess.
FIRST_WORD = "quokka-4171"
SECOND_WORD = "ibis-5283"


async def _tell(agent: Subject, word: str) -> None:
    text = f"Previous conversation summary:\nThe user named the code word {word}.\nThe assistant took note of it."
    await agent.send(type="init_history", text=text)


async def _recalls(stage: Stage, agent: Subject, *words: str) -> None:
    said = text_of(await ask(stage, agent, "recall"))
    forgotten = [word for word in words if word not in said]
    if forgotten:
        raise Broken(f"asked for the words in the history, the agent said {said[:200]!a}")


@SUITE.check("js.history.accepted", "MUST", "2.5")
async def history_is_accepted(stage: Stage) -> None:
    """`init_history` is accepted before the first message."""
    async with stage.agent() as agent:
        await _tell(agent, FIRST_WORD)
        if any(event.type == "error" for event in await greet(stage, agent, "after `init_history`")):
            raise Broken("`init_history` got an `error`")


@SUITE.check("js.history.context", "MUST", "2.5")
async def history_is_context(stage: Stage) -> None:
    """The text of `init_history` is context of the conversation."""
    async with stage.agent() as agent:
        await _tell(agent, FIRST_WORD)
        await _recalls(stage, agent, FIRST_WORD)


@SUITE.check("js.history.several", "SHOULD", "2.5")
async def histories_add_up(stage: Stage) -> None:
    """Several `init_history` commands add up, in order."""
    async with stage.agent() as agent:
        await _tell(agent, FIRST_WORD)
        await _tell(agent, SECOND_WORD)
        await _recalls(stage, agent, FIRST_WORD, SECOND_WORD)


@SUITE.check("js.history.late", "SHOULD", "2.5")
async def late_history_is_context_of_the_next_message(stage: Stage) -> None:
    """`init_history` after the first message is accepted and is context of the next one: some hosts do that."""
    async with stage.agent() as agent:
        await ask(stage, agent, "hello")
        await _tell(agent, FIRST_WORD)
        if any(event.type == "error" for event in await greet(stage, agent, "after a late `init_history`")):
            raise Broken("a late `init_history` got an `error`")
        await _recalls(stage, agent, FIRST_WORD)


@SUITE.check("js.history.resumed", "SHOULD", "2.5")
async def history_is_kept(stage: Stage) -> None:
    """The text of `init_history` is still known after `--resume`."""
    session_id = new_session_id()
    async with stage.agent("--session-id", session_id) as agent:
        await _tell(agent, FIRST_WORD)
        await ask(stage, agent, "hello")
        await leave(stage, agent)
    async with stage.agent("--resume", session_id) as agent:
        await _recalls(stage, agent, FIRST_WORD)
