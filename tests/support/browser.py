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

PHONE = {"width": 375, "height": 740}
DESKTOP = {"width": 1280, "height": 900}


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
    """A page of a new visitor, who knows nothing yet. It fails at the end if the browser complained about anything."""
    size = PHONE if phone else DESKTOP
    context: BrowserContext = await browser.new_context(
        base_url=base_url,
        viewport={"width": size["width"], "height": size["height"]},
        color_scheme="dark" if dark else "light",
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


async def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the window: people would have to scroll sideways."""
    width: int = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width
