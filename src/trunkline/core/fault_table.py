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


#: What every wire says of an agent that raised an exception.
CRASHED = "The agent failed. Its log says why."

TABLE: dict[str, WireForm] = {
    #                            jsonstream       retry  exit  http  tryll
    "local_protocol": WireForm("internal_error", False, 1, 500, 5001),
    "remote_protocol": WireForm("protocol_error", False, 1, 400, 5001),
    "config": WireForm("config_error", False, 1, 400, 3003),
    "session_exists": WireForm("config_error", False, 1, 409, 3003),
    "session_not_found": WireForm("config_error", False, 1, 404, 3001),
    "session_held": WireForm("config_error", True, 1, 409, 3004),
    "session_damaged": WireForm("config_error", False, 1, 500, 3003),
    "unknown_agent": WireForm("config_error", False, 1, 404, 3003),
    "graph": WireForm("config_error", False, 1, 400, 3003),
    "unknown_node": WireForm("config_error", False, 1, 404, 3005),
    "fixed_parameter": WireForm("config_error", False, 1, 409, 3006),
    "bad_parameter": WireForm("config_error", False, 1, 422, 3007),
    "bad_exit": WireForm("config_error", False, 1, 422, 3008),
    "storage": WireForm("config_error", False, 1, 422, 7003),
    "bad_storage_name": WireForm("config_error", False, 1, 422, 7001),
    "storage_exists": WireForm("config_error", False, 1, 409, 7002),
    "storage_name_in_use": WireForm("config_error", False, 1, 409, 7004),
    "outside_storage": WireForm("config_error", False, 1, 403, 3009),
    "storage_missing": WireForm("config_error", False, 1, 404, 3010),
    "wrong_storage": WireForm("config_error", False, 1, 422, 3011),
    "embedding": WireForm("config_error", False, 1, 422, 8003),
    "bad_embedded_name": WireForm("config_error", False, 1, 422, 8001),
    "embedded_exists": WireForm("config_error", False, 1, 409, 8002),
    "model": WireForm("config_error", False, 1, 404, 6002),
    "no_language_model": WireForm("config_error", False, 1, 404, 3003),
    "no_embedding_model": WireForm("config_error", False, 1, 404, 8003),
    "no_voice": WireForm("config_error", False, 1, 404, 4002),
    "no_recognizer": WireForm("config_error", False, 1, 404, 4100),
    "model_not_fetched": WireForm("config_error", True, 1, 502, 6006),
    "provider": WireForm("provider_error", False, 1, 502, 4001),
    "download": WireForm("provider_error", True, 1, 502, 6001),
    "no_space": WireForm("provider_error", False, 1, 507, 6003),
    "download_active": WireForm("provider_error", True, 1, 409, 6004),
    "tool": WireForm("tool_error", False, 1, 500, 4001),
    "busy": WireForm("protocol_error", True, 1, 409, 3004),
    "agent": WireForm("internal_error", False, 1, 500, 4001),
    "crashed": WireForm("internal_error", False, 1, 500, 4001),
    "node": WireForm("internal_error", False, 1, 500, 4001),
    "too_many_steps": WireForm("internal_error", False, 1, 500, 4003),
    "budget": WireForm("provider_error", True, 1, 429, 4001),
    "timeout": WireForm("internal_error", True, 124, 504, 4002),
    "unsupported": WireForm("protocol_error", False, 1, 422, 5002),
    "mistyped": WireForm("config_error", False, 1, 400, 5002),
    "bad_audio": WireForm("protocol_error", False, 1, 415, 4101),
    "not_listening": WireForm("protocol_error", False, 1, 404, 4102),
    "utterance_too_long": WireForm("protocol_error", False, 1, 413, 4105),
    "unknown_call": WireForm("protocol_error", False, 1, 404, 5002),
    "forbidden": WireForm("config_error", False, 1, 403, 5002),
    "cancelled": WireForm("internal_error", False, 130, 499, 4001),
    "internal": WireForm("internal_error", False, 1, 500, 4001),
}


def form_of(kind: str) -> WireForm:
    """The form of a kind; a kind that nobody knows is a defect of ours."""
    return TABLE.get(kind, TABLE["internal"])


def told(kind: str, message: str) -> str:
    """What a peer is told of a failure: the words of an exception may hold anything, and help nobody there."""
    return CRASHED if kind == "crashed" else message
