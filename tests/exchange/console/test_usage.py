"""The page of what was used: numbers in words, and days that cannot be drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.exchange.api_world import BASE, token, world
from trunkline.exchange.console.usage import brief, cost, told


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"usd": 0.0, "unpriced_tokens": 5}, "-"),
        ({"usd": 0.0, "unpriced_tokens": 0}, "0.0000"),
        ({"usd": 1234.5, "unpriced_tokens": 0}, "1,234.5000"),
        ({"usd": 1.5, "unpriced_tokens": 7}, "1.5000+"),
    ],
)
def test_a_cost_that_nobody_knows_is_not_nothing(row: dict[str, Any], text: str) -> None:
    assert cost(row) == text


def test_amounts_are_told_with_their_units() -> None:
    assert (told(1.0, "turns"), told(2500.0, "tokens"), told(2.5, "usd")) == ("1 turn", "2,500 tokens", "$2.50")
    assert [brief(value, "tokens") for value in (0, 40, 1200, 160_000, 2.5e6, 3e9)] == [
        "0", "40", "1.2k", "160k", "2.5M", "3G",
    ]  # fmt: skip
    assert (brief(0.04, "usd"), brief(1500, "usd")) == ("$0.04", "$1.5k")


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("since=2020-01-01", 400), ("until=2019-01-01", 200), ("until=0001-01-01", 200), ("until=9999-12-31", 200),
        ("since=2030-01-01", 400), ("since=x", 400), ("measure=colour", 400), ("split=day", 400),
        ("since=2026-02-18&until=2026-02-18&measure=usd", 200),
    ],
)  # fmt: skip
async def test_days_and_charts_that_make_no_sense_have_a_page_that_says_so(
    tmp_path: Path, query: str, status: int
) -> None:
    async with world(tmp_path) as net:
        app = httpx.ASGITransport(net.app)
        async with httpx.AsyncClient(transport=app, base_url=BASE, headers={"accept": "text/html"}) as browser:
            await browser.post("/sign-in", data={"token": token("observer")})
            found = await browser.get(f"/usage?{query}")
            assert found.status_code == status
            assert found.headers["content-type"].startswith("text/html")
