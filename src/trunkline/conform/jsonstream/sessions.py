"""Checks of the start: sessions by id, and errors that end the process before `ready`."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from trunkline.conform.jsonstream.scenes import ask, text_of
from trunkline.conform.jsonstream.stage import Stage, is_ready
from trunkline.conform.jsonstream.subject import Subject
from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.kit import Broken, NotExercised


def new_session_id() -> str:
    """A session id that nobody has used."""
    return f"conform-{uuid.uuid4()}"


async def leave(stage: Stage, agent: Subject) -> None:
    """Let the agent end by itself, so that its session is put down.

    Raises:
        NotExercised: it does not end.
    """
    agent.close_input()
    if await agent.exit_code(stage.target.patience) is None:
        raise NotExercised("the agent does not exit at the end of standard input")


async def _refuses(stage: Stage, what: str, *flags: str, without: Callable[[str], bool] = lambda name: False) -> None:
    """A start with these flags is one `config_error` and an exit, without `ready`."""
    agent = await stage.start(*flags, without=without)
    found = await agent.collect(is_ready, stage.target.timeout)
    if found and is_ready(found[-1]):
        raise Broken(f"`ready` came despite {what}")
    code = await agent.exit_code(stage.target.patience)
    if code is None:
        raise Broken(f"the agent is still running despite {what}")
    if code == 0:
        raise Broken(f"the exit status is 0 after {what}")
    if len(found) != 1 or found[0].type != "error":
        raise Broken(
            f"{what} is reported by {', '.join(event.type for event in found) or 'nothing'}, not by one `error`"
        )
    error = found[0]
    if error.member("error", "code") != "config_error" or "msg_id" not in error.data or error.msg_id is not None:
        raise Broken(f"{what} has the code {error.member('error', 'code')!a}, `msg_id` {error.msg_id!a}")


async def _with_session(stage: Stage, session_id: str, messages: int = 1) -> None:
    """A session of that id that is put down."""
    async with stage.agent("--session-id", session_id) as agent:
        for _ in range(messages):
            await ask(stage, agent, "hello")
        await leave(stage, agent)


async def _says(stage: Stage, session_id: str, *flags: str) -> None:
    """A start with these flags reaches `ready`, with that id."""
    agent = await stage.start(*flags)
    ready = (await agent.expect(f"`ready` with `{flags[0]}`", is_ready, stage.target.timeout))[-1]
    if ready.data.get("session_id") != session_id:
        raise Broken(f"`ready.session_id` is {ready.data.get('session_id')!a}, not {session_id!a}")
    await agent.close()


@SUITE.check("js.start.session-id", "MUST", "3.1")
async def session_id_is_used(stage: Stage) -> None:
    """`--session-id` gives the new session its id."""
    session_id = new_session_id()
    await _says(stage, session_id, "--session-id", session_id)


@SUITE.check("js.start.session-exists", "MUST", "3.1")
async def existing_ids_are_refused(stage: Stage) -> None:
    """`--session-id` with an existing id is an error."""
    session_id = new_session_id()
    await _with_session(stage, session_id)
    await _refuses(stage, "an existing session id", "--session-id", session_id)


@SUITE.check("js.start.resume", "MUST", "3.1")
async def sessions_are_resumed(stage: Stage) -> None:
    """`--resume` continues a session under its id."""
    session_id = new_session_id()
    await _with_session(stage, session_id)
    await _says(stage, session_id, "--resume", session_id)


@SUITE.check("js.start.resume-history", "MUST", "3.1")
async def conversations_are_loaded(stage: Stage) -> None:
    """`--resume` loads the conversation."""
    session_id = new_session_id()
    await _with_session(stage, session_id, messages=2)
    async with stage.agent("--resume", session_id) as agent:
        said = text_of(await ask(stage, agent, "count"))
    if re.findall(r"\d+", said)[-1:] != ["3"]:
        raise Broken(f"asked for the number of messages including the third, the agent said {said[:200]!a}")


@SUITE.check("js.start.resume-latest", "MUST", "3.1")
async def latest_is_resumed(stage: Stage) -> None:
    """`--resume latest` continues the most recent session."""
    older, newer = new_session_id(), new_session_id()
    await _with_session(stage, older)
    await _with_session(stage, newer)
    await _says(stage, newer, "--resume", "latest")


@SUITE.check("js.start.resume-unknown", "MUST", "3.1")
async def unknown_sessions_are_refused(stage: Stage) -> None:
    """`--resume` with an unknown id is an error."""
    await _refuses(stage, "`--resume` with an unknown id", "--resume", new_session_id())


@SUITE.check("js.start.resume-fallback", "SHOULD", "3.1")
async def failed_resume_leaves_nothing(stage: Stage) -> None:
    """After a failed `--resume`, `--session-id` with the same id works."""
    session_id = new_session_id()
    agent = await stage.start("--resume", session_id)
    if any(map(is_ready, await agent.collect(is_ready, stage.target.timeout))):
        raise NotExercised("`--resume` with an unknown id did not fail")
    await agent.close()
    await _says(stage, session_id, "--session-id", session_id)


@SUITE.check("js.start.two-flags", "MUST", "3.1")
async def flags_exclude_each_other(stage: Stage) -> None:
    """Using `--session-id` and `--resume` together is an error."""
    await _refuses(
        stage, "`--session-id` with `--resume`", "--session-id", new_session_id(), "--resume", new_session_id()
    )


@SUITE.check("js.start.held", "SHOULD", "3.1")
async def open_sessions_are_refused(stage: Stage) -> None:
    """A session that another process has open is refused."""
    session_id = new_session_id()
    async with stage.agent("--session-id", session_id) as agent:
        await ask(stage, agent, "hello")
        await _refuses(stage, "`--resume` of a session that is open elsewhere", "--resume", session_id)
        await ask(stage, agent, "hello")


@SUITE.check("js.start.odd-id", "SHOULD", "3.1")
async def ids_may_hold_anything(stage: Stage) -> None:
    """A session id may contain any characters; it is never used as a path."""
    folder = f"conform-{uuid.uuid4()}"
    session_id = f"../../{folder}/ä:%2f*"
    await _with_session(stage, session_id)
    await _says(stage, session_id, "--resume", session_id)
    if (stage.workspace.parent.parent / folder).exists():
        raise Broken("the session id was used as a path")


@SUITE.check("js.start.unknown-provider", "MUST", "4.3")
async def unknown_providers_are_refused(stage: Stage) -> None:
    """An unknown provider is an error before `ready`."""
    await _refuses(stage, "an unknown provider", "--provider", "conform-no-such-provider")


@SUITE.check("js.start.unknown-flag", "SHOULD", "4.3")
async def unknown_flags_are_refused(stage: Stage) -> None:
    """An unknown flag is an error before `ready`."""
    await _refuses(stage, "an unknown flag", "--conform-no-such-flag")


@SUITE.check("js.start.no-key", "SHOULD", "4.3")
async def missing_keys_are_told(stage: Stage) -> None:
    """A provider whose API key is not set is an error before `ready`."""
    flags = ("--provider", "anthropic", "--model", "conform-model")
    agent = await stage.start(*flags, without=_is_key)
    if any(map(is_ready, await agent.collect(is_ready, stage.target.timeout))):
        raise NotExercised("the agent needs no key")
    await agent.close()
    await _refuses(stage, "a missing key", *flags, without=_is_key)


def _is_key(name: str) -> bool:
    return name.endswith("API_KEY")
