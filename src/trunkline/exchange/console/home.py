"""The first page: what waits for somebody, what is running, the agents, and what runs beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.exchange.api.endpoint import ApiCall
from trunkline.exchange.api.overview import overview
from trunkline.exchange.console.page import ConsolePage


async def home(call: ApiCall) -> Mapping[str, Any]:
    """`GET /`."""
    return {"overview": await overview(call)}


PAGES = (ConsolePage("/", home, "home.html"),)
