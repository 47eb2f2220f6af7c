"""Answers of the API: a JSON object, or `{"error": text}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from trunkline.base import jsontext

JSON = "application/json"


def answer(members: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON object as a response."""
    return Response(jsontext.dumps(members), status, headers, JSON)


def error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """A refusal as a response."""
    return answer({"error": message}, status, headers)
