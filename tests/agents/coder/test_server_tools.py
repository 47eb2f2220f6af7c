"""The MCP servers of a conversation: what the model is told of their tools, and what people see of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.agents.coder.test_conversation import Talk, notices, talking
from tests.agents.coder.test_history import Notebook
from tests.support.conversations import unmarked
from tests.support.fake_model import Reply, call, calls, words
from tests.support.mcp_client import small
from trunkline.agents.coder.settings_mcp import mcp_servers
from trunkline.core.agent import AddMcpServer
from trunkline.core.events import Event, Notice, ToolRequested
from trunkline.core.faults import Mistyped
from trunkline.models.messages import ToolResultBlock
from trunkline.tools.tool_search import MOST_OFFERED

pytestmark = pytest.mark.process

BROKEN = AddMcpServer("broken", "stdio", command="/no/such/program")
#: The tools that the small server has anyway are counted, too.
MANY = f"--many={MOST_OFFERED}"


def offered(talk: Talk) -> list[str]:
    return [tool.name for tool in talk.model.requests[-1].tools]


def search_of(talk: Talk) -> str:
    return next(tool.description for tool in talk.model.requests[-1].tools if tool.name == "ToolSearch")


def result(talk: Talk) -> str:
    (block,) = talk.model.asked[-1].content
    assert isinstance(block, ToolResultBlock)
    return block.text


async def test_few_tools_go_out_whole(tmp_path: Path) -> None:
    async with talking(tmp_path, words("ok"), mcp_servers=(small("--many=5"),)) as talk:
        await talk.say("hi")
        assert {"many_0", "many_4", "echo"} <= set(offered(talk))
        assert "ToolSearch" not in offered(talk)


async def test_of_many_tools_only_names_go_out_and_a_search_brings_the_rest(tmp_path: Path) -> None:
    replies: list[Reply] = [
        calls(call("ToolSearch", query="owls")),
        calls(call("many_7", "t2", word="hoo")),
        words("ok"),
    ]
    async with talking(tmp_path, *replies, mcp_servers=(small(MANY),)) as talk:
        events = await talk.say("count the owls")
        first, second, third = talk.model.requests
        assert not [tool.name for tool in first.tools if tool.name.startswith("many")]
        described = next(tool.description for tool in first.tools if tool.name == "ToolSearch")
        assert all(f"many_{number}" in described for number in range(MOST_OFFERED))
        (brought,) = [tool for tool in second.tools if tool.name.startswith("many")]
        assert (brought.name, brought.schema["required"]) == ("many_7", ["word"])
        assert second.system == third.system
        assert unmarked(result(talk)) == '{"word": "hoo"}'
        asked = {event.name: event.asking for event in events if isinstance(event, ToolRequested)}
        assert asked == {"ToolSearch": "allow", "many_7": ""}


async def test_what_a_search_has_brought_is_still_there_when_the_session_is_resumed(tmp_path: Path) -> None:
    search: list[Reply] = [calls(call("ToolSearch", query="select:many_3")), words("ok")]
    async with talking(tmp_path, *search, mcp_servers=(small(MANY),)) as talk:
        await talk.say("bring it")
        await talk.say("/clear")
        notebook = Notebook(*talk.notebook.kept)
    async with talking(tmp_path, words("ok"), mcp_servers=(small(MANY),), notebook=notebook) as talk:
        await talk.say("go on")
        assert [name for name in offered(talk) if name.startswith("many")] == ["many_3"]


async def test_a_deferred_tool_that_is_called_blindly_works_or_says_how(tmp_path: Path) -> None:
    replies: list[Reply] = [calls(call("many_1")), calls(call("many_1", "t2", word="x")), words("ok")]
    async with talking(tmp_path, *replies, mcp_servers=(small(MANY),)) as talk:
        await talk.say("go")
        (wrong,) = talk.model.requests[1].messages[-1].content
        assert isinstance(wrong, ToolResultBlock)
        assert "`select:many_1`" in wrong.text
        assert unmarked(result(talk)) == '{"word": "x"}'


async def test_a_server_may_be_deferred_always(tmp_path: Path) -> None:
    servers = (small("--many=2", deferred=True), small("--no-tools", name="other"))
    async with talking(tmp_path, words("ok"), mcp_servers=servers) as talk:
        await talk.say("hi")
        assert "many_0" not in offered(talk)
        assert "many_0, many_1" in search_of(talk)


async def test_sub_agents_search_for_themselves(tmp_path: Path) -> None:
    task = {"name": "a", "prompt": "Look."}
    replies: list[Reply] = [
        calls(call("ToolSearch", query="select:many_3")),
        calls(call("Spawn", "t2", tasks=[task])),
        words("done"),
        words("ok"),
    ]
    async with talking(tmp_path, *replies, mcp_servers=(small(MANY),)) as talk:
        await talk.say("go")
        mine, theirs = talk.model.requests[1].tools, talk.model.requests[2].tools
        assert "many_3" in {tool.name for tool in mine}
        assert "many_3" not in {tool.name for tool in theirs}
        assert "ToolSearch" in {tool.name for tool in theirs}


async def test_people_see_each_server_its_state_and_its_tools(tmp_path: Path) -> None:
    async with talking(tmp_path, words("ok"), mcp_servers=(small("--many=1"), BROKEN)) as talk:
        await talk.say("hi")
        (shown,) = notices(await talk.say("/mcp"))
        good, bad = shown.splitlines()
        assert good.startswith("small: connected, ")
        assert "many_0" in good
        assert bad.startswith("broken: failed: MCP server `broken` could not be started")
        (tools,) = notices(await talk.say("/mcp small"))
        assert "  many_0: Counts ants in the garden." in tools.splitlines()
        with pytest.raises(Mistyped, match=r"no MCP server `smal`.*small"):
            await talk.say("/mcp smal")
        with pytest.raises(Mistyped, match="No MCP server is named"):
            await talk.say("/mcp reconnect")


async def test_a_server_is_connected_anew_when_somebody_asks_for_it(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    broken = small("--die", name="broken")
    async with talking(tmp_path, words("ok"), mcp_servers=(small("--starts", str(starts)), broken)) as talk:
        await talk.say("hi")
        (shown,) = notices(await talk.say("/mcp reconnect small"))
        assert shown.startswith("MCP server `small` is connected: ")
        assert len(starts.read_text().split()) == 2
        (shown,) = notices(await talk.say("/mcp reconnect broken"))
        assert "`broken` ended with exit code" in shown
        (shown,) = notices(await talk.say("/mcp"))
        assert [line.partition(",")[0].partition(":")[0] for line in shown.splitlines()] == ["small", "broken"]


async def test_without_servers_that_is_said(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        assert notices(await talk.say("/mcp")) == ["There are no MCP servers."]


async def test_each_server_has_its_own_time_to_start(tmp_path: Path) -> None:
    heard: list[Event] = []
    servers = (small("--hang", startup_timeout_ms=50),)
    async with talking(tmp_path, words("ok"), mcp_servers=servers, announce=heard.append) as talk:
        await talk.say("hi")
    (problem,) = [event.message for event in heard if isinstance(event, Notice)]
    assert "`small` did not answer within 0.05 s" in problem


def test_the_keys_of_a_server_are_read() -> None:
    table: Mapping[str, Any] = {"command": "x", "startup_timeout_ms": 5, "deferred": True, "oauth": True}
    (server,) = mcp_servers({"s": table}, {}).servers
    assert (server.startup_timeout_ms, server.deferred, server.oauth) == (5, True, True)
