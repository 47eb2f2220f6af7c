"""How each kind of fault looks on each wire: one table, and every `serve` uses its column."""

from __future__ import annotations

from typing import Literal

from trunkline.base.values import Value

JsonStreamCode = Literal["provider_error", "tool_error", "config_error", "protocol_error", "internal_error"]


class WireForm(Value):
    """How one kind of fault looks on each wire."""

    jsonstream: JsonStreamCode
    """The `error.code`."""
    retryable: bool
    """Unless the fault itself knows better."""
    agentproc_exit: int
    """The exit code; the text goes out as `AGENT_ERROR:`."""
    http: int
    """The status of an answer over HTTP; see `runner/launcher_app.py`."""
    tryll: int
    """The `ErrorResponse.code`."""
    jsonrpc: int
    """The `error.code` of JSON-RPC; its `error.data` tells the kind."""


#: What every wire says of an agent that raised an exception.
CRASHED = "The agent failed. Its log says why."

TABLE: dict[str, WireForm] = {
    #                            jsonstream       retry  exit  http  tryll  jsonrpc
    "local_protocol": WireForm("internal_error", False, 1, 500, 5001, -32603),
    "remote_protocol": WireForm("protocol_error", False, 1, 400, 5001, -32600),
    "config": WireForm("config_error", False, 1, 400, 3003, -32603),
    "session_exists": WireForm("config_error", False, 1, 409, 3003, -32602),
    "session_not_found": WireForm("config_error", False, 1, 404, 3001, -32002),
    "session_held": WireForm("config_error", True, 1, 409, 3004, -32603),
    "session_damaged": WireForm("config_error", False, 1, 500, 3003, -32603),
    "unknown_agent": WireForm("config_error", False, 1, 404, 3003, -32602),
    "graph": WireForm("config_error", False, 1, 400, 3003, -32603),
    "unknown_node": WireForm("config_error", False, 1, 404, 3005, -32602),
    "fixed_parameter": WireForm("config_error", False, 1, 409, 3006, -32602),
    "bad_parameter": WireForm("config_error", False, 1, 422, 3007, -32602),
    "bad_exit": WireForm("config_error", False, 1, 422, 3008, -32602),
    "storage": WireForm("config_error", False, 1, 422, 7003, -32603),
    "bad_storage_name": WireForm("config_error", False, 1, 422, 7001, -32603),
    "storage_exists": WireForm("config_error", False, 1, 409, 7002, -32603),
    "storage_name_in_use": WireForm("config_error", False, 1, 409, 7004, -32603),
    "outside_storage": WireForm("config_error", False, 1, 403, 3009, -32603),
    "storage_missing": WireForm("config_error", False, 1, 404, 3010, -32603),
    "wrong_storage": WireForm("config_error", False, 1, 422, 3011, -32603),
    "embedding": WireForm("config_error", False, 1, 422, 8003, -32603),
    "bad_embedded_name": WireForm("config_error", False, 1, 422, 8001, -32603),
    "embedded_exists": WireForm("config_error", False, 1, 409, 8002, -32603),
    "model": WireForm("config_error", False, 1, 404, 6002, -32603),
    "no_language_model": WireForm("config_error", False, 1, 404, 3003, -32603),
    "no_embedding_model": WireForm("config_error", False, 1, 404, 8003, -32603),
    "no_voice": WireForm("config_error", False, 1, 404, 4002, -32603),
    "no_recognizer": WireForm("config_error", False, 1, 404, 4100, -32603),
    "model_not_fetched": WireForm("config_error", True, 1, 502, 6006, -32603),
    "provider": WireForm("provider_error", False, 1, 502, 4001, -32603),
    "download": WireForm("provider_error", True, 1, 502, 6001, -32603),
    "no_space": WireForm("provider_error", False, 1, 507, 6003, -32603),
    "download_active": WireForm("provider_error", True, 1, 409, 6004, -32603),
    "tool": WireForm("tool_error", False, 1, 500, 4001, -32603),
    "busy": WireForm("protocol_error", True, 1, 409, 3004, -32603),
    "agent": WireForm("internal_error", False, 1, 500, 4001, -32603),
    "crashed": WireForm("internal_error", False, 1, 500, 4001, -32603),
    "node": WireForm("internal_error", False, 1, 500, 4001, -32603),
    "too_many_steps": WireForm("internal_error", False, 1, 500, 4003, -32603),
    "budget": WireForm("provider_error", True, 1, 429, 4001, -32603),
    "timeout": WireForm("internal_error", True, 124, 504, 4002, -32603),
    "unsupported": WireForm("protocol_error", False, 1, 422, 5002, -32602),
    "mistyped": WireForm("config_error", False, 1, 400, 5002, -32602),
    "bad_audio": WireForm("protocol_error", False, 1, 415, 4101, -32602),
    "not_listening": WireForm("protocol_error", False, 1, 404, 4102, -32603),
    "utterance_too_long": WireForm("protocol_error", False, 1, 413, 4105, -32603),
    "unknown_call": WireForm("protocol_error", False, 1, 404, 5002, -32602),
    "forbidden": WireForm("config_error", False, 1, 403, 5002, -32603),
    "unavailable": WireForm("internal_error", True, 1, 503, 4001, -32603),
    "cancelled": WireForm("internal_error", False, 130, 499, 4001, -32800),
    "internal": WireForm("internal_error", False, 1, 500, 4001, -32603),
}


def form_of(kind: str) -> WireForm:
    """The form of a kind; a kind that nobody knows is a defect of ours."""
    return TABLE.get(kind, TABLE["internal"])


def told(kind: str, message: str) -> str:
    """What a peer is told of a failure: the words of an exception may hold anything, and help nobody there."""
    return CRASHED if kind == "crashed" else message
