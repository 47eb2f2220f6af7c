"""The client's files and terminals over a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tests.wires.acp.test_peer import Handler, Lines, at_once
from trunkline.core.client_tools import CommandEnd, CommandOutput
from trunkline.core.faults import ToolError
from trunkline.wires.acp import client_tools
from trunkline.wires.acp.client_tools import ClientTools
from trunkline.wires.acp.codec import JsonRpcError, RpcAnswer
from trunkline.wires.acp.messages_start import ClientCapabilities, FileSystemCapabilities
from trunkline.wires.acp.peer import AcpPeer

BOTH = FileSystemCapabilities(read_text_file=True, write_text_file=True)


class Client:
    """A client at the other end, which answers each request by its method."""

    def __init__(self, capabilities: ClientCapabilities, **answers: Any) -> None:
        self.lines = Lines()
        self.peer = AcpPeer(self.lines, Handler(at_once), requests={}, notifications={})
        self.settled = 0
        self.tools = ClientTools(self.peer, "s1", capabilities, self._settle)
        self._answers = {name.replace("__", "/"): answer for name, answer in answers.items()}

    async def _settle(self) -> None:
        self.settled += 1

    async def answer(self, asking: Any) -> Any:
        """What comes of asking, when each request is answered as it was agreed."""
        task = asyncio.ensure_future(asking)
        answered = 0
        while not task.done():
            await asyncio.sleep(0)
            for message in self.asked[answered:]:
                answered += 1
                said = self._answers[message["method"]]
                fault = said if isinstance(said, JsonRpcError) else None
                self.peer.take(RpcAnswer(message["id"], None if fault else said, fault))
        return task.result()

    @property
    def asked(self) -> list[Mapping[str, Any]]:
        return [line for line in self.lines.sent if "id" in line]


def test_a_client_that_offers_nothing_is_not_asked_for_anything() -> None:
    assert Client(ClientCapabilities()).tools.change("m1") is None


async def test_files_are_read_and_written() -> None:
    client = Client(ClientCapabilities(BOTH), fs__read_text_file={"content": "text"}, fs__write_text_file=None)
    change = client.tools.change("m1")
    assert change is not None
    assert (change.message, change.terminal) == ("m1", None)
    assert change.files is not None
    assert await client.answer(change.files.read_text("/a")) == "text"
    await client.answer(change.files.write_text("/a", "new"))
    assert [(each["method"], each["params"]) for each in client.asked] == [
        ("fs/read_text_file", {"sessionId": "s1", "path": "/a"}),
        ("fs/write_text_file", {"sessionId": "s1", "path": "/a", "content": "new"}),
    ]


@pytest.mark.parametrize("reads", [True, False])
def test_what_is_offered_of_the_files_is_told(reads: bool) -> None:
    change = Client(ClientCapabilities(FileSystemCapabilities(reads, not reads))).tools.change("m1")
    assert change is not None
    assert change.files is not None
    assert (change.files.can_read, change.files.can_write) == (reads, not reads)


async def test_a_command_runs_in_a_terminal_that_is_shown_with_its_call() -> None:
    client = Client(
        ClientCapabilities(terminal=True),
        terminal__create={"terminalId": "t1"},
        terminal__wait_for_exit={"exitCode": 2},
        terminal__output={"output": "said", "truncated": True, "exitStatus": {"signal": "SIGTERM"}},
        terminal__kill={},
        terminal__release=None,
    )
    change = client.tools.change("m1")
    assert change is not None
    assert change.terminal is not None
    creating = change.terminal.create(["sh", "-c", "x"], cwd="/w", env={"A": "b"}, output_limit=9, call_id="c1")
    command = await client.answer(creating)
    assert client.asked[0]["params"] == {
        "sessionId": "s1",
        "command": "sh",
        "args": ["-c", "x"],
        "env": [{"name": "A", "value": "b"}],
        "cwd": "/w",
        "outputByteLimit": 9,
    }
    (told,) = [line for line in client.lines.sent if "id" not in line]
    assert told["params"]["update"] == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c1",
        "content": [{"type": "terminal", "terminalId": "t1"}],
    }
    # The call itself was told before.
    assert client.settled == 1
    assert client.tools.shows("c1")
    assert not client.tools.shows("c2")
    assert await client.answer(command.wait_for_exit()) == CommandEnd(2)
    assert await client.answer(command.output()) == CommandOutput("said", True, CommandEnd(signal="SIGTERM"))
    await client.answer(command.kill())
    await client.answer(command.release())
    assert {each["params"].get("terminalId", "t1") for each in client.asked} == {"t1"}


async def test_what_the_client_says_against_it_is_told_as_it_is() -> None:
    client = Client(ClientCapabilities(BOTH), fs__read_text_file=JsonRpcError(-32002, "No such buffer"))
    change = client.tools.change("m1")
    assert change is not None
    assert change.files is not None
    with pytest.raises(ToolError, match="No such buffer"):
        await client.answer(change.files.read_text("/a"))
    client.peer.end()
    with pytest.raises(ToolError, match="closed the connection"):
        await client.answer(change.files.read_text("/a"))


async def test_terminals_that_were_shown_are_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_tools, "MOST_SHOWN", 2)
    client = Client(ClientCapabilities(terminal=True))
    for call in ("c1", "c2", "c3"):
        await client.tools.show(call, "t")
    assert [client.tools.shows(call) for call in ("c1", "c2", "c3")] == [False, True, True]
