"""How a conversation looks in a real browser: everything that can be in one, on every screen, for everybody."""

from __future__ import annotations

import base64
import os
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.support.browser import OUTPUT, SCREENSHOTS, ZOOMED, cramped, overflow
from tests.support.console_world import ConsoleWorld, console, violations
from tests.support.staged_agent import StagedAgent
from trunkline.core.events import (
    Event,
    Extension,
    Failed,
    Notice,
    Plan,
    PlanEntry,
    Progress,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from trunkline.core.usage import Usage

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

ANSWER = """\
## What I found

The test fails because `parse` reads **one line too many**. Two ways to *mend* it:

1. Stop at the empty line.
   - costs nothing
   - keeps [the format](https://example.org/format)
2. Count the lines first.

| way | lines | risk |
|:--|--:|:--|
| stop | 3 | low |
| count | 41 | higher |

```python
def parse(lines):
    return [line for line in lines if line]
```

> It was like this before.
"""

DIFF = """\
--- a/src/parse.py
+++ b/src/parse.py
@@ -1,3 +1,4 @@
 def parse(lines):
-    return list(lines)
+    # An empty line ends it.
+    return [line for line in lines if line]
 def main():
"""


def picture_of_nothing(width: int = 160, height: int = 60) -> str:
    """A PNG in one colour, as Base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + b"\x0b\x61\x69" * width for _ in range(height))
    made = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(made).decode()


HOSTILE_NAME = "<img src=x onerror=hit()>"
EVERYTHING: list[Event] = [
    ThinkingDelta("The parser is small. "),
    ThinkingDelta("I look at it first."),
    Plan((PlanEntry("Find the cause", status="completed"), PlanEntry("Mend it", "high", "in_progress"),
          PlanEntry("Run the tests"))),
    ToolStarted("r1", "Read"),
    ToolFinished("r1", "Read", "success", "def parse(lines):\n    return list(lines)\n"),
    TextDelta(ANSWER),
    ToolRequested("e1", "Edit", "edit", {"file_path": "src/parse.py", "old_string": "return list(lines)",
                                         "new_string": "return [line for line in lines if line]"}),
    ToolStarted("e1", "Edit"),
    ToolFinished("e1", "Edit", "success", DIFF, "diff", {"file_path": "src/parse.py"}),
    ToolStarted("s1", "Spawn"),
    Progress("tests: at work", "s1"),
    ToolStarted("sub1.b1", "Bash"),
    Progress("collected 12 items", "sub1.b1"),
    ToolFinished("sub1.b1", "Bash", "success", "12 passed in 0.31s"),
    ToolFinished("s1", "Spawn", "success", "tests: All 12 pass."),
    Extension("call_shown", {"call_id": "x1", "title": "Write notes", "changes": [
        {"path": "NOTES.md", "old": "one\ntwo\n", "new": "one\nthree\n"}]}),
    ToolStarted("x1", "write"),
    ToolFinished("x1", "write", "success", "written"),
    ToolStarted("p1", "Screenshot"),
    ToolFinished("p1", "Screenshot", "success", picture_of_nothing(), "image"),
    ToolStarted("f1", "Bash"),
    ToolFinished("f1", "Bash", "error", "make: *** No rule to make target 'tests'.  Stop."),
    Notice("The context is being summed up."),
    Failed("provider", "The model is overloaded.", retryable=True),
    TextDelta("Done: all tests pass."),
    TurnEnded("success", Usage(12_400, 830, 9_000)),
]  # fmt: skip


async def picture_of_window(page: Page, name: str) -> None:
    """What somebody sees: of a long list, no more is in the page."""
    await page.screenshot(path=Path(os.environ.get(OUTPUT) or SCREENSHOTS) / f"{name}.png")


@asynccontextmanager
async def shown(
    root: Path, browser: Browser, *, phone: bool = False, dark: bool = False
) -> AsyncIterator[tuple[ConsoleWorld, Page]]:
    """A conversation in which everything has happened, and something is asked."""
    world = ConsoleWorld(root, {})
    ask = ToolRequested("c1", "Bash", "exec", {"command": "rm -rf build && make all", "timeout": 60}, "Build anew")
    world.helper = StagedAgent(
        {"Mend the parser, please.": EVERYTHING, "Build it": [TextDelta("First I clean up."), ask]}
    )
    async with world.served(), world.visited(browser, phone=phone, dark=dark) as page:
        board = world.exchange.switchboard
        live = await board.open("helper", "one", by="ana")
        await board.submit(live, UserMessage("Mend the parser, please.", sender="ana"))
        await page.goto("/sessions/one")
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("Done: all tests pass.")).to_be_visible()
        await board.submit(live, UserMessage("Build it", sender="ben"))
        await expect(page.locator("#questions > li")).to_have_count(1)
        yield world, page


async def test_everything_that_can_be_in_it_is_shown(browser: Browser, tmp_path: Path) -> None:
    async with shown(tmp_path, browser) as (_, page):
        await page.keyboard.press("End")
        for words in ("answered", "tokens: 12,400 in, 830 out, 9,000 from the cache", "The model is overloaded."):
            await expect(page.locator("#events")).to_contain_text(words)
        image = page.locator("img.picture")
        await image.scroll_into_view_if_needed()
        assert await image.evaluate("each => [each.naturalWidth, each.naturalHeight]") == [160, 60]


async def test_sub_agents_are_inside_of_the_call_that_began_them(browser: Browser, tmp_path: Path) -> None:
    async with shown(tmp_path, browser) as (_, page):
        await page.keyboard.press("Home")
        outer = page.locator(".row.tool > .row-body > .tool-card", has_text="Spawn")
        await outer.scroll_into_view_if_needed()
        inner = outer.locator(".inner .tool-card")
        await expect(inner).to_have_count(1)
        await inner.locator("summary").click()
        await expect(inner).to_contain_text("12 passed")


async def test_of_several_sub_agents_each_call_says_whose_it_is(browser: Browser, tmp_path: Path) -> None:
    tasks = [{"name": name, "prompt": "Go."} for name in ("tests", "docs", HOSTILE_NAME)]
    world = ConsoleWorld(tmp_path, {})
    world.helper = StagedAgent(
        {
            "go": [
                ToolRequested("s1", "Spawn", "exec", {"tasks": tasks}, "Spawn"),
                ToolStarted("s1", "Spawn"),
                *(
                    ToolRequested(f"sub{number}.b", "Bash", "exec", {"command": "make"}, f"{task['name']}: Build")
                    for number, task in enumerate(tasks, 1)
                ),
            ]
        }
    )
    async with world.served(), world.visited(browser) as page:
        live = await world.exchange.switchboard.open("helper", "one", by="ana")
        await world.exchange.switchboard.submit(live, UserMessage("go", sender="ana"))
        await page.goto("/sessions/one")
        for name in ("", "tests: ", "docs: ", f"{HOSTILE_NAME}: "):
            asked = page.locator("#questions > li").first
            await expect(asked.locator(".question")).to_have_text(f"{name}make" if name else "Spawn")
            await asked.get_by_role("button", name="Approve").click()
        await expect(page.locator(".inner .who")).to_have_text(["tests", "docs", HOSTILE_NAME])


async def test_a_change_is_shown_below_or_beside(browser: Browser, tmp_path: Path) -> None:
    async with shown(tmp_path, browser) as (_, page):
        diff = page.locator(".row.tool", has_text="src/parse.py").locator(".diff")
        await diff.scroll_into_view_if_needed()
        await expect(diff.locator("tr.old .text")).to_have_text("    return list(lines)")
        await diff.get_by_role("button", name="Side by side").click()
        row = diff.locator("tr", has_text="return list(lines)")
        await expect(row.locator(".text.old")).to_have_text("    return list(lines)")
        await expect(row.locator(".text.new")).to_have_text("    # An empty line ends it.")
        await picture_of_window(page, "console-conversation-beside")
        # It is the reader's choice, for every change.
        await page.reload()
        await expect(page.locator(".row.tool", has_text="src/parse.py").locator(".lines.beside")).to_be_attached()


async def test_what_one_reads_stays_where_it_is(browser: Browser, tmp_path: Path) -> None:
    async with shown(tmp_path, browser) as (_, page):
        await page.locator(".row.tool", has_text="src/parse.py").scroll_into_view_if_needed()
        # The first frames make the rows around it; none after them may move the page.
        places = await page.evaluate("""async () => {
          const places = [];
          for (let frame = 0; frame < 40; frame++) {
            await new Promise((done) => requestAnimationFrame(done));
            places.push(window.scrollY);
          }
          return places.slice(5);
        }""")
        assert len(set(places)) == 1


async def test_thoughts_are_folded_and_plans_are_ticked_off(browser: Browser, tmp_path: Path) -> None:
    async with shown(tmp_path, browser) as (_, page):
        await page.keyboard.press("Home")
        thought = page.get_by_text("The parser is small. I look at it first.")
        await expect(thought).to_be_hidden()
        await page.locator(".row.thinking summary").click()
        await expect(thought).to_be_visible()
        await expect(page.locator(".plan li.completed")).to_have_text("✓Find the cause (done)")
        await expect(page.locator(".row.plan")).to_contain_text("1 of 3 done")
        await picture_of_window(page, "console-conversation-top")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("phone", [False, True])
async def test_it_fits_every_screen(browser: Browser, tmp_path: Path, phone: bool, dark: bool) -> None:
    async with shown(tmp_path, browser, phone=phone, dark=dark) as (_, page):
        name = f"console-conversation{'-phone' if phone else ''}{'-dark' if dark else ''}"
        for key in ("End", "Home"):
            await page.locator("#events").focus()
            await page.keyboard.press(key)
            await expect(page.locator("#e1" if key == "Home" else ".tool-card[data-state=asked]")).to_be_in_viewport()
            assert await overflow(page) == 0
            assert await violations(page) == []
            await picture_of_window(page, f"{name}-{key.lower()}")


async def test_it_is_usable_at_twice_the_size(browser: Browser, tmp_path: Path) -> None:
    async with shown(tmp_path, browser) as (_, page):
        await page.set_viewport_size({"width": ZOOMED["width"], "height": ZOOMED["height"]})
        for key in ("End", "Home"):
            await page.locator("#events").focus()
            await page.keyboard.press(key)
            assert await cramped(page) == []
            await picture_of_window(page, f"console-conversation-zoomed-{key.lower()}")
        await page.locator("#events").focus()
        await page.keyboard.press("a")
        await page.keyboard.press("a")
        await expect(page.locator("#questions > li")).to_have_count(0)


async def test_an_empty_one_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as world, world.visited(browser) as page:
        await world.exchange.switchboard.open("helper", "one", by="ana")
        await page.goto("/sessions/one")
        await expect(page.get_by_text("No messages yet. Write below what helper should do.")).to_be_visible()
        assert await violations(page) == []
        await picture_of_window(page, "console-conversation-empty")
        missing = await page.request.get("/sessions/none")
        assert missing.status == 404
        assert "There is no session <code>none</code> here." in await missing.text()


async def test_long_names_leave_the_pages_as_wide_as_the_window(browser: Browser, tmp_path: Path) -> None:
    long = "a_name_without_a_space_" * 8
    world = ConsoleWorld(tmp_path, {"agent-" * 10: "echo"})
    plan = Plan((PlanEntry(long, status="in_progress"),))
    call = [ToolStarted("t1", long), ToolFinished("t1", long, "success", "done")]
    ask = ToolRequested("c1", long, "exec", {"command": long}, long)
    world.helper = StagedAgent({"go": [plan, *call, Progress(long), ask]})
    async with world.served(), world.visited(browser, phone=True) as page:
        board = world.exchange.switchboard
        live = await board.open("helper", "one", by=long)
        await board.submit(live, UserMessage("go", sender=long))
        async with board.attached("one", by=long, wire=long):
            for path, waits in (("/", "#waiting-list"), ("/approvals", "#pending"), ("/sessions/one", "#questions")):
                await page.goto(path)
                await expect(page.locator(f"{waits} > li")).to_have_count(1)
                if path.startswith("/sessions"):
                    await expect(page.locator("#watchers .tag")).to_have_count(1)
                    await expect(page.locator("#plan-state")).to_be_visible()
                assert await cramped(page) == []
