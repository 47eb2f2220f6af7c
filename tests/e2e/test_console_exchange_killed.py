"""The console in a real browser while the exchange behind it, a real process, is killed with -9 and started again."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.chaos.test_exchange_crash import running
from tests.support.browser import visiting, watched
from tests.support.ports import free_port
from tests.support.provider import HANG, Reply, StubProvider
from tests.support.provider_streams import anthropic_sse, anthropic_text
from trunkline.core.events import Envelope, Journaled
from trunkline.store.files import FileStore

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

FILE = """\
[exchange]
listen = "127.0.0.1:{port}"
home = "home"
[agents.coder]
agent = "coder"
workspace = "."
provider = "anthropic"
model = "stub"
base_url = "{url}"
"""
#: Keeps the numbers of all events that a page is sent, in the order in which they come.
NOTED = """
  window.numbers = [];
  const listen = EventSource.prototype.addEventListener;
  EventSource.prototype.addEventListener = function (name, call) {
    listen.call(this, name, (event) => {
      if (this.url.includes("/api/sessions/")) window.numbers.push(Number(event.lastEventId));
      call(event);
    });
  };
"""


async def say(page: Page, text: str) -> None:
    await page.get_by_label("Message to coder").fill(text)
    await page.keyboard.press("Enter")


async def test_pages_go_on_by_themselves_when_the_exchange_is_killed_in_the_middle_of_an_answer(
    browser: Browser, tmp_path: Path
) -> None:
    port = free_port()
    async with StubProvider() as stub, visiting(browser, f"http://127.0.0.1:{port}") as page:
        (tmp_path / "trunkline.toml").write_text(FILE.format(port=port, url=stub.url))
        # All but the end of it.
        stub.play(Reply([anthropic_sse(anthropic_text("The first half.")[:-3]), HANG]))
        await page.context.add_init_script(NOTED)
        async with running(tmp_path) as client:
            await page.goto((await client.post("/api/console/links", json={})).json()["url"])
            cookies = await page.context.cookies()
            home = await page.context.new_page()
            complaints = watched(home)
            await home.goto("/")
            session = (await client.post("/api/sessions", json={"agent": "coder", "session_id": "one"})).json()["id"]
            await page.goto(f"/sessions/{session}")
            await say(page, "Tell me all of it.")
            await expect(page.locator(".row.answer .prose")).to_have_text("The first half.")
            await expect(page.locator("#state")).to_have_text("at work")
            await expect(home.locator("#running-list > li")).to_contain_text("Tell me all of it.")
        await expect(page.locator("#state")).to_have_text("disconnected, reconnecting…")
        await expect(home.locator("#line-state")).to_have_text("No connection to the exchange; trying again…")
        stub.anthropic(anthropic_text("Everything."))
        async with running(tmp_path) as client:
            await expect(page.locator(".row.end")).to_contain_text("cut off")
            await expect(page.locator("#state")).to_have_text("ready")
            await expect(home.locator("#waiting-list > li")).to_contain_text("cut off")
            await expect(home.locator("#running-list > li")).to_have_count(0)
            await expect(home.locator("#line-state")).to_be_empty()
            await say(page, "Once more, please.")
            await expect(page.locator(".row.end").nth(1)).to_contain_text("answered")
            await expect(page.locator(".row.message .said")).to_have_text(["Tell me all of it.", "Once more, please."])
            await expect(page.locator(".row.answer .prose")).to_have_text(["The first half.", "Everything."])
            records = FileStore(str(tmp_path / "home" / "sessions")).peek(session).records
            events = [each for each in records if isinstance(each, Envelope)]
            assert [each.seq for each in events] == list(range(1, len(events) + 1))
            # An agent's journal is its own.
            told = [each.seq for each in events if not isinstance(each.event, Journaled)]
            assert await page.evaluate("window.numbers") == told
            assert await page.context.cookies() == cookies
            await home.reload()
            await expect(home.get_by_role("heading", name="Home")).to_be_visible()
            assert not complaints, complaints
