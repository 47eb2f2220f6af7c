"""What people of every role can do in a conversation and on the first page, in a real browser."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.support.browser import visiting
from tests.support.console_world import ConsoleWorld, violations
from tests.support.staged_agent import StagedAgent
from trunkline.core.events import TextDelta, ToolRequested, UserMessage
from trunkline.exchange.settings import ROLES, ExchangeSettings, PersonSettings

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]


class PeopledWorld(ConsoleWorld):
    """An exchange with a person of each role, whose token is the name of it."""

    @property
    def settings(self) -> ExchangeSettings:
        people = {role: PersonSettings(role, hashlib.sha256(role.encode()).hexdigest(), role) for role in ROLES}
        return super().settings.replace(people=people)


@asynccontextmanager
async def signed_in(root: Path, browser: Browser, role: str) -> AsyncIterator[Page]:
    """The page of a conversation in which something is asked, for somebody with that role."""
    world = PeopledWorld(root, {})
    ask = ToolRequested("t1", "Write", "edit", {"file_path": "a.txt"})
    world.helper = StagedAgent({"write": [TextDelta("I write."), ask]})
    async with world.served(), visiting(browser, world.site) as page:
        live = await world.exchange.switchboard.open("helper", "one", by="ana")
        await world.exchange.switchboard.submit(live, UserMessage("write", sender="ana"))
        await page.goto("/sessions/one")
        await page.get_by_label("Token", exact=True).fill(role)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.locator("#questions > li")).to_have_count(1)
        yield page


async def test_an_observer_only_watches(browser: Browser, tmp_path: Path) -> None:
    async with signed_in(tmp_path, browser, "observer") as page:
        await expect(page.locator("#composer, #stop, #fork, #remove, .choices button, select")).to_have_count(0)
        await expect(page.get_by_text("Only an approver can answer this.")).to_be_visible()
        await page.locator("#events").focus()
        for key in ("a", "d", "m", "Escape"):
            await page.keyboard.press(key)
        await expect(page.locator("#state")).to_have_text("waiting for approval")
        assert await violations(page) == []


async def test_a_talker_writes_and_stops_and_does_not_decide(browser: Browser, tmp_path: Path) -> None:
    async with signed_in(tmp_path, browser, "talker") as page:
        await expect(page.locator(".choices button, #fork, #remove, select#mode")).to_have_count(0)
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator(".row.end")).to_contain_text("stopped")
        await page.get_by_label("Message to helper").fill("say hello")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator(".row.answer .prose").last).to_have_text("hello")
        await expect(page.locator(".row.message").last).to_contain_text("talker")
        assert await violations(page) == []


async def test_an_approver_decides_and_changes_no_mode(browser: Browser, tmp_path: Path) -> None:
    async with signed_in(tmp_path, browser, "approver") as page:
        await expect(page.locator("#fork, #remove, select#mode")).to_have_count(0)
        await page.get_by_role("button", name="Approve").click()
        await expect(page.locator(".tool-card")).to_contain_text("Approved by approver.")


@pytest.mark.parametrize(("role", "writes", "decides"), [("observer", 0, 0), ("talker", 1, 0), ("approver", 1, 1)])
async def test_the_first_page_offers_only_what_one_may_do(
    browser: Browser, tmp_path: Path, role: str, writes: int, decides: int
) -> None:
    async with signed_in(tmp_path, browser, role) as page:
        await page.goto("/")
        await expect(page.locator("#waiting-list > li")).to_have_count(1)
        await expect(page.get_by_role("button", name="Write to it")).to_have_count(writes)
        await expect(page.get_by_role("link", name="Decide")).to_have_count(decides)
        assert await violations(page) == []
