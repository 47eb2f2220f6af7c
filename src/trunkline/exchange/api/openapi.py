"""The OpenAPI document, made from the table of routes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trunkline.base import openapi, shapes
from trunkline.exchange.api.endpoint import ApiEndpoint
from trunkline.exchange.api.schemas import TEXT, obj


def document(endpoints: Iterable[ApiEndpoint]) -> dict[str, Any]:
    """All routes, as OpenAPI describes them."""
    return openapi.document(
        "Trunkline exchange",
        "Agents by name, sessions that anybody can join, approvals, budgets.",
        ((endpoint.method, endpoint.path, _operation(endpoint)) for endpoint in endpoints),
        error=obj(error=obj(code=TEXT, message=TEXT)),
        schemes={"token": {"type": "http", "scheme": "bearer"}},
        security=[{"token": []}],
    )


def statuses(endpoint: ApiEndpoint) -> list[int]:
    """All besides that of success that a route may answer with."""
    found = {400, 401, 403, 404, 503, *endpoint.statuses}
    return sorted(found | {408, 413} if endpoint.body else found)


def _operation(endpoint: ApiEndpoint) -> dict[str, Any]:
    return openapi.operation(
        endpoint.method,
        endpoint.path,
        summary=endpoint.summary,
        description=f"For every {endpoint.least} and whoever may do more.",
        query={name: {"schema": schema} for name, schema in endpoint.query.items()},
        body=None if endpoint.body is None else shapes.schema(endpoint.body),
        answer=endpoint.answer,
        status=endpoint.status,
        refusals=statuses(endpoint),
    )
