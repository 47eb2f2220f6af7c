"""Checks of session lines: anywhere, the last one wins, and it survives a failure."""

from __future__ import annotations

from typing import Any

from trunkline.conform.agentproc.bridge.part import Step, error, out, partial, said
from trunkline.conform.agentproc.bridge.stage import Ask, Stage
from trunkline.conform.agentproc.bridge.suite import SUITE, needs
from trunkline.conform.expect import lacks, same
from trunkline.conform.kit import NotExercised


async def _told(stage: Stage, wanted: str, *steps: Step, **profile: Any) -> None:
    """The id that the bridge would use next time."""
    seen = await stage.play(*steps, profile=profile)
    if seen.session is None:
        raise NotExercised("the bridge does not report the session id, neither as JSON nor on standard error")
    same("the session id", seen.session, wanted)


@SUITE.check("br.session.kept", "MUST", "Session")
async def sessions_are_kept(stage: Stage) -> None:
    """The id of a session line is kept for the next turn."""
    await _told(stage, "conform-1", said("AGENT_SESSION:conform-1", "hello"))


@SUITE.check("br.session.anywhere", "MUST", "Session")
async def sessions_may_come_late(stage: Stage) -> None:
    """A session line may appear anywhere: between partials, or last."""
    await _told(stage, "conform-1", said(partial("a"), "AGENT_SESSION:conform-1", partial("b"), "text"))
    await _told(stage, "conform-2", said("text", partial("a"), "AGENT_SESSION:conform-2"))


@SUITE.check("br.session.last", "MUST", "Session")
async def the_last_one_wins(stage: Stage) -> None:
    """If there are several session lines, the last one counts."""
    await _told(stage, "conform-2", said("AGENT_SESSION:conform-1", "text", "AGENT_SESSION:conform-2", "text"))


@SUITE.check("br.session.opaque", "MUST", "Principles")
async def ids_are_opaque(stage: Stage) -> None:
    """An id is passed on unchanged."""
    await _passed_on(stage, "Cli~sess-9f3a.2C1e_4b8d==")


@SUITE.check("br.session.scripts", "SHOULD", "Principles")
async def ids_have_any_script(stage: Stage) -> None:
    """An id with characters outside ASCII is also passed on unchanged."""
    for session in ("séance-7", "会话-7"):
        await _passed_on(stage, session)


async def _passed_on(stage: Stage, session: str) -> None:
    await _told(stage, session, said(f"AGENT_SESSION:{session}"))
    needs(stage, "{session}")
    await stage.play(ask=Ask(session=session))
    same("`AGENT_SESSION_ID`", stage.got().env.get("AGENT_SESSION_ID"), session)


@SUITE.check("br.session.trimmed", "SHOULD", "Session")
async def space_is_forgiven(stage: Stage) -> None:
    """White space around an id is not part of it."""
    await _told(stage, "conform-1", out("AGENT_SESSION: \tconform-1 \r\n"))


@SUITE.check("br.session.invalid", "SHOULD", "Session")
async def bad_ids_are_ignored(stage: Stage) -> None:
    """A session line without an id, or with white space within it, does not replace the previous id."""
    await _told(stage, "conform-1", said("AGENT_SESSION:conform-1", "AGENT_SESSION:", "AGENT_SESSION:two words"))


@SUITE.check("br.session.failed", "SHOULD", "Session")
async def failures_keep_the_session(stage: Stage) -> None:
    """The id is kept even if the turn fails, whether by exit code, error line or timeout."""
    await _told(stage, "conform-1", said("AGENT_SESSION:conform-1"), ["exit", 3])
    await _told(stage, "conform-3", said("AGENT_SESSION:conform-2", error("x"), "AGENT_SESSION:conform-3"))


@SUITE.check("br.session.none", "SHOULD", "Session")
async def silence_keeps_the_session(stage: Stage) -> None:
    """A turn without a session line keeps the previous id."""
    needs(stage, "{session}")
    seen = await stage.play(said("text"), ask=Ask(session="conform-1"))
    if seen.session is None:
        raise NotExercised("the bridge does not report the session id of such a turn")
    same("the session id", seen.session, "conform-1")


@SUITE.check("br.session.prefix", "MUST", "Profile")
async def the_prefix_is_configurable(stage: Stage) -> None:
    """`session_line_prefix` is the prefix of session lines."""
    seen = await stage.play(said("MY_SESSION=conform-1", "text"), profile={"session_line_prefix": "MY_SESSION="})
    lacks("the reply", seen.reply, "conform-1")
    same("the session id", seen.session, "conform-1")
