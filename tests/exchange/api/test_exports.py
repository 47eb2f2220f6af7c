"""Sessions as files, over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.exchange.api.test_turns import said
from tests.exchange.api_world import world

MARKUP = "<script>alert(1)</script>"


async def test_a_session_is_taken_along_in_each_form(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await said(net, MARKUP)
        lines = await net.get(f"/api/sessions/{id}/export", who="observer")
        assert lines.status_code == 200
        assert lines.headers["content-disposition"] == f'attachment; filename="{id}.jsonl"'
        head, *events = [json.loads(line) for line in lines.text.splitlines()]
        assert head["session"] == id
        assert MARKUP in json.dumps(events[0])
        text = await net.get(f"/api/sessions/{id}/export?format=md")
        assert text.headers["content-type"] == "text/markdown; charset=utf-8"
        assert f"> {MARKUP}" in text.text
        page = await net.get(f"/api/sessions/{id}/export?format=html")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "sandbox" in page.headers["content-security-policy"]
        assert "<script" not in page.text
        assert "&lt;script&gt;alert(1)" in page.text


async def test_a_long_session_comes_whole(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await said(net, "x" * 300_000)
        await said(net, "y" * 300_000, session=id)
        found = await net.get(f"/api/sessions/{id}/export?format=md")
        assert found.text.count("x") >= 600_000
        assert found.text.count("y") >= 600_000


@pytest.mark.parametrize(("path", "status"), [("nobody/export", 404), ("{id}/export?format=pdf", 400)])
async def test_what_is_not_there_is_refused(tmp_path: Path, path: str, status: int) -> None:
    async with world(tmp_path) as net:
        id = await said(net, "Hello")
        assert (await net.get(f"/api/sessions/{path.format(id=id)}")).status_code == status
