"""An OpenAPI document, from the routes of an API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from trunkline import __version__
from trunkline.base.asgi_answers import JSON

Schema = Mapping[str, Any]

_PARAMETER = re.compile(r"\{(\w+)\}")


def operation(
    method: str,
    path: str,
    *,
    query: Mapping[str, Schema],
    body: Schema | None,
    answer: Schema,
    status: int = 200,
    refusals: Iterable[int],
    **more: Any,
) -> dict[str, Any]:
    """One route: what it is sent, and what it answers.

    Args:
        query: what each parameter after the `?` is: its schema, and whatever else is to be said of it.
        answer: the schema of what comes with `status`. Its `contentMediaType` is that of the answer; JSON without one.
            One that comes in several forms has an `anyOf` of those.
        refusals: the statuses that come with an error instead.
        more: other members, such as its summary.
    """
    content = {}
    for form in answer.get("anyOf", [answer]):
        schema = dict(form)
        content[schema.pop("contentMediaType", JSON)] = {"schema": schema}
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(path)
    ]
    in_query = [{"name": name, "in": "query", "required": False, **about} for name, about in query.items()]
    success = {"description": "Done", "content": content}
    made: dict[str, Any] = {
        "operationId": "_".join([method.lower(), *re.findall(r"\w+", path.removeprefix("/api"))]),
        **more,
        "parameters": in_path + in_query,
        "responses": {str(status): success} | {str(code): _refusal(code) for code in refusals},
    }
    if body is not None:
        made["requestBody"] = {"required": True, "content": {JSON: {"schema": body}}}
    return made


def document(
    title: str,
    description: str,
    operations: Iterable[tuple[str, str, Mapping[str, Any]]],
    *,
    error: Schema,
    schemes: Mapping[str, Any],
    **more: Any,
) -> dict[str, Any]:
    """All routes.

    Args:
        operations: the method, the path and the description of each.
        error: the schema of every refusal.
        schemes: how somebody says who they are.
        more: other members of the document.
    """
    paths: dict[str, dict[str, Any]] = {}
    for method, path, made in operations:
        paths.setdefault(path, {})[method.lower()] = made
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__, "description": description},
        "paths": dict(sorted(paths.items())),
        **more,
        "components": {"securitySchemes": schemes, "schemas": {"Error": error}},
    }


def _refusal(status: int) -> dict[str, Any]:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
