"""The OpenAPI document, made from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from trunkline import __version__
from trunkline.base import shapes
from trunkline.exchange.api.endpoint import ApiEndpoint
from trunkline.exchange.api.errors import JSON
from trunkline.exchange.api.schemas import TEXT, obj

_PARAMETER = re.compile(r"\{(\w+)\}")

_ERROR = obj(error=obj(code=TEXT, message=TEXT))


def document(endpoints: Iterable[ApiEndpoint]) -> dict[str, Any]:
    """All routes, as OpenAPI describes them."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Trunkline exchange",
            "version": __version__,
            "description": "Agents by name, sessions that anybody can join, approvals, budgets.",
        },
        "paths": dict(sorted(paths.items())),
        "security": [{"token": []}],
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR},
        },
    }


def statuses(endpoint: ApiEndpoint) -> list[int]:
    """All besides that of success that a route may answer with."""
    found = {400, 401, 403, 404, 503, *endpoint.statuses}
    return sorted(found | {408, 413} if endpoint.body else found)


def _operation(endpoint: ApiEndpoint) -> dict[str, Any]:
    schema = dict(endpoint.answer)
    media_type = schema.pop("contentMediaType", JSON)
    success = {"description": "Done", "content": {media_type: {"schema": schema}}}
    operation: dict[str, Any] = {
        "operationId": "_".join([endpoint.method.lower(), *re.findall(r"\w+", endpoint.path.removeprefix("/api"))]),
        "summary": endpoint.summary,
        "description": f"For every {endpoint.least} and whoever may do more.",
        "parameters": _parameters(endpoint),
        "responses": {str(endpoint.status): success} | {str(code): _failure(code) for code in statuses(endpoint)},
    }
    if endpoint.body is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": shapes.schema(endpoint.body)}}}
    return operation


def _parameters(endpoint: ApiEndpoint) -> list[dict[str, Any]]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": TEXT} for name in _PARAMETER.findall(endpoint.path)
    ]
    in_query = [
        {"name": name, "in": "query", "required": False, "schema": schema} for name, schema in endpoint.query.items()
    ]
    return in_path + in_query


def _failure(status: int) -> dict[str, Any]:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
