"""The tools of a conversation follow its permission rules as they are when a tool runs."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.web import served
from trunkline.agents.coder.conversation_tools import ConversationTools
from trunkline.agents.coder.settings_web import WebSettings
from trunkline.base import http_public
from trunkline.base.redact import Redactor
from trunkline.core.rules import NO_RULES, Rules


class Ruled:
    """Tools, and the rules that they ask for."""

    def __init__(self, place: Path) -> None:
        self.rules = NO_RULES
        self.tools = ConversationTools(
            str(place),
            lambda event: None,
            {},
            Redactor(),
            web=WebSettings(private=True),
            rules=lambda: self.rules,
        )

    async def run(self, name: str, args: Mapping[str, Any]) -> str:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return (await self.tools.toolbox.run(name, args, lambda line: None)).text


@asynccontextmanager
async def ruled(place: Path) -> AsyncIterator[Ruled]:
    made = Ruled(place)
    try:
        yield made
    finally:
        await made.tools.close()


@pytest.mark.parametrize("kind", ["deny", "ask"])
async def test_searches_follow_rules_that_come_and_go(tmp_path: Path, kind: str) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key.txt").write_text("needle\n")
    (tmp_path / "open.txt").write_text("needle\n")
    calls = (("Grep", {"pattern": "needle"}), ("Glob", {"pattern": "**/*.txt"}))
    async with ruled(tmp_path) as it:
        for about, hidden in (("", []), ("Read", ["Grep", "Glob"]), ("Grep", ["Grep"]), ("Glob", ["Glob"]), ("", [])):
            it.rules = Rules(**{kind: (f"{about}(secrets/**)",) if about else ()})  # type: ignore[arg-type]
            texts = {name: await it.run(name, args) for name, args in calls}
            assert all("open.txt" in text for text in texts.values())
            assert [name for name, text in texts.items() if "key.txt" not in text] == hidden


@pytest.mark.parametrize("kind", ["deny", "ask"])
async def test_a_page_does_not_lead_on_to_a_host_that_a_rule_is_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    async def looked_up(host: str, port: int) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(http_public, "_looked_up", looked_up)
    with served() as server:
        server.answers["/"] = (302, {"Location": server.url("/x", "www.a.example")}, b"")
        server.answers["/x"] = (200, {"Content-Type": "text/plain"}, b"there")
        async with ruled(tmp_path) as it:
            url = server.url("/", "a.example")
            assert "there" in await it.run("WebFetch", {"url": url})
            it.rules = Rules(**{kind: ("WebFetch(domain:www.a.example)",)})  # type: ignore[arg-type]
            del server.asked[:]
            assert "leads on to another host, which was not asked" in await it.run("WebFetch", {"url": url})
        assert [path for path, _ in server.asked] == ["/"]
