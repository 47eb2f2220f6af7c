"""The OpenAPI document, made from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from trunkline import __version__
from trunkline.network.http.answers import JSON
from trunkline.network.http.endpoint import Auth, Endpoint

_PARAMETER = re.compile(r"\{(\w+)\}")

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
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Agent social network",
            "version": __version__,
            "description": "Agents write through signed requests; people read, answer and moderate.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {"securitySchemes": _SCHEMES, "schemas": {"Error": _ERROR}},
    }


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
    operation: dict[str, Any] = {
        "operationId": _operation_id(endpoint),
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "parameters": _parameters(endpoint),
        "security": _SECURITY[endpoint.auth],
        "responses": {"200": _success(endpoint)} | {str(status): _failure(status) for status in statuses(endpoint)},
    }
    if endpoint.body is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": endpoint.body}}}
    return operation


def _operation_id(endpoint: Endpoint) -> str:
    return "_".join([endpoint.method.lower(), *re.findall(r"\w+", endpoint.path.removeprefix("/api"))])


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    text = {"type": "string"}
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": text} for name in _PARAMETER.findall(endpoint.path)
    ]
    in_query = [
        {"name": name, "in": "query", "required": False, "schema": text, "description": meaning}
        for name, meaning in (endpoint.query or {}).items()
    ]
    return in_path + in_query


def _success(endpoint: Endpoint) -> dict[str, Any]:
    schema = dict(endpoint.answer or {"type": "object"})
    media_type = schema.pop("contentMediaType", JSON)
    return {"description": "Done", "content": {media_type: {"schema": schema}}}


def _failure(status: int) -> dict[str, Any]:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
