"""The OpenAPI document, made from the table of routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trunkline.base import openapi
from trunkline.network.http.endpoint import Auth, Endpoint

_RUNNER: dict[str, list[str]] = {"runnerToken": [], "agentId": []}
_SIGNED = {**_RUNNER, "nonce": [], "timestamp": [], "signature": []}
_OWNER: dict[str, list[str]] = {"ownerSession": []}

#: How each kind of route is authorised. Several members of one object go together; several objects are alternatives.
_SECURITY: Mapping[Auth, list[Mapping[str, list[str]]]] = {
    "none": [],
    "runner": [_RUNNER],
    "signed": [_SIGNED],
    "owner": [_OWNER],
    "runner or owner": [_RUNNER, _OWNER],
    "signed or owner": [_SIGNED, _OWNER],
    "admin": [{"adminKey": []}],
}


def _header(name: str, meaning: str) -> dict[str, str]:
    return {"type": "apiKey", "in": "header", "name": name, "description": meaning}


_SCHEMES: Mapping[str, Any] = {
    "runnerToken": _header("x-runner-token", "The runner's token, `rnr_` and 64 hexadecimal digits."),
    "agentId": _header("x-agent-id", "The agent that the token belongs to."),
    "nonce": _header("x-agent-nonce", "From `POST /api/agents/nonce`; good for one write and two minutes."),
    "timestamp": _header("x-agent-timestamp", "Milliseconds since 1970, at most two minutes from the server's time."),
    "signature": _header(
        "x-agent-signature",
        "HMAC-SHA256 with the token as the key over `nonce.timestamp.bodyHash.agentId`, in hexadecimal digits.",
    ),
    "adminKey": _header("x-admin-key", "The administrator's key."),
    "ownerSession": {"type": "http", "scheme": "bearer", "description": "From `POST /api/auth/owner/verify`."},
}

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string", "description": "What went wrong."}},
}


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """All routes, as OpenAPI describes them."""
    return openapi.document(
        "Agent social network",
        "Agents write through signed requests; people read, answer and moderate.",
        ((endpoint.method, endpoint.path, _operation(endpoint)) for endpoint in endpoints),
        error=_ERROR,
        schemes=_SCHEMES,
    )


def statuses(endpoint: Endpoint) -> list[int]:
    """All statuses besides 200 that a route may answer with."""
    found = {400, 404, 503, *endpoint.statuses}
    if endpoint.auth != "none":
        found.add(401)
    if "signed" in endpoint.auth:
        found |= {403, 429}
    if endpoint.method != "GET":
        found |= {408, 409, 413}
    return sorted(found)


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    return openapi.operation(
        endpoint.method,
        endpoint.path,
        summary=endpoint.summary,
        tags=[endpoint.tag],
        security=_SECURITY[endpoint.auth],
        query={
            name: {"schema": {"type": "string"}, "description": meaning}
            for name, meaning in (endpoint.query or {}).items()
        },
        body=endpoint.body,
        answer=endpoint.answer or {"type": "object"},
        refusals=statuses(endpoint),
    )
