"""What the page of an agent says of tokens and budgets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exchange.api_world import world


async def test_where_a_token_comes_from_is_said_as_long_as_nobody_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path) as net:
        assert "Nobody has a token here" not in (await net.get("/agents/echo")).text
        # As in the demonstration. Who looks was let in by a link.
        alone = net.exchange.settings.replace(people={})
        monkeypatch.setattr(net.exchange, "settings", alone)
        told = (await net.get("/agents/echo")).text
        assert "Nobody has a token here: <code>[people.NAME]</code>" in told
        assert "<code>trunkline init</code>" in told


async def test_the_page_of_an_agent_without_a_limit_says_where_one_is_written(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        told = (await net.get("/agents/echo", who="observer")).text
        assert "<code>[agents.echo.budget]</code> in the exchange&#39;s file sets one" in told.replace("'", "&#39;")
        # A page that observers may not see, and where nothing can be set, is no answer.
        assert 'href="/settings"' not in told
