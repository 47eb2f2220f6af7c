"""A real browser for tests, and what it must not complain about."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, async_playwright, expect

from tests.support.patience import PATIENCE_SECONDS

#: Names of the program, as distributions have it.
_NAMES = ("chromium", "chromium-browser", "google-chrome")
#: A sandbox needs rights that containers do not give; the pages are our own. Without /dev/shm it uses files.
_ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-extensions", "--no-first-run")
WAIT_MS = 1000 * PATIENCE_SECONDS
#: The folder for pictures that people want to look at afterwards.
OUTPUT = "TRUNKLINE_TEST_OUTPUT"
#: Where pictures are kept unless somebody says otherwise.
SCREENSHOTS = Path(__file__).parents[2] / ".cache" / "screenshots"

PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 900}
#: What is left of a window of 1280 by 800 pixels when everything in it has twice the size.
ZOOMED = {"width": 640, "height": 400}

#: What is wrong with a page in a window of this size. Each control is scrolled to, as the focus does it; what is meant
#: for screen readers alone, and what is folded away, is nobody's to click.
_CRAMPED = """async () => {
  // Scripts lay out some of it when the window has changed.
  for (let count = 0; count < 3; count++) await new Promise((done) => requestAnimationFrame(done));
  const root = document.scrollingElement;
  const name = (each) => `${each.tagName.toLowerCase()}${each.id ? `#${each.id}` : ""} "${
    (each.getAttribute("aria-label") || each.textContent || each.value || "").trim().slice(0, 40)}"`;
  const problems = [];
  if (root.scrollWidth > root.clientWidth) problems.push(`the page is ${root.scrollWidth} pixels wide`);
  const bars = [...document.querySelectorAll("body *")].filter((each) =>
    /fixed|sticky/.test(getComputedStyle(each).position) && each.checkVisibility());
  const taken = bars.reduce((sum, each) => sum + each.getBoundingClientRect().height, 0);
  if (taken > innerHeight / 3) problems.push(`bars take ${Math.round(taken)} of ${innerHeight} pixels`);
  const before = [root.scrollTop, root.scrollLeft];
  for (const each of document.querySelectorAll("a[href], button, input, select, textarea, summary")) {
    if (!each.isConnected || !each.checkVisibility({ visibilityProperty: true })) continue;
    if (each.closest(".unseen, .visually-hidden, .skip")) continue;
    each.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
    const edges = [];
    for (let place = each.parentElement; place !== document.body; place = place.parentElement) {
      if (!/hidden|clip/.test(getComputedStyle(place).overflow)) continue;
      // A script can scroll there, and nobody else.
      place.scrollTo(0, 0);
      edges.push(place);
    }
    // A link that goes over two lines is not one box.
    const box = [...each.getClientRects()].find(({ width, height }) => width && height);
    if (!box) continue;
    const isCut = box.left < -1 || box.right > root.clientWidth + 1 || edges.some((place) => {
      const edge = place.getBoundingClientRect();
      return box.left < edge.left - 1 || box.right > edge.right + 1 || box.top < edge.top - 1
        || box.bottom > edge.bottom + 1;
    });
    if (isCut) {
      problems.push(`${name(each)} is cut off`);
      continue;
    }
    const hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    if (![each, ...each.labels ?? []].some((own) => own.contains(hit))) {
      problems.push(`${name(each)} is covered by ${hit ? name(hit) : "the edge of the window"}`);
    }
  }
  root.scrollTo({ top: before[0], left: before[1], behavior: "instant" });
  return problems;
}"""


def executable() -> str | None:
    """Where the browser is; None if there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


@asynccontextmanager
async def chromium(*more: str) -> AsyncIterator[Browser]:
    """A browser without a window, with these arguments, too. Its pages are closed with it."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable(), args=[*_ARGUMENTS, *more])
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def visiting(browser: Browser, base_url: str, *, phone: bool = False, dark: bool = False) -> AsyncIterator[Page]:
    """A page of a new visitor, who knows nothing yet, and wants nothing to move by itself. It fails at the end if the
    browser complained about anything."""
    size = PHONE if phone else DESKTOP
    context: BrowserContext = await browser.new_context(
        base_url=base_url,
        viewport={"width": size["width"], "height": size["height"]},
        color_scheme="dark" if dark else "light",
        # A click on what still glides is lost: it goes where its target was.
        reduced_motion="reduce",
    )
    context.set_default_timeout(WAIT_MS)
    # Expectations have a limit of their own, half as long.
    expect.set_options(timeout=WAIT_MS)
    page = await context.new_page()
    complaints = watched(page)
    try:
        yield page
        assert not complaints, complaints
    finally:
        await context.close()


def watched(page: Page) -> list[str]:
    """What the browser complains about from now on: errors of scripts, violations of the policy, missing files."""
    complaints: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        # What the API refuses is logged by the browser; whether it was right to refuse, the test says.
        if message.type in ("error", "warning") and "/api/" not in message.location.get("url", ""):
            complaints.append(message.text)

    page.on("console", heard)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints


async def picture(page: Page, name: str) -> Path:
    """A picture of the whole page, in the folder that the environment names, or in `SCREENSHOTS`."""
    path = Path(os.environ.get(OUTPUT) or SCREENSHOTS) / f"{name}.png"
    await page.screenshot(path=path, full_page=True)
    return path


async def pictures(page: Page, name: str) -> None:
    """The same by day and by night, for a page of the day."""
    await picture(page, name)
    await page.emulate_media(color_scheme="dark")
    await picture(page, f"{name}-dark")
    await page.emulate_media(color_scheme="light")


async def nothing_goes(page: Page, *, after_ms: int) -> None:
    """Stop a page's timers of that length and more from now on: what goes by itself stays, however late a busy machine
    looks for it."""
    await page.evaluate(
        """most => {
          const later = window.setTimeout;
          window.setTimeout = (call, ms) => (ms >= most ? 0 : later(call, ms));
        }""",
        after_ms,
    )


async def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the window: people would have to scroll sideways."""
    width: int = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width


async def cramped(page: Page) -> list[str]:
    """What cannot be used on a phone, or at twice the size: a page wider than its window, a control that is cut off or
    covered wherever one scrolls to, bars that leave less than two thirds of the height. Afterwards the window is as it
    was."""
    size, found = page.viewport_size, []
    for name, small in (("phone", PHONE), ("zoomed", ZOOMED)):
        await page.set_viewport_size({"width": small["width"], "height": small["height"]})
        found += [f"{name}: {problem}" for problem in await page.evaluate(_CRAMPED)]
    if size is not None:
        await page.set_viewport_size(size)
    return found
