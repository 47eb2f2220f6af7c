"""The console's first page in a real browser, and the way in."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.support.browser import cramped, picture, pictures, visiting
from tests.support.console_world import console, violations
from trunkline.core.events import UserMessage
from trunkline.exchange.api.signing_in import link

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]


async def test_a_link_signs_one_browser_in_once_and_out_again(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as world:
        address = link("", world.exchange.browsers.code())
        async with visiting(browser, world.site) as page:
            await page.goto("/approvals")
            await expect(page.get_by_role("heading", name="Sign in", level=1)).to_be_visible()
            assert await cramped(page) == []
            assert await violations(page) == []
            await page.goto(address)
            await expect(page.get_by_role("heading", name="Home")).to_be_visible()
            (cookie,) = await page.context.cookies()
            assert cookie["httpOnly"]
            assert cookie["sameSite"] == "Strict"
            await page.get_by_role("button", name="Sign out").click()
            await expect(page.get_by_role("heading", name="Sign in", level=1)).to_be_visible()
            await page.goto("/")
            await expect(page.get_by_role("heading", name="Sign in", level=1)).to_be_visible()


async def test_who_signs_out_in_one_window_is_led_to_the_door_in_the_others(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as world, world.visited(browser) as page:
        other = await page.context.new_page()
        await other.goto("/approvals")
        await expect(other.get_by_text("Nothing was decided yet.")).to_be_visible()
        await page.bring_to_front()
        await page.get_by_role("button", name="Sign out").click()
        await other.bring_to_front()
        await expect(other.get_by_role("heading", name="Sign in", level=1)).to_be_visible()


async def test_from_the_first_sign_in_to_an_answered_message(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path, echo="echo") as world, visiting(browser, world.site) as page:
        await page.goto(link("", world.exchange.browsers.code()))
        row = page.locator("#agent-list > li", has_text="echo")
        await row.get_by_role("button", name="Write to it").click()
        await expect(page.get_by_text("No messages yet.")).to_be_visible()
        await page.get_by_role("textbox", name="Message to echo").fill("Is anybody there?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".row.answer")).to_contain_text("Is anybody there?")
        await expect(page.locator(".row.end")).to_be_visible()


async def test_an_agent_that_cannot_work_is_unwell_there_before_anybody_opens_its_page(
    browser: Browser, tmp_path: Path
) -> None:
    async with console(tmp_path, lost="graph:nowhere.yaml") as world, world.visited(browser) as page:
        row = page.locator("#agent-list > li", has_text="lost")
        await expect(row.locator(".tag")).to_have_text("unwell")
        await expect(row).to_contain_text("nowhere.yaml")
        await expect(row.locator("code").first).to_be_visible()
        assert await violations(page) == []


async def test_the_first_page_shows_what_waits_and_what_runs(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as world, world.visited(browser) as page:
        await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
        live = await world.exchange.switchboard.open("helper", by="ana")
        await world.exchange.switchboard.submit(live, UserMessage("say one; tool t1", sender="ana"))
        await expect(page.locator("#waiting-list > li")).to_have_count(1)
        await expect(page.locator("#waiting-count")).to_have_text("1")
        await expect(page.locator("#running-list > li")).to_have_count(1)
        assert await violations(page) == []
        await pictures(page, "console-home")


async def test_the_first_page_changes_under_somebodys_hands_and_takes_nothing_out_of_them(
    browser: Browser, tmp_path: Path
) -> None:
    async with console(tmp_path) as world, world.visited(browser) as page:
        await page.clock.install()
        board = world.exchange.switchboard
        await page.reload()
        live = await board.open("helper", by="ana")
        await board.submit(live, UserMessage("tool t1", sender="ana"))
        first = page.locator("#waiting-list > li").first
        await first.get_by_role("link", name="Decide").focus()
        other = await board.open("helper", by="ben")
        await board.submit(other, UserMessage("tool t2", sender="ben"))
        await expect(page.locator("#waiting-list > li")).to_have_count(2)
        await expect(first.get_by_role("link", name="Decide")).to_be_focused()
        # What waits grows older, though nothing happens.
        await page.clock.fast_forward("02:05:00")
        await expect(first.locator("time")).to_have_text("2 h ago")


@pytest.mark.parametrize("dark", [False, True])
async def test_the_first_page_fits_a_phone(browser: Browser, tmp_path: Path, dark: bool) -> None:
    async with console(tmp_path) as world, world.visited(browser, phone=True, dark=dark) as page:
        await expect(page.locator("#agent-list > li")).to_have_count(1)
        assert await cramped(page) == []
        assert await violations(page) == []
        await picture(page, f"console-home-phone{'-dark' if dark else ''}")
