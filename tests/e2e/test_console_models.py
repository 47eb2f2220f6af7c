"""The console's page of models, in a real browser; they come from a hub on the loopback interface."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.support.browser import cramped, picture
from tests.support.console_world import console, violations
from tests.support.hub_server import REPOSITORY, Hub, gguf, hub_serving
from tests.support.package_index import settings_of_nobody
from trunkline.models import catalog, catalog_pulled, speed
from trunkline.models.catalog_entry import CatalogEntry, ModelFile

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

FILE = "tiny.Q4_K_M.gguf"
NAME = f"{REPOSITORY}:{FILE}"
EVIL = '<img src=x onerror="document.title=1"><script>document.title=2</script>'


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    settings_of_nobody(monkeypatch)
    monkeypatch.setenv("TRUNKLINE_CACHE", str(tmp_path / "cache"))
    with hub_serving(Hub(**{FILE: gguf("one", size=3_000_000)}), monkeypatch) as hub:
        yield hub


async def test_a_model_is_pulled_given_up_continued_and_removed(browser: Browser, tmp_path: Path, hub: Hub) -> None:
    async with console(tmp_path) as world, world.visited(browser) as page:
        await page.goto("/models")
        hub.go_on.clear()
        await page.get_by_label("A name from below").fill(REPOSITORY)
        await page.get_by_role("button", name="Pull", exact=True).first.click()
        bar = page.get_by_role("progressbar", name="Pull of")
        await expect(bar).to_be_visible()
        assert await violations(page) == []
        await picture(page, "console-models-pulling")
        await page.get_by_role("button", name="Cancel the pull of").click()
        await expect(page.locator("#pulls > li")).to_have_attribute("data-state", "cancelled")
        hub.go_on.set()
        await page.get_by_role("button", name="Continue the pull of").click()
        await expect(page.locator("#pulls > li").first).to_have_attribute("data-state", "done")
        row = page.locator(f'#models li[data-name="{NAME}"]')
        await expect(row.get_by_text("here", exact=True)).to_be_visible()
        await expect(row.get_by_text("3.0 MB")).to_be_visible()
        speed.heard(NAME, {"predicted_n": 50, "predicted_per_second": 41.25, "prompt_ms": 100})
        await page.reload()
        await expect(row.locator(".speed")).to_have_text("41.2 tokens/s")
        await row.get_by_role("button", name=f"Remove {NAME}").click()
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(row.get_by_role("button", name=f"Remove {NAME}")).to_be_focused()
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Remove 3.0 MB").press("Enter")
        await expect(page.locator("#said")).to_have_text(re.compile("was removed"))
        await expect(row).to_have_count(0)
        assert not catalog_pulled.entries(catalog.models_dir())


async def test_what_cannot_be_pulled_says_why(browser: Browser, tmp_path: Path, hub: Hub) -> None:
    async with console(tmp_path) as world, world.visited(browser) as page:
        await page.goto("/models")
        await page.get_by_label("A name from below").fill("smollm2-135")
        await page.get_by_role("button", name="Pull", exact=True).first.click()
        await expect(page.locator("#trouble")).to_contain_text("Did you mean smollm2-135m?")
        await page.get_by_label("A name from below").fill("nobody/nothing")
        await page.get_by_role("button", name="Pull", exact=True).first.click()
        row = page.locator("#pulls > li")
        await expect(row).to_have_attribute("data-state", "failed")
        await expect(row).to_contain_text("has no nobody/nothing for you")
        assert await violations(page) == []


@pytest.mark.parametrize(("phone", "dark"), [(False, False), (False, True), (True, False), (True, True)])
async def test_the_list_looks_well_everywhere(
    browser: Browser, tmp_path: Path, hub: Hub, phone: bool, dark: bool
) -> None:
    digest = "ab" * 32
    entry = CatalogEntry("", "llm", EVIL, "apache-2.0", (ModelFile("b.gguf", digest, length=9),), source="owner/evil")
    await asyncio.to_thread(catalog_pulled.write, catalog.models_dir(), entry)
    async with console(tmp_path) as world, world.visited(browser, phone=phone, dark=dark) as page:
        await page.goto("/models")
        await expect(page.get_by_role("heading", name="Language")).to_be_visible()
        await expect(page.get_by_text(EVIL)).to_be_visible()
        await expect(page).to_have_title("Models · Trunkline")
        assert await page.locator("main img").count() == 0
        assert await cramped(page) == []
        assert await violations(page) == []
        await picture(page, f"console-models{'-phone' if phone else ''}{'-dark' if dark else ''}")
