"""The Bash tool in the client's own terminal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.editor import EditorCommand, EditorTerminal
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.client_tools import CommandEnd
from trunkline.tools import bash_client
from trunkline.tools.bash import BashTool
from trunkline.tools.bash_client import OUTPUT_BYTES
from trunkline.tools.client_side import ClientSide
from trunkline.tools.tool import CALL_ID, Interrupted, ToolOutput

OK = CommandEnd(0)


@pytest.fixture
def client() -> ClientSide:
    return ClientSide()


@pytest.fixture
async def tool(tmp_path: Path, client: ClientSide) -> AsyncIterator[BashTool]:
    made = BashTool(str(tmp_path), shell="/bin/sh", client=client)
    yield made
    await made.close()


def ignore(_: str) -> None:
    """For tests that do not look at the reports."""


async def run(tool: BashTool, command: str = "make", **more: object) -> ToolOutput:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await tool.run({"command": command, **more}, ignore)


async def test_a_command_runs_where_its_user_sees_it(tool: BashTool, client: ClientSide, tmp_path: Path) -> None:
    command = EditorCommand("made\n", OK)
    terminal = EditorTerminal(command)
    client.use(terminal=terminal)
    CALL_ID.set("call-1")
    assert await run(tool) == ToolOutput("Exit code: 0\nOUTPUT:\nmade\n", "success", foreign=True)
    ((argv, cwd, env, limit, call_id),) = terminal.created
    assert (argv, cwd, limit, call_id) == (["/bin/sh", "-c", "make"], str(tmp_path), OUTPUT_BYTES, "call-1")
    assert env["PAGER"] == "cat"
    assert "HOME" not in env  # the user's own environment is the terminal's already
    assert command.asked == ["wait", "output", "release"]


@pytest.mark.parametrize(
    ("end", "headline"),
    [
        (CommandEnd(3), "Exit code: 3"),
        (CommandEnd(signal="SIGSEGV"), "The signal SIGSEGV ended the command"),
        (CommandEnd(), "The command ended without an exit code"),
    ],
)
async def test_the_end_of_a_command_is_told_as_it_was(
    tool: BashTool, client: ClientSide, end: CommandEnd, headline: str
) -> None:
    command = EditorCommand("", end)
    command.cut = True
    client.use(terminal=EditorTerminal(command))
    output = await run(tool)
    assert output.status == "error"
    assert output.text.startswith(headline)
    assert "beginning was not kept" in output.text


async def test_a_command_is_killed_when_its_time_is_over(tool: BashTool, client: ClientSide) -> None:
    command = EditorCommand("so far")
    client.use(terminal=EditorTerminal(command))
    output = await run(tool, timeout=1)
    assert output == ToolOutput("Command timed out after 1ms\nOUTPUT:\nso far", "error", foreign=True)
    assert command.asked == ["wait", "kill", "output", "release"]


async def test_a_stop_kills_the_command_and_keeps_what_it_printed(tool: BashTool, client: ClientSide) -> None:
    command = EditorCommand("so far")
    client.use(terminal=EditorTerminal(command))
    running = asyncio.ensure_future(run(tool))
    await until(lambda: command.asked)
    running.cancel()
    with pytest.raises(Interrupted) as stopped:
        await running
    assert "so far" in stopped.value.output.text
    await until(lambda: command.asked == ["wait", "kill", "output", "release"])


async def test_a_command_that_starts_after_the_stop_is_ended_at_once(tool: BashTool, client: ClientSide) -> None:
    command = EditorCommand()
    terminal = EditorTerminal(command)
    terminal.starts.clear()
    client.use(terminal=terminal)
    running = asyncio.ensure_future(run(tool))
    await until(lambda: terminal.created)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    terminal.starts.set()
    await until(lambda: command.asked == ["kill", "output", "release"])


async def test_what_the_editor_says_against_it_is_the_tools_error(
    tool: BashTool, client: ClientSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.use(terminal=EditorTerminal())
    assert (await run(tool)).text == "The command could not be started: the editor shows no terminal"
    monkeypatch.setattr(bash_client, "CLIENT_SECONDS", 0.01)
    terminal = EditorTerminal()
    terminal.starts.clear()
    client.use(terminal=terminal)
    assert "did not answer within" in (await run(tool)).text
    terminal.starts.set()


async def test_an_editor_that_is_gone_in_the_middle_ends_the_call(tool: BashTool, client: ClientSide) -> None:
    command = EditorCommand()
    client.use(terminal=EditorTerminal(command))
    running = asyncio.ensure_future(run(tool))
    await until(lambda: command.asked)
    command.lost = True
    command.ended.set()
    output = await running
    assert output.status == "error"
    assert "the connection has ended" in output.text
    await until(lambda: command.asked[-1] == "release")


async def test_people_hear_that_a_command_still_runs(
    tool: BashTool, client: ClientSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bash_client, "PROGRESS_SECONDS", 0.001)
    command = EditorCommand()
    client.use(terminal=EditorTerminal(command))
    said: list[str] = []
    running = asyncio.ensure_future(tool.run({"command": "make"}, said.append))
    await until(lambda: said)
    await command.kill()
    await running
    assert "still running" in said[0]
