"""JSON-RPC in lines: what is a message, what is not, and how each is answered."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.core.event_strategies import json_values
from trunkline.base import shapes
from trunkline.core import fault_kinds, faults
from trunkline.core.fault_table import CRASHED, TABLE
from trunkline.core.ids import can_be_id
from trunkline.wires import jsonrpc
from trunkline.wires.acp import codec, messages
from trunkline.wires.acp.codec import JsonRpcError, RpcAnswer, RpcBroken, RpcNotification, RpcReader, RpcRequest
from trunkline.wires.acp.messages_base import AcpResult
from trunkline.wires.acp.messages_client import OptionSelected, PermissionCancelled, RequestPermissionResponse
from trunkline.wires.acp.messages_content import (
    ImageBlock,
    OtherToolContent,
    ResourceBlock,
    ResourceContents,
    ResourceLinkBlock,
    ShownContent,
    ShownDiff,
    TextBlock,
    ToolCallLocation,
)
from trunkline.wires.acp.messages_sessions import HttpMcpServer, NamedValue, SseMcpServer, StdioMcpServer
from trunkline.wires.acp.messages_start import (
    AgentAuthMethod,
    ClientCapabilities,
    EnvVarAuthMethod,
    FileSystemCapabilities,
    InitializeRequest,
    InitializeResponse,
)
from trunkline.wires.acp.messages_updates import (
    AgentMessageChunk,
    CurrentModeUpdate,
    OtherUpdate,
    SessionNotification,
    ToolCallProgress,
    ToolCallStart,
)


def line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def test_requests_notifications_and_answers_are_told_apart() -> None:
    assert codec.decode(line(id=1, method="m", params={"a": 1})) == RpcRequest(1, "m", {"a": 1})
    assert codec.decode(line(method="m")) == RpcNotification("m")
    assert codec.decode(line(id=1, result={"a": 1})) == RpcAnswer(1, {"a": 1})
    assert codec.decode(line(id=1, result=None)) == RpcAnswer(1)


@pytest.mark.parametrize("id", ["a", "", 0, -1, 1.5, None, 2**70])
def test_ids_are_strings_numbers_or_null(id: Any) -> None:
    assert codec.decode(line(id=id, method="m")) == RpcRequest(id, "m")


@pytest.mark.parametrize(
    ("data", "code", "id"),
    [
        (b"{", jsonrpc.PARSE_ERROR, None),
        (b"hello", jsonrpc.PARSE_ERROR, None),
        (b"\xff\xfe", jsonrpc.PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":NaN}', jsonrpc.PARSE_ERROR, None),
        (b"[" * 100_000, jsonrpc.PARSE_ERROR, None),
        (b"[]", jsonrpc.INVALID_REQUEST, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', jsonrpc.INVALID_REQUEST, None),
        (b"1", jsonrpc.INVALID_REQUEST, None),
        (b'"text"', jsonrpc.INVALID_REQUEST, None),
        (b"null", jsonrpc.INVALID_REQUEST, None),
        (b"{}", jsonrpc.INVALID_REQUEST, None),
        (b'{"id":7,"method":"m"}', jsonrpc.INVALID_REQUEST, 7),
        (b'{"jsonrpc":"1.0","id":"x","method":"m"}', jsonrpc.INVALID_REQUEST, "x"),
        (b'{"jsonrpc":"2.0","id":7}', jsonrpc.INVALID_REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', jsonrpc.INVALID_REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', jsonrpc.INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"m"}', jsonrpc.INVALID_REQUEST, None),
        (line(id="x" * 2000, method="m"), jsonrpc.INVALID_REQUEST, None),
    ],
)
def test_what_is_no_message_has_its_number_and_the_id_that_it_names(data: bytes, code: int, id: Any) -> None:
    found = codec.decode(data)
    assert isinstance(found, RpcBroken)
    assert (found.error.code, found.id) == (code, id)


def test_an_error_is_read_whatever_it_lacks() -> None:
    for said, code in [({"code": -1, "message": "m"}, -1), ({}, -32603), ("no", -32603), ({"code": "x"}, -32603)]:
        found = codec.decode(line(id=1, error=said))
        assert isinstance(found, RpcAnswer)
        assert found.error is not None
        assert found.error.code == code
        assert str(found.error)


def test_a_line_over_the_limit_is_an_error_and_the_next_is_read() -> None:
    reader = RpcReader(100)
    found = reader.feed(b"x" * 5000 + b"\n\n   \n" + line(id=1, method="m") + b"\n")
    assert isinstance(found[0], RpcBroken)
    assert found[0].error.code == jsonrpc.INVALID_REQUEST
    assert "limit of 100 bytes" in str(found[0].error)
    assert found[1:] == [RpcRequest(1, "m")]


def test_a_last_line_may_lack_its_line_feed() -> None:
    reader = RpcReader()
    assert reader.feed(line(method="m")) == []
    assert reader.finish() == [RpcNotification("m")]


@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange(data: bytes) -> None:
    reader = RpcReader()
    for message in [*reader.feed(data + b"\n"), *reader.finish()]:
        assert isinstance(message, RpcRequest | RpcNotification | RpcAnswer | RpcBroken)


@given(st.data(), st.sampled_from([*messages.AGENT_REQUESTS.values(), *messages.CLIENT_REQUESTS.values()]))
def test_whatever_the_params_are_they_are_taken_or_refused(data: st.DataObject, kind: Any) -> None:
    params: Any = data.draw(json_values)
    with suppress(JsonRpcError):
        assert isinstance(codec.decode_params(kind, params), kind)


@pytest.mark.parametrize("params", [[], "text", 5, True])
def test_params_that_are_no_object_are_bad_params(params: Any) -> None:
    with pytest.raises(JsonRpcError, match="`params` must be an object") as raised:
        codec.decode_params(InitializeRequest, params)
    assert raised.value.code == jsonrpc.INVALID_PARAMS


def test_a_bad_member_is_named_by_its_path() -> None:
    params = {"cwd": "/", "mcpServers": [{"name": "x", "command": 5}]}
    with pytest.raises(JsonRpcError, match=r"Invalid `session/new`: `mcpServers.0.command` must be a string"):
        codec.decode_params(messages.NewSessionRequest, params)


def test_members_that_nobody_knows_are_ignored() -> None:
    params = {
        "protocolVersion": 1,
        "clientCapabilities": {"fs": {"readTextFile": True, "new": 1}, "elicitation": {}, "terminal": None},
        "_meta": {"x": 1},
        "new": [],
    }
    found = codec.decode_params(InitializeRequest, params)
    assert found == InitializeRequest(1, ClientCapabilities(FileSystemCapabilities(read_text_file=True)))


def test_a_prompt_is_read_block_by_block() -> None:
    prompt = [
        {"type": "text", "text": "hi", "annotations": {"priority": 1}},
        {"type": "image", "data": "AAE=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain", "size": 3},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "b"}},
        {"type": "resource", "resource": {"uri": "file:///c", "blob": "AA==", "mimeType": "x/y"}},
    ]
    found = codec.decode_params(messages.PromptRequest, {"sessionId": "s", "prompt": prompt, "_meta": {"m": 1}})
    assert found.prompt == (
        TextBlock("hi", {"priority": 1}),
        ImageBlock(b"\0\1", "image/png"),
        ResourceLinkBlock("file:///a", "a", mime_type="text/plain", size=3),
        ResourceBlock(ResourceContents("file:///b", text="b")),
        ResourceBlock(ResourceContents("file:///c", "x/y", blob=b"\0")),
    )
    assert found.meta == {"m": 1}
    with pytest.raises(JsonRpcError, match=r"`prompt.0.type` must be one of"):
        codec.decode_params(messages.PromptRequest, {"sessionId": "s", "prompt": [{"type": "smell"}]})
    image = {"type": "image", "data": "%", "mimeType": "image/png"}
    with pytest.raises(JsonRpcError, match=r"`prompt.0.data` must be base64"):
        codec.decode_params(messages.PromptRequest, {"sessionId": "s", "prompt": [image]})


def test_an_mcp_server_without_a_type_is_a_program() -> None:
    servers = [
        {"name": "a", "command": "/bin/a", "args": ["x"], "env": [{"name": "K", "value": "v"}]},
        {"type": "http", "name": "b", "url": "http://b", "headers": [{"name": "H", "value": "v"}]},
        {"type": "sse", "name": "c", "url": "http://c", "headers": []},
        {"type": "stdio", "name": "d", "command": "d"},
    ]
    found = codec.decode_params(messages.NewSessionRequest, {"cwd": "/", "mcpServers": servers})
    assert found.mcp_servers == (
        StdioMcpServer("a", "/bin/a", ("x",), (NamedValue("K", "v"),)),
        HttpMcpServer("b", "http://b", (NamedValue("H", "v"),)),
        SseMcpServer("c", "http://c"),
        StdioMcpServer("d", "d"),
    )


@pytest.mark.parametrize(
    ("update", "value"),
    [
        (
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}, "messageId": "m"},
            AgentMessageChunk(TextBlock("a"), "m"),
        ),
        (
            {
                "sessionUpdate": "tool_call",
                "toolCallId": "c",
                "title": "Edit",
                "kind": "edit",
                "status": "pending",
                "content": [{"type": "diff", "path": "/a", "newText": "b", "oldText": "a"}],
                "locations": [{"path": "/a", "line": 3}],
                "rawInput": {"x": 1},
            },
            ToolCallStart(
                "c", "Edit", "edit", "pending", (ShownDiff("/a", "b", "a"),), (ToolCallLocation("/a", 3),), {"x": 1}
            ),
        ),
        (
            {
                "sessionUpdate": "tool_call_update",
                "toolCallId": "c",
                "status": "completed",
                "content": [{"type": "content", "content": {"type": "text", "text": "done"}}],
            },
            ToolCallProgress("c", status="completed", content=(ShownContent(TextBlock("done")),)),
        ),
        ({"sessionUpdate": "current_mode_update", "currentModeId": "yolo"}, CurrentModeUpdate("yolo")),
    ],
)
def test_updates_survive_the_way_to_json_and_back(update: dict[str, Any], value: Any) -> None:
    notification = SessionNotification("s", value)
    sent = json.loads(codec.encode_notification(notification))
    assert sent["params"] == {"sessionId": "s", "update": update}
    assert codec.decode_params(SessionNotification, sent["params"]) == notification


def test_updates_and_contents_that_nobody_knows_are_kept_as_they_are() -> None:
    update = {"sessionUpdate": "dream", "x": 1}
    found = codec.decode_params(SessionNotification, {"sessionId": "s", "update": update})
    assert found.update == OtherUpdate(update)
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": [{"type": "hologram"}], "kind": "paint"}
    found = codec.decode_params(SessionNotification, {"sessionId": "s", "update": call})
    assert found.update.content == (OtherToolContent({"type": "hologram"}),)


def test_answers_are_read_and_null_is_an_answer_that_says_nothing() -> None:
    assert codec.decode_result(AcpResult, None, "m") == AcpResult()
    chosen = {"outcome": {"outcome": "selected", "optionId": "o"}}
    assert codec.decode_result(RequestPermissionResponse, chosen, "m").outcome == OptionSelected("o")
    gone = {"outcome": {"outcome": "cancelled"}}
    assert codec.decode_result(RequestPermissionResponse, gone, "m").outcome == PermissionCancelled()
    with pytest.raises(faults.RemoteProtocolError, match="The answer to `m` is not one"):
        codec.decode_result(RequestPermissionResponse, {"outcome": {"outcome": "maybe"}}, "m")


def test_ways_to_log_in_are_told_apart_by_their_type() -> None:
    methods = [
        {"type": "env_var", "id": "a", "name": "A", "vars": [{"name": "K"}]},
        {"id": "b", "name": "B"},
    ]
    found = codec.decode_result(InitializeResponse, {"protocolVersion": 1, "authMethods": methods}, "initialize")
    assert [type(method) for method in found.auth_methods] == [EnvVarAuthMethod, AgentAuthMethod]


@given(st.sampled_from(("agent_message_chunk", "agent_thought_chunk")), st.text(), st.text().filter(can_be_id))
@example("agent_message_chunk", "hi", 'a"b\\')
def test_the_short_way_to_write_a_chunk_says_the_same(kind: str, text: str, session: str) -> None:
    sent = json.loads(codec.text_line(kind, session, text, "m"))
    update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}, "messageId": "m"}
    assert sent == {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}}


def test_a_chunk_may_hold_half_a_character() -> None:
    assert json.loads(codec.text_line("agent_message_chunk", "s", "\ud800"))["params"]["update"]["content"]["text"] == (
        "\ud800"
    )


def test_a_fault_is_told_by_its_number_and_its_kind() -> None:
    sent = json.loads(codec.encode_error(1, faults.SessionNotFound("There is no session `x`.")))
    assert sent["error"] == {
        "code": jsonrpc.RESOURCE_NOT_FOUND,
        "message": "There is no session `x`.",
        "data": {"kind": "session_not_found", "retryable": False},
    }
    sent = json.loads(codec.encode_error("a", JsonRpcError(-5, "No", [1])))
    assert sent == {"jsonrpc": "2.0", "id": "a", "error": {"code": -5, "message": "No", "data": [1]}}
    assert CRASHED in codec.encode_error(1, fault_kinds.of(ValueError("secret"))).decode()
    assert all(-32899 <= form.jsonrpc <= -32000 for form in TABLE.values())


def test_what_is_not_json_is_a_fault_of_ours() -> None:
    update = ToolCallStart("c", raw_input={"x": object()})
    with pytest.raises(faults.LocalProtocolError, match="`session/update` cannot be written"):
        codec.encode_notification(SessionNotification("s", update))


def test_every_request_and_notification_can_be_described_by_a_schema() -> None:
    tables = (messages.AGENT_REQUESTS, messages.CLIENT_REQUESTS)
    for kind in [kind for table in tables for kind in table.values()]:
        assert shapes.schema(kind)["type"] == "object"
