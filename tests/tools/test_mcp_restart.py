"""A server that is lost is started again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.mcp_client import Watched, small, until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.tools.mcp import connection, server
from trunkline.tools.tool import ToolOutput

pytestmark = pytest.mark.process


@pytest.mark.usefixtures("quick_restart")
async def test_a_call_during_which_the_server_dies_says_so_and_is_not_repeated(client: Watched, tmp_path: Path) -> None:
    await client.connect(small("--starts", str(tmp_path / "starts")))
    output = await client.call("die")
    assert output.status == "error"
    assert output.text == (
        "MCP server `small` ended with exit code 7; its last words: something is badly wrong, while `die` was "
        "running. Whether the call had an effect is not known: check before you repeat it. Later calls wait until "
        "the server is back."
    )
    await until(lambda: len(client.ready) == 2)
    assert (tmp_path / "starts").read_text() == "start\n" * 2
    assert [name for name, _ in client.problems] == ["small"]


@pytest.mark.usefixtures("quick_restart")
async def test_the_next_call_waits_for_the_new_server(client: Watched) -> None:
    names = await client.connect(small())
    first = (await client.call("pid")).text
    await client.call("die")
    assert (await client.call("echo", a=1)).text == '{"a": 1}'
    assert (await client.call("pid")).text != first
    assert client.ready == [("small", names)] * 2


@pytest.mark.usefixtures("quick_restart")
async def test_the_tools_are_listed_again(client: Watched) -> None:
    names = await client.connect(small())
    await client.call("grow", name="extra")
    await until(lambda: len(client.ready) == 2)
    assert client.ready[-1] == ("small", (*names, "extra"))
    await client.call("die")
    await until(lambda: len(client.ready) == 3)
    assert client.ready[-1] == ("small", names)


async def test_one_that_announces_new_tools_all_the_time_is_not_asked_all_the_time(
    client: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "RELIST_SECONDS", 10 * PATIENCE_SECONDS)
    await client.connect(small("--restless"))
    await until(lambda: len(client.ready) == 2)
    for _ in range(20):
        await client.call("echo")
    assert len(client.ready) == 2


@pytest.mark.usefixtures("quick_restart")
async def test_one_that_dies_between_calls_is_started_again(client: Watched) -> None:
    await client.connect(small())
    os.kill(int((await client.call("pid")).text.split()[0]), 9)
    await until(lambda: len(client.ready) == 2)
    assert (await client.call("echo")).status == "success"
    assert "ended with exit code 137" in client.problems[0][1]


async def test_one_that_always_fails_is_left_alone_and_its_tools_say_so(
    client: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "FIRST_WAIT_SECONDS", 0.001)
    monkeypatch.setattr(server, "LONGEST_WAIT_SECONDS", 0.01)
    starts = tmp_path / "starts"
    await client.connect(small("--die-after-ready", "--starts", str(starts)))
    await until(lambda: client.problems and "left alone" in client.problems[-1][1])
    assert starts.read_text().count("start") == server.MAX_FAILURES
    output = await client.call("echo")
    assert output == ToolOutput(
        "MCP server `small` failed 8 times in a row and is left alone. Tell the user to check it and to use "
        "`/mcp reconnect small`, and go on without it.",
        "error",
    )


async def test_one_that_was_left_alone_can_be_added_again(client: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_FAILURES", 1)
    await client.connect(small())
    await client.call("die")
    await until(lambda: client.problems)
    assert (await client.call("echo")).status == "error"
    await client.connect(small())
    assert (await client.call("echo")).status == "success"


async def test_a_call_does_not_wait_for_ever(client: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "FIRST_WAIT_SECONDS", 600.0)
    monkeypatch.setattr(server, "RETURN_SECONDS", 0.05)
    await client.connect(small())
    await client.call("die")
    output = await client.call("echo")
    assert output.text.startswith("MCP server `small` was lost and is not back yet.")


def test_the_waits_grow_from_half_a_second_to_half_a_minute() -> None:
    assert (server.FIRST_WAIT_SECONDS, server.LONGEST_WAIT_SECONDS) == (0.5, 30.0)
