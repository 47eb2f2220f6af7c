"""The console's pages of graphs in a real browser."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser, Dialog, Page, Route, expect

from tests.support.browser import cramped, picture, pictures, visiting
from tests.support.console_world import ConsoleWorld, console, violations
from tests.support.graph_texts import BROKEN_SMITH, HOSTILE, MARKUP, SMITH
from trunkline.exchange.people import People
from trunkline.exchange.settings import PersonSettings

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

#: By how much the drawing is wider than its place.
SIDEWAYS = "(place => place.scrollWidth - place.clientWidth)(document.getElementById('drawing'))"
#: What the picture of that graph says to those who do not see it.
IN_WORDS = (
    "A graph of 4 nodes that begins with guard: guard leads to refuse or tools; refuse leads to the end; "
    "tools leads to the end or answer; answer leads to the end."
)


@asynccontextmanager
async def graph_console(root: Path, text: str = SMITH) -> AsyncIterator[ConsoleWorld]:
    """A console with the agent `smith`, whose graph says that, and `gate`, whose graph is ours."""
    (root / "smith.yaml").write_text(text)
    async with console(root, smith=f"graph:{root / 'smith.yaml'}", gate="graph:npc") as world:
        yield world


async def opened(page: Page, id: str = "smith") -> None:
    """Its page, with the drawing on it."""
    await page.goto(f"/graphs/{id}")
    await expect(page.locator("#state")).not_to_be_empty()


async def write(page: Page, text: str) -> None:
    await page.locator("#text").fill(text)


async def test_the_list_leads_to_a_graph_with_its_drawing(browser: Browser, tmp_path: Path) -> None:
    async with graph_console(tmp_path) as world, world.visited(browser) as page:
        await page.goto("/graphs")
        await expect(page.locator(".rows > li")).to_have_count(3)
        assert await violations(page) == []
        await pictures(page, "console-graphs")
        await page.get_by_role("link", name="smith.yaml").click()
        await expect(page.locator("#text")).to_have_value(SMITH)
        await expect(page.locator("#drawing img")).to_have_attribute("alt", IN_WORDS)
        await expect(page.locator("#verdict")).to_have_text("Fine: 4 nodes")
        await expect(page.locator(".gutter span").first).to_have_text("1")
        await page.locator("#message").fill("sell_sword, please")
        await page.get_by_role("button", name="Try").click()
        await expect(page.locator("#path tr")).to_have_count(2)
        assert await violations(page) == []
        await picture(page, "console-graph")


async def test_mistakes_are_marked_at_their_lines_and_lead_there(browser: Browser, tmp_path: Path) -> None:
    async with graph_console(tmp_path) as world, world.visited(browser) as page:
        await opened(page)
        await write(page, BROKEN_SMITH)
        await expect(page.locator("#verdict")).to_have_text("2 problems")
        await expect(page.locator(".gutter .problem-line")).to_have_text(["8", "19"])
        await expect(page.locator("#text")).to_have_attribute("aria-invalid", "true")
        await expect(page.locator("#drawing")).to_have_class("stage stale")
        assert await violations(page) == []
        await picture(page, "console-graph-problems")
        await page.get_by_role("button", name="line 19").click()
        await expect(page.locator("#text")).to_be_focused()
        chosen = "(area => area.value.slice(area.selectionStart, area.selectionEnd))(document.getElementById('text'))"
        assert await page.evaluate(chosen) == "strem: true"
        await write(page, SMITH)
        await expect(page.locator("#verdict")).to_have_text("Fine: 4 nodes")
        await expect(page.locator("#drawing")).to_have_class("stage")


async def test_what_was_written_is_saved_and_used_by_new_conversations(browser: Browser, tmp_path: Path) -> None:
    async with graph_console(tmp_path) as world, world.visited(browser) as page:
        await opened(page)
        await expect(page.locator("#state")).to_have_text("saved")
        await expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
        other = SMITH.replace("Nice try.", "Try harder.")
        await write(page, other)
        await expect(page.locator("#state")).to_have_text("changed")
        await page.keyboard.press("Control+s")
        await expect(page.locator("#state")).to_have_text("saved")
        await expect(page.locator("#note")).to_contain_text("New conversations of smith use it")
        assert (tmp_path / "smith.yaml").read_text() == other
        # What is said of that one is not said of the next, which is refused.
        await write(page, BROKEN_SMITH)
        await page.keyboard.press("Control+s")
        await expect(page.locator("#unsound")).to_be_visible()
        await expect(page.locator("#note")).to_have_text("")


async def test_a_text_with_problems_is_saved_only_when_somebody_insists(browser: Browser, tmp_path: Path) -> None:
    async with graph_console(tmp_path) as world, world.visited(browser) as page:
        await opened(page)
        await write(page, BROKEN_SMITH)
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.locator("#unsound")).to_be_visible()
        assert (tmp_path / "smith.yaml").read_text() == SMITH
        # Of a text that is mended it would not be true.
        await write(page, SMITH)
        await expect(page.locator("#unsound")).to_be_hidden()
        await write(page, BROKEN_SMITH)
        await page.get_by_role("button", name="Save", exact=True).click()
        await page.get_by_role("button", name="Save it all the same").click()
        await expect(page.locator("#state")).to_have_text("saved")
        assert (tmp_path / "smith.yaml").read_text() == BROKEN_SMITH


async def test_what_is_found_in_an_earlier_text_is_not_told_of_the_one_that_was_refused(
    browser: Browser, tmp_path: Path
) -> None:
    asked, refused = asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        asked.set()
        await refused.wait()
        await route.continue_()

    async with graph_console(tmp_path) as world, world.visited(browser) as page:
        await page.clock.install()
        await opened(page)
        # The page's own clock stands: the refused text is not checked before the earlier one.
        await page.clock.pause_at(datetime.now() + timedelta(hours=1))
        await page.route("**/check", late)
        await write(page, SMITH + "# more")
        await page.clock.run_for(300)
        await asked.wait()
        await write(page, BROKEN_SMITH)
        await page.keyboard.press("Control+s")
        await expect(page.locator("#unsound")).to_be_visible()
        async with page.expect_event("requestfinished", lambda request: request.url.endswith("/check")):
            refused.set()
        async with page.expect_event("requestfinished", lambda request: request.url.endswith("/check")):
            await page.clock.run_for(300)
        await expect(page.locator("#verdict")).to_have_text("2 problems")
        await expect(page.locator("#unsound")).to_be_visible()


@pytest.mark.parametrize("mine", [True, False])
async def test_a_file_that_was_changed_on_the_disk_is_a_choice(browser: Browser, tmp_path: Path, mine: bool) -> None:
    theirs, ours = SMITH.replace("No.", "Never."), SMITH.replace("No.", "Perhaps.")
    async with graph_console(tmp_path) as world, world.visited(browser) as page:
        await opened(page)
        (tmp_path / "smith.yaml").write_text(theirs)
        await write(page, ours)
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.locator("#state")).to_have_text("changed on disk")
        await page.get_by_role("button", name="Keep mine" if mine else "Load theirs").click()
        await expect(page.locator("#state")).to_have_text("saved")
        await expect(page.locator("#conflict")).to_be_hidden()
        await expect(page.locator("#text")).to_have_value(ours if mine else theirs)
        assert (tmp_path / "smith.yaml").read_text() == (ours if mine else theirs)


async def test_leaving_with_changes_asks_first(browser: Browser, tmp_path: Path) -> None:
    asked: list[str] = []
    async with graph_console(tmp_path) as world, world.visited(browser) as page:
        await opened(page)

        async def leave(dialog: Dialog) -> None:
            asked.append(dialog.type)
            await dialog.accept()

        page.on("dialog", leave)
        await page.locator("#text").press("x")
        await expect(page.locator("#state")).to_have_text("changed")
        await page.goto("/graphs")
        assert asked == ["beforeunload"]
        await opened(page)
        await page.goto("/graphs")
        assert asked == ["beforeunload"]


async def test_the_keyboard_indents_and_is_not_trapped(browser: Browser, tmp_path: Path) -> None:
    async with graph_console(tmp_path) as world, world.visited(browser) as page:
        await opened(page)
        text = page.locator("#text")
        await write(page, "")
        await text.focus()
        await page.keyboard.type("nodes:")
        await page.keyboard.press("Enter")
        await page.keyboard.type("a: {}")
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        await page.keyboard.type("b")
        await expect(text).to_have_value("nodes:\n  a: {}\n    b")
        await page.keyboard.press("Shift+Tab")
        await expect(text).to_have_value("nodes:\n  a: {}\n  b")
        await page.keyboard.press("Control+a")
        await page.keyboard.press("Tab")
        await expect(text).to_have_value("  nodes:\n    a: {}\n    b")
        await page.keyboard.press("Control+z")
        await expect(text).to_have_value("nodes:\n  a: {}\n  b")
        await page.keyboard.press("Escape")
        await page.keyboard.press("Tab")
        await expect(text).not_to_be_focused()
        await page.keyboard.press("Shift+Tab")
        await expect(text).to_be_focused()
        await page.keyboard.press("Escape")
        await page.keyboard.press("Shift+Tab")
        await expect(text).not_to_be_focused()


async def test_a_message_is_tried_on_what_is_written_and_the_way_is_shown(browser: Browser, tmp_path: Path) -> None:
    async with graph_console(tmp_path) as world, world.visited(browser) as page:
        await opened(page)
        await write(page, SMITH.replace("ignore (all )?previous", "dragon"))
        await page.locator("#message").fill("A dragon!")
        await page.keyboard.press("Enter")
        await expect(page.locator("#path tr")).to_have_count(2)
        await expect(page.locator("#path tr").nth(0)).to_contain_text("triggered")
        await expect(page.locator("#answer .said")).to_have_text("Nice try.")
        await expect(page.locator("#turn img")).to_have_attribute("alt", "The turn went through guard, refuse.")
        await page.locator("#path").get_by_role("button", name="refuse").click()
        await expect(page.locator("#text")).to_be_focused()
        assert (tmp_path / "smith.yaml").read_text() == SMITH


async def test_the_drawing_can_be_made_larger_with_the_keyboard(browser: Browser, tmp_path: Path) -> None:
    async with graph_console(tmp_path) as world, world.visited(browser) as page:
        await opened(page, "gate")
        size = page.locator("#drawing-zoom output")
        await expect(size).not_to_be_empty()
        fitting = await size.inner_text()
        assert await page.evaluate(SIDEWAYS) == 0
        await page.get_by_role("group", name="Size of the drawing").get_by_role("button", name="Larger").click()
        await expect(size).not_to_have_text(fitting)
        assert await page.evaluate(SIDEWAYS) > 0
        await page.locator("#drawing").press("0")
        await expect(size).to_have_text(fitting)


async def test_markup_in_a_graph_is_text_everywhere(browser: Browser, tmp_path: Path) -> None:
    async with graph_console(tmp_path, HOSTILE) as world, world.visited(browser) as page:
        page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
        await opened(page)
        await expect(page.locator("#drawing img")).to_have_attribute(
            "alt", f"A graph of 1 node that begins with {MARKUP}: {MARKUP} leads to the end."
        )
        await page.locator("#message").fill(MARKUP)
        await page.keyboard.press("Enter")
        await expect(page.locator("#answer .said")).to_contain_text(MARKUP)
        await expect(page.locator("#path tr")).to_contain_text(MARKUP)
        await write(page, HOSTILE + f'"{MARKUP}": 1\n')
        await expect(page.locator("#problems")).to_contain_text(MARKUP)
        assert await page.locator("#graph script, #graph img[src=x]").count() == 0


async def test_one_that_comes_along_is_tried_and_copied_but_not_saved(browser: Browser, tmp_path: Path) -> None:
    async with graph_console(tmp_path) as world, world.visited(browser) as page:
        await opened(page, "graph:npc")
        await expect(page.locator("#state")).to_have_text("read-only")
        await expect(page.get_by_role("button", name="Save", exact=True)).to_be_hidden()
        async with page.expect_download() as download:
            await page.get_by_role("button", name="Save a copy").click()
        assert (await download.value).suggested_filename == "npc.yaml"
        await expect(page.locator("#note")).to_contain_text("comes with Trunkline")


async def test_what_another_program_has_written_is_there_when_somebody_comes_back(
    browser: Browser, tmp_path: Path
) -> None:
    async with graph_console(tmp_path) as world, world.visited(browser) as page:
        await opened(page)
        come_back = "document.dispatchEvent(new Event('visibilitychange'))"
        (tmp_path / "smith.yaml").write_text(SMITH + "# theirs")
        await page.evaluate(come_back)
        await expect(page.locator("#text")).to_have_value(SMITH + "# theirs")
        await write(page, SMITH + "# mine")
        (tmp_path / "smith.yaml").write_text(SMITH)
        await page.evaluate(come_back)
        await expect(page.locator("#state")).to_have_text("changed on disk")
        assert await violations(page) == []
        await page.get_by_role("button", name="Keep mine").click()
        await expect(page.locator("#state")).to_have_text("changed")
        await page.keyboard.press("Control+s")
        await expect(page.locator("#state")).to_have_text("saved")
        assert (tmp_path / "smith.yaml").read_text() == SMITH + "# mine"


async def test_lines_keep_the_endings_that_they_have(browser: Browser, tmp_path: Path) -> None:
    async with graph_console(tmp_path) as world, world.visited(browser) as page:
        (tmp_path / "smith.yaml").write_bytes(SMITH.replace("\n", "\r\n").encode())
        await opened(page)
        await expect(page.locator("#state")).to_have_text("saved")
        await write(page, SMITH + "# more\n")
        await page.keyboard.press("Control+s")
        await expect(page.locator("#state")).to_have_text("saved")
        assert (tmp_path / "smith.yaml").read_bytes() == (SMITH + "# more\n").replace("\n", "\r\n").encode()


async def test_a_talker_looks_and_changes_nothing(browser: Browser, tmp_path: Path) -> None:
    async with graph_console(tmp_path) as world, visiting(browser, world.site) as page:
        world.exchange.people = People([PersonSettings("tom", hashlib.sha256(b"secret").hexdigest(), "talker")])
        await page.goto("/graphs/smith")
        await page.locator("#token").fill("secret")
        await page.keyboard.press("Enter")
        await expect(page.locator("#state")).to_have_text("read-only")
        await expect(page.locator("#text")).to_have_value(SMITH)
        assert not await page.locator("#text").is_editable()
        await expect(page.locator("#drawing img")).to_be_visible()
        await expect(page.locator("#save, #copy, #try")).to_have_count(0)
        await page.locator("#text").focus()
        await page.keyboard.press("Tab")
        await expect(page.locator("#text")).not_to_be_focused()
        assert await violations(page) == []


@pytest.mark.parametrize("dark", [False, True])
async def test_a_graph_fits_a_phone(browser: Browser, tmp_path: Path, dark: bool) -> None:
    async with graph_console(tmp_path) as world, world.visited(browser, phone=True, dark=dark) as page:
        await page.goto("/graphs")
        assert await cramped(page) == []
        await opened(page)
        await page.locator("#message").fill("Good morning")
        await page.keyboard.press("Enter")
        await expect(page.locator("#path tr")).to_have_count(3)
        assert await cramped(page) == []
        assert await violations(page) == []
        await picture(page, f"console-graph-phone{'-dark' if dark else ''}")


async def test_a_graph_is_as_good_in_the_dark(browser: Browser, tmp_path: Path) -> None:
    async with graph_console(tmp_path) as world, world.visited(browser, dark=True) as page:
        await opened(page, "gate")
        await page.locator("#message").fill("Open the gate, open_gate")
        await page.keyboard.press("Enter")
        await expect(page.locator("#path tr")).to_have_count(4)
        assert await violations(page) == []
        await picture(page, "console-graph-dark")
