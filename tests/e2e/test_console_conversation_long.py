"""A long conversation in a real browser: little of it is in the page, and all of it can be reached."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.support.console_world import ConsoleWorld
from tests.support.staged_agent import StagedAgent
from trunkline.core.events import Event, Notice, TextDelta, ToolFinished, ToolRequested, ToolStarted, UserMessage

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

#: So many events, of which nearly each is a row of its own.
MANY = 10_000
#: As many rows may be in the page at once.
MOST_ROWS = 200


def events() -> list[Event]:
    """Rows of very different heights."""
    made: list[Event] = []
    while len(made) < MANY:
        number = len(made)
        made += [
            TextDelta(f"Answer {number}\n\n" + "More of it, and more. " * (number % 37)),
            ToolStarted(f"c{number}", "Bash"),
            ToolFinished(f"c{number}", "Bash", "error", "\n".join(f"line {line}" for line in range(number % 23 + 1))),
            Notice(f"Notice {number}"),
        ]
    return made


@asynccontextmanager
async def long_one(root: Path, browser: Browser, *more: Event) -> AsyncIterator[tuple[ConsoleWorld, Page]]:
    world = ConsoleWorld(root, {})
    world.helper = StagedAgent({"go": [*events(), *more]})
    async with world.served():
        live = await world.exchange.switchboard.open("helper", "one", by="ana")
        await world.exchange.switchboard.submit(live, UserMessage("go", sender="ana"))
        if not more:
            await live.session.at_rest()
        async with world.visited(browser) as page:
            yield world, page


async def rows(page: Page) -> int:
    return await page.locator("#events > article").count()


async def scrolled(page: Page) -> float:
    found: float = await page.evaluate("window.scrollY")
    return found


async def test_of_ten_thousand_events_only_what_is_seen_is_in_the_page(browser: Browser, tmp_path: Path) -> None:
    async with long_one(tmp_path, browser) as (_, page):
        await page.goto("/sessions/one")
        # Who comes, is at the end.
        await expect(page.locator(".row.end")).to_be_in_viewport()
        assert await rows(page) < MOST_ROWS
        total = int(await page.locator("#events > article").last.get_attribute("aria-setsize") or "0")
        assert total > 7 * MANY // 10
        # All the way up, a window at a time: never an empty place, never too much, and the reader gets there.
        for _ in range(40):
            before = await scrolled(page)
            await page.mouse.wheel(0, -800)
            await page.wait_for_function("before => window.scrollY < before", arg=before)
            assert await page.evaluate(ROW_AT_THE_MIDDLE)
            assert await rows(page) < MOST_ROWS
        await expect(page.get_by_role("button", name="Jump to latest")).to_be_visible()
        await page.keyboard.press("Home")
        await expect(page.locator("#e1")).to_be_in_viewport()
        assert await rows(page) < MOST_ROWS
        await page.get_by_role("button", name="Jump to latest").click()
        await expect(page.locator(".row.end")).to_be_in_viewport()
        await expect(page.get_by_role("button", name="Jump to latest")).to_be_hidden()


async def test_what_goes_wrong_is_told_to_who_is_at_the_end(browser: Browser, tmp_path: Path) -> None:
    async with long_one(tmp_path, browser) as (_, page):
        await page.goto("/sessions/one")
        await expect(page.locator(".row.end")).to_be_in_viewport()
        await page.route("**/messages", lambda route: route.abort())
        await page.get_by_label("Message to helper").fill("say more")
        await page.keyboard.press("Enter")
        await expect(page.locator("#trouble")).to_be_in_viewport(ratio=1)
        await expect(page.locator(".row.end")).to_be_in_viewport()


#: Whether the middle of the window shows a row.
ROW_AT_THE_MIDDLE = """() => {
  const { innerWidth, innerHeight } = window;
  const isRow = (part) => document.elementFromPoint(innerWidth / 2, innerHeight * part)?.closest("#events > article");
  return [0.3, 0.4, 0.5].some(isRow);
}"""


async def test_a_step_makes_only_the_rows_that_come_into_sight(browser: Browser, tmp_path: Path) -> None:
    async with long_one(tmp_path, browser) as (_, page):
        await page.goto("/sessions/one")
        await expect(page.locator(".row.end")).to_be_in_viewport()
        made = await page.evaluate(
            """async () => {
              window.scrollTo(0, document.documentElement.scrollHeight / 2);
              const frames = async () => {
                for (let count = 0; count < 3; count++) await new Promise((done) => requestAnimationFrame(done));
              };
              await frames();
              let added = 0;
              const watching = new MutationObserver((found) => {
                for (const each of found) added += each.addedNodes.length;
              });
              watching.observe(document.getElementById("events"), { childList: true });
              for (let step = 0; step < 60; step++) {
                window.scrollBy(0, 120);
                await frames();
              }
              return added;
            }"""
        )
        # A row has a hundred pixels or so.
        assert 20 < made < 200


async def test_the_window_goes_with_a_script_that_scrolls_in_every_frame(browser: Browser, tmp_path: Path) -> None:
    async with long_one(tmp_path, browser) as (_, page):
        await page.goto("/sessions/one")
        await expect(page.locator(".row.end")).to_be_in_viewport()
        way = await page.evaluate(
            """async () => {
              const steps = async (by) => {
                const before = window.scrollY;
                for (let step = 0; step < 30; step++) {
                  window.scrollBy(0, by);
                  await new Promise((done) => requestAnimationFrame(done));
                }
                return window.scrollY - before;
              };
              return [await steps(-300), await steps(300)];
            }"""
        )
        # Rows that were guessed wrong may take or give some of it.
        assert way[0] < -6000
        assert way[1] > 6000
        assert await page.evaluate(ROW_AT_THE_MIDDLE)


async def test_any_event_is_reached_by_its_number(browser: Browser, tmp_path: Path) -> None:
    async with long_one(tmp_path, browser) as (_, page):
        await page.goto("/sessions/one#e5002")
        await expect(page.locator(".row.target")).to_be_in_viewport()
        await expect(page.locator(".row.target")).to_have_attribute("id", "e5002")
        await page.get_by_label("Event", exact=True).fill("120")
        await page.keyboard.press("Enter")
        # The end of a call is in the row of its beginning.
        await expect(page.locator(".row.target")).to_have_attribute("id", "e119")
        await expect(page.locator("#e119")).to_be_in_viewport()
        await expect(page.locator("#e119")).to_be_focused()
        assert page.url.endswith("#e120")
        await page.locator(".event-number", has_text="#121").click()
        await expect(page.locator(".row.target")).to_have_attribute("id", "e121")
        await page.go_back()
        await expect(page.locator(".row.target")).to_have_attribute("id", "e119")
        await page.get_by_label("Event", exact=True).fill("999999")
        await page.keyboard.press("Enter")
        await expect(page.locator("#told")).to_contain_text("Choose an event from 1 to")


async def test_what_one_reads_stays_where_it_is_while_more_comes(browser: Browser, tmp_path: Path) -> None:
    ask = ToolRequested("ask", "Write", "edit", {"file_path": "a.txt"})
    rest = [TextDelta(f"Afterwards {number}.\n\n") for number in range(30)]
    async with long_one(tmp_path, browser, ask, *rest) as (world, page):
        await page.goto("/sessions/one")
        await expect(page.locator("#questions > li")).to_have_count(1)
        await page.goto("/sessions/one#e5002")
        place = page.locator("#e5002")
        await expect(place).to_be_in_viewport()
        before = await place.bounding_box()
        # A key does not decide on what is out of sight: it brings it here.
        live = await world.exchange.switchboard.find("one")
        (approval,) = await world.exchange.switchboard.approvals.found("pending")
        await page.get_by_role("button", name="Approve").click()
        await live.session.at_rest()
        await expect(page.locator("#state")).to_have_text("ready")
        assert approval.call_id == "ask"
        after = await place.bounding_box()
        assert before is not None
        assert after is not None
        # What stands above it may have a line more or less.
        assert abs(before["y"] - after["y"]) < 2
        assert await rows(page) < MOST_ROWS


async def test_a_key_shows_what_it_is_about_before_it_decides(browser: Browser, tmp_path: Path) -> None:
    ask = ToolRequested("ask", "Write", "edit", {"file_path": "a.txt"})
    async with long_one(tmp_path, browser, ask) as (world, page):
        await page.goto("/sessions/one#e5002")
        await expect(page.locator("#e5002")).to_be_focused()
        await expect(page.locator("#questions > li")).to_have_count(1)
        await page.keyboard.press("a")
        await expect(page.locator(".tool-card[data-state=asked]")).to_be_in_viewport()
        await expect(page.locator("#told")).to_have_text("This is the call. Press the key again to decide.")
        assert len(await world.exchange.switchboard.approvals.found("pending")) == 1
        await page.keyboard.press("a")
        await expect(page.locator("#state")).to_have_text("ready")
        await page.keyboard.press("n")
        await expect(page.locator("#told")).to_have_text("Nothing is waiting for approval.")


async def test_what_is_behind_the_field_to_write_in_is_not_seen(browser: Browser, tmp_path: Path) -> None:
    ask = ToolRequested("ask", "Write", "edit", {"file_path": "a.txt"})
    async with long_one(tmp_path, browser, ask) as (world, page):
        await page.goto("/sessions/one")
        card = page.locator(".tool-card[data-state=asked]")
        await expect(card).to_be_in_viewport()
        # Its first line is where the dock begins.
        await page.evaluate(
            """async () => {
              const top = (which) => document.querySelector(which).getBoundingClientRect().top;
              window.scrollBy(0, top("[data-state=asked]") - top(".dock") - 10);
              for (let count = 0; count < 3; count++) await new Promise((done) => requestAnimationFrame(done));
            }"""
        )
        await page.keyboard.press("a")
        await expect(page.locator("#told")).to_have_text("This is the call. Press the key again to decide.")
        assert len(await world.exchange.switchboard.approvals.found("pending")) == 1


async def test_a_question_that_is_in_the_page_can_be_answered_by_its_key(browser: Browser, tmp_path: Path) -> None:
    async with long_one(tmp_path, browser, ToolRequested("ask", "Write", "edit", {"file_path": "a.txt"})) as (_, page):
        # As soon as it is there, before anything else is drawn.
        await page.add_init_script(
            """addEventListener("DOMContentLoaded", () => new MutationObserver((_, watching) => {
              if (!document.querySelector("#questions > li")) return;
              watching.disconnect();
              document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true }));
            }).observe(document.body, { childList: true, subtree: true }))"""
        )
        await page.goto("/sessions/one")
        await expect(page.locator("#state")).to_have_text("ready")
        await expect(page.locator("#told")).to_be_empty()
