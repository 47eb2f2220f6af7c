"""Files and pictures that are brought to a conversation, in a real browser."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.test_console_conversation import opened, say, world_with
from tests.support.loop import until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

#: What a browser does when somebody pastes or drops a file.
BRING = """([kind, name, data]) => {
  const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0));
  const all = new DataTransfer();
  all.items.add(new File([bytes], name, { type: "image/png" }));
  const more = { bubbles: true, cancelable: true };
  const event = kind === "paste" ? new ClipboardEvent("paste", { clipboardData: all, ...more })
    : new DragEvent("drop", { dataTransfer: all, ...more });
  document.getElementById("text").dispatchEvent(event);
}"""


async def bring(page: Page, kind: str, name: str) -> None:
    await page.evaluate(BRING, [kind, name, base64.b64encode(PNG).decode()])


def contents(paths: tuple[str, ...]) -> list[bytes]:
    return [Path(path).read_bytes() for path in paths]


async def test_files_are_attached_by_the_button_and_pictures_by_paste_and_drop(
    browser: Browser, tmp_path: Path
) -> None:
    async with world_with(tmp_path) as (world, agent), world.visited(browser) as page:
        await opened(world, page)
        await page.locator("#files").set_input_files({"name": "notes.txt", "mimeType": "text/plain", "buffer": b"one"})
        await bring(page, "paste", "image.png")
        await bring(page, "drop", "<img src=x onerror=document.title='hit'>.png")
        await expect(page.locator("#attached > li")).to_have_count(3)
        await expect(page.locator("#attached")).to_contain_text("<img src=x onerror=document.title='hit'>.png")
        await page.get_by_role("button", name="Remove image.png").click()
        await expect(page.locator("#attached > li")).to_have_count(2)
        await say(page, "say thanks")
        await expect(page.locator(".row.message .chips")).to_contain_text("notes.txt")
        await expect(page.locator(".row.message .chips")).to_contain_text("<img src=x")
        await expect(page.locator("#attached > li")).to_have_count(0)
        await until(lambda: agent.messages)
        kept = agent.messages[0].files
        assert contents(kept) == [b"one", PNG]
        directory = world.exchange.switchboard.store.files_of("one")
        assert {os.path.dirname(path) for path in kept} == {directory}


async def test_a_file_that_is_too_large_is_not_sent(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path) as (world, _), world.visited(browser) as page:
        await opened(world, page)
        await page.evaluate(
            """() => {
              const all = new DataTransfer();
              all.items.add(new File([new Uint8Array(20 * 1024 * 1024 + 1)], "huge.bin"));
              const drop = new DragEvent("drop", { dataTransfer: all, bubbles: true, cancelable: true });
              document.getElementById("text").dispatchEvent(drop);
            }"""
        )
        await expect(page.locator("#trouble")).to_have_text("huge.bin is too large: the limit is 20 MiB.")
        await expect(page.locator("#attached > li")).to_have_count(0)
