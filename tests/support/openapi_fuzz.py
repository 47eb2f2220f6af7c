"""An API held against its own OpenAPI document, by requests that are made up from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import httpx
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

H = TypeVar("H")

CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def fuzz(
    document: Mapping[str, Any],
    how: st.SearchStrategy[H],
    respond: Callable[[Any, H], httpx.Response],
    *,
    examples: int,
    derandomize: bool,
) -> int:
    """Hold every route against its description.

    Args:
        how: what is drawn for each request besides the request itself.
        respond: sends it, as it was drawn.
        examples: requests for each route.
        derandomize: the same ones every time.

    Returns:
        How many requests were sent.
    """
    sent = 0
    rules = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=derandomize,
        suppress_health_check=list(HealthCheck),
    )
    found: Any
    for found in schemathesis.openapi.from_dict(dict(document)).get_all_operations():

        @rules
        @given(case=found.ok().as_strategy(), drawn=how)
        def held(case: Any, drawn: H) -> None:
            nonlocal sent
            sent += 1
            case.validate_response(respond(case, drawn), checks=CHECKS)

        held()
    return sent


def has_body(case: Any) -> bool:
    """Whether a body was made up; `null` is one, too."""
    return type(case.body).__name__ != "NotSet"


def sent_query(case: Any) -> dict[str, str]:
    """What stands after the `?`."""
    return {name: str(value) for name, value in (case.query or {}).items()}
