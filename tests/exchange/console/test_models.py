"""The page of models, for people of different roles."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.exchange.api_world import BASE, token, world
from trunkline.models import catalog


async def page(app: httpx.ASGITransport, who: str) -> str:
    """The page as somebody gets it who has signed in with a token."""
    async with httpx.AsyncClient(transport=app, base_url=BASE, headers={"accept": "text/html"}) as browser:
        await browser.post("/sign-in", data={"token": token(who)})
        found = await browser.get("/models")
        assert found.status_code == 200, found.text
        return found.text


async def test_only_admins_get_buttons_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_CACHE", str(tmp_path / "cache"))
    async with world(tmp_path) as net:
        app = httpx.ASGITransport(net.app)
        admin, observer = await page(app, "admin"), await page(app, "observer")
        assert 'data-act="pull"' in admin
        assert str(tmp_path) in admin
        assert "data-act" not in observer
        assert "pull-form" not in observer
        assert str(tmp_path) not in observer
        assert all(entry.name in observer for entry in catalog.ENTRIES)
