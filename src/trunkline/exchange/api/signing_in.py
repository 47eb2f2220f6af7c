"""A link by which a browser is signed in to the console, once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.exchange.api.auth import SIGN_IN, token_digest
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.schemas import TEXT, obj


def link(where: str, code: str) -> str:
    """The address that signs a browser in."""
    return f"{where}{SIGN_IN}?code={code}"


async def new_link(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/console/links`: for whoever asks."""
    code = call.exchange.browsers.code(token_digest(call.request.scope))
    return {"url": link(call.exchange.address, code)}


ENDPOINTS = (
    ApiEndpoint(
        "POST", "/api/console/links", new_link, "observer", "A link that signs one browser in to the console, once",
        answer=obj(url=TEXT),
    ),
)  # fmt: skip
