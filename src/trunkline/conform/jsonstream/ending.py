"""Checks of the end: standard input closes or SIGTERM comes, whatever the agent is doing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from trunkline.conform.jsonstream.processes import TICKING, is_still, ticks
from trunkline.conform.jsonstream.scenes import ends, of, request, running, streaming
from trunkline.conform.jsonstream.stage import Stage
from trunkline.conform.jsonstream.subject import Subject
from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.kit import Broken, Check, NotExercised

#: How soon an agent should be gone: a host that quits does not wait longer.
EXIT_SECONDS = 2.0
#: What the shell says of a process that SIGTERM ended.
TERMINATED = 143

Situation = Callable[[Stage, Subject], Awaitable[None]]
Ending = Callable[[Subject], None]


async def _idle(stage: Stage, agent: Subject) -> None:
    """Nothing is going on."""


async def _streaming(stage: Stage, agent: Subject) -> None:
    await streaming(stage, agent)


async def _pending(stage: Stage, agent: Subject) -> None:
    await request(stage, agent, "write", "edit")


async def _tool(stage: Stage, agent: Subject) -> None:
    wanted = await request(stage, agent, "bash", "exec", command=TICKING)
    await running(stage, agent, wanted)
    await ticks(stage)


SITUATIONS: dict[str, tuple[Situation, str]] = {
    "idle": (_idle, "when idle"),
    "streaming": (_streaming, "during an answer"),
    "pending": (_pending, "while a call is waiting for approval"),
    "tool": (_tool, "while a tool is running"),
}
ENDINGS: dict[str, tuple[Ending, str, int]] = {
    "eof": (Subject.close_input, "the end of standard input", 0),
    "sigterm": (Subject.terminate, "SIGTERM", TERMINATED),
}


def _exits(ending: Ending, what: str, situation: Situation, when: str) -> Callable[[Stage], Awaitable[None]]:
    async def scene(stage: Stage) -> None:
        async with stage.agent() as agent:
            await situation(stage, agent)
            ending(agent)
            if await agent.exit_code(stage.target.patience) is None:
                raise Broken(f"still running {stage.target.patience:g} s after {what} {when}")

    return scene


def _exits_well(ending: Ending, what: str, status: int) -> Callable[[Stage], Awaitable[None]]:
    async def scene(stage: Stage) -> None:
        tried = 0
        for situation, when in SITUATIONS.values():
            async with stage.agent() as agent:
                try:
                    await situation(stage, agent)
                except NotExercised:
                    continue
                tried += 1
                ending(agent)
                found = await agent.exit_code(EXIT_SECONDS)
                if found is None:
                    raise Broken(f"still running {EXIT_SECONDS:g} s after {what} {when}")
                if found != status:
                    raise Broken(f"the exit status is {found} after {what} {when}")
        if tried < len(SITUATIONS):
            raise NotExercised(f"only {tried} of {len(SITUATIONS)} situations could be set up")

    return scene


def _leaves_nothing(ending: Ending, what: str) -> Callable[[Stage], Awaitable[None]]:
    async def scene(stage: Stage) -> None:
        async with stage.agent() as agent:
            await _tool(stage, agent)
            ending(agent)
            if await agent.exit_code(stage.target.patience) is None:
                raise NotExercised(f"the agent does not exit after {what}")
            if not await is_still(stage):
                raise Broken(f"a tool's command is still running after the agent exited after {what}")

    return scene


for _name, (_ending, _what, _status) in ENDINGS.items():
    for _place, (_situation, _when) in SITUATIONS.items():
        SUITE.add(
            Check(f"js.{_name}.{_place}", "MUST", "3.5", f"The agent exits after {_what}, {_when}."),
            _exits(_ending, _what, _situation, _when),
        )
    SUITE.add(
        Check(
            f"js.{_name}.status",
            "SHOULD",
            "3.5",
            f"After {_what} the exit status is {_status}, within {EXIT_SECONDS:g} s, whatever was going on.",
        ),
        _exits_well(_ending, _what, _status),
    )
    SUITE.add(
        Check(
            f"js.{_name}.children", "MUST", "3.5", f"The agent cleans up after {_what}: no process of a tool is left."
        ),
        _leaves_nothing(_ending, _what),
    )


@SUITE.check("js.eof.unfinished-line", "SHOULD", "3.5")
async def unfinished_lines_are_read(stage: Stage) -> None:
    """A last line without a line feed is still read."""
    async with stage.agent() as agent:
        await agent.write(b'{"type":"conform_no_such_command"}')
        agent.close_input()
        await agent.expect("`error` for an unfinished last line", of("error"), stage.target.patience)


@SUITE.check("js.eof.ends-turn", "SHOULD", "1.9")
async def cut_off_turns_end(stage: Stage) -> None:
    """A turn interrupted by the end of standard input gets its `stream_end`."""
    async with stage.agent() as agent:
        msg_id = await streaming(stage, agent)
        agent.close_input()
        await agent.expect("`stream_end` after the end of standard input", ends(msg_id), stage.target.patience)
