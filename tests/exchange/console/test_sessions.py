"""What people of each role are offered on the pages of sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exchange.api.test_turns import said
from tests.exchange.api_world import world


@pytest.mark.parametrize(
    ("who", "begins", "removes"), [("observer", False, False), ("talker", True, False), ("admin", True, True)]
)
async def test_nobody_is_offered_what_they_may_not_do(tmp_path: Path, who: str, begins: bool, removes: bool) -> None:
    async with world(tmp_path) as net:
        id = await said(net, "Hello")
        listed = (await net.get("/sessions", who=who)).text
        assert ('id="begin"' in listed) == begins
        told = (await net.get(f"/sessions/{id}/timeline", who=who)).text
        for part in ('id="remove"', 'id="fork"', 'id="handover"', "data-admin"):
            assert (part in told) == removes
        assert f"/api/sessions/{id}/export?format=md" in told


async def test_there_is_no_timeline_of_a_session_that_is_not_there(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        assert (await net.get("/sessions/nobody/timeline")).status_code == 404
        assert (await net.get("/sessions?before=nobody")).status_code == 404
        assert (await net.get("/sessions?q=x&before=7")).status_code == 404
        assert (await net.get("/sessions?outcome=odd")).status_code == 400


async def test_what_was_looked_for_is_text_in_the_page(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        await said(net, "<b>bold</b> & so on")
        found = (await net.get("/sessions?q=bold")).text
        assert "<mark>bold</mark>" in found
        assert "<b>" not in found
        assert 'value="&#34;&gt;&lt;b&gt;"' in (await net.get("/sessions?q=%22%3E%3Cb%3E")).text
