"""The console's page of settings, in a real browser, of an exchange that has a file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.support.browser import cramped, picture, visiting
from tests.support.console_world import violations
from tests.support.patience import PATIENCE_SECONDS
from tests.support.system_keyring import Memory, using
from trunkline.base.keyring import ENTRIES
from trunkline.exchange.process import ExchangeProcess

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

EVIL = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
#: Long enough for nobody to find the file changed by chance.
NEVER_SECONDS = 3600.0
SECRETS = {
    "ANA_TOKEN": "ana-secret-token-0001",
    "TALKER_TOKEN": "talker-secret-token-0002",
    "GAME_TOKEN": "game-secret-token-0003",
    "HOOK": "https://hooks.example/T0001/secret-path-0004-abcdef",
}
KEPT = "kept-secret-token-0005"
DIGEST = "0123456789abcdef" * 4
FILE = f"""\
[exchange]
listen = "127.0.0.1:0"
home = "home"
webhook_env = "HOOK"
idle_after = "30m"

[agents.helper]
agent = "echo"
description = '{EVIL}'

[agents.helper.budget]
tokens_per_day = 500000
usd_per_day = 2.5

[agents.coder]
agent = "coder"
provider = "mock"

[wires.tryll]
listen = "127.0.0.1:0"
agents = ["helper"]
token_env = "GAME_TOKEN"

[people.ana]
token_env = "ANA_TOKEN"
role = "admin"

[people.ben]
token_keyring = "ben"
role = "observer"

[people.cleo]
token_sha256 = "{DIGEST}"

[people.tim]
token_env = "TALKER_TOKEN"
role = "talker"
"""


@asynccontextmanager
async def exchange(root: Path) -> AsyncIterator[tuple[ExchangeProcess, Path]]:
    """An exchange with that file, which it does not look at by itself."""
    path = root / "trunkline.toml"
    path.write_text(FILE)
    keyring = Memory()
    keyring.set_password(ENTRIES, "ben", KEPT)
    with using(keyring):
        process = ExchangeProcess(str(path), environ=SECRETS, watch_seconds=NEVER_SECONDS)
        stop, reachable = asyncio.Event(), asyncio.Event()
        running = asyncio.create_task(process.run(stop, reachable.set))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await reachable.wait()
            yield process, path
        finally:
            stop.set()
            await asyncio.wait_for(running, PATIENCE_SECONDS)


@asynccontextmanager
async def visited(
    browser: Browser, process: ExchangeProcess, *, phone: bool = False, dark: bool = False
) -> AsyncIterator[Page]:
    """Its page of settings, for somebody who came by a link."""
    async with visiting(browser, process.where, phone=phone, dark=dark) as page:
        await page.goto(process.trial.removeprefix("open "))
        await page.goto("/settings")
        yield page


def origins(text: str) -> Mapping[str, str]:
    """Where keys are said in the file, as the page tells it."""
    lines = text.splitlines()
    return {key: f"line {lines.index(line) + 1}" for key, line in (
        ("exchange.home", 'home = "home"'), ("exchange.idle_after", 'idle_after = "30m"'),
        ("agents.helper.budget.usd_per_day", "usd_per_day = 2.5"),
    )}  # fmt: skip


@pytest.mark.parametrize(("phone", "dark"), [(False, False), (False, True), (True, False), (True, True)])
async def test_each_setting_is_shown_with_its_origin_and_no_secret(
    browser: Browser, tmp_path: Path, phone: bool, dark: bool
) -> None:
    async with exchange(tmp_path) as (process, _), visited(browser, process, phone=phone, dark=dark) as page:
        await expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
        for key, place in origins(FILE).items():
            await expect(page.locator(f'tr[data-key="{key}"]')).to_contain_text(place)
        token = page.locator('tr[data-key="people.ana.token"]')
        await expect(token.locator("td").first).to_have_text("set")
        await expect(token).to_contain_text("variable $ANA_TOKEN")
        await expect(page.locator('tr[data-key="people.ben.token"]')).to_contain_text("keyring entry ben")
        await expect(page.locator('tr[data-key="exchange.webhook"]')).to_contain_text("variable $HOOK")
        await expect(page.locator('tr[data-key="agents.helper.mode"]')).to_contain_text("default")
        await expect(page.locator('tr[data-key="model in use"]')).to_have_count(1)
        shown = await page.content()
        assert not [secret for secret in (*SECRETS.values(), KEPT, DIGEST) if secret in shown]
        await expect(page.get_by_text(EVIL)).to_be_visible()
        await expect(page).to_have_title("Settings · Trunkline")
        assert await page.locator("main img").count() == 0
        assert await cramped(page) == []
        assert await violations(page) == []
        await picture(page, f"console-settings{'-phone' if phone else ''}{'-dark' if dark else ''}")


async def test_a_setting_is_found_by_its_name_its_value_and_its_origin(browser: Browser, tmp_path: Path) -> None:
    async with exchange(tmp_path) as (process, _), visited(browser, process) as page:
        await page.get_by_label("Find a setting").fill("ana_token")
        await expect(page.locator("#found")).to_have_text("1 found")
        await expect(page.locator('tr[data-key="people.ana.token"]')).to_be_visible()
        await expect(page.locator('tr[data-key="exchange.home"]')).to_be_hidden()


async def test_a_changed_file_is_told_checked_and_loaded(browser: Browser, tmp_path: Path) -> None:
    async with exchange(tmp_path) as (process, path), visited(browser, process) as page:
        await page.get_by_role("button", name="Check").click()
        await expect(page.locator("#said")).to_have_text("Nothing is wrong with the file.")
        path.write_text(FILE.replace('role = "observer"', 'role = "king"').replace("usd_per_day", "usd_per_dya"))
        await page.get_by_role("button", name="Load").click()
        problems = page.locator("#problems > li")
        await expect(problems).to_have_count(2)
        await expect(problems.first).to_contain_text(f"line {FILE.splitlines().index('usd_per_day = 2.5') + 1}")
        await expect(problems.first).to_contain_text("Did you mean agents.helper.budget.usd_per_day?")
        await expect(problems.first.locator(".hint code")).to_have_text("agents.helper.budget.usd_per_day")
        # What is said of the file is true also if it was changed while the page was open.
        await expect(page.locator("#state")).to_have_text("wrong")
        await expect(page.get_by_text("It has mistakes and is not loaded.")).to_be_visible()
        await expect(page.get_by_text("In force as it is on disk.")).to_have_count(0)
        assert await violations(page) == []
        await picture(page, "console-settings-problems")
        path.write_text(FILE.replace('"30m"', '"45m"'))
        await page.reload()
        await expect(page.get_by_text("Changed on disk, not loaded.")).to_be_visible()
        changed = page.get_by_role("row", name="exchange.idle_after").first
        await expect(changed).to_contain_text("45m")
        assert await violations(page) == []
        await picture(page, "console-settings-changed")
        await page.get_by_role("button", name="Load").click()
        await expect(page.get_by_text("In force as it is on disk.")).to_be_visible()
        await expect(page.locator('tr[data-key="exchange.idle_after"]')).to_contain_text("45m")


async def test_a_graph_that_is_not_there_is_told_and_the_file_is_loaded_all_the_same(
    browser: Browser, tmp_path: Path
) -> None:
    async with exchange(tmp_path) as (process, path), visited(browser, process) as page:
        path.write_text(FILE + '\n[agents.npc]\nagent = "graph:npc.yaml"\n')
        await page.get_by_role("button", name="Check").click()
        await expect(page.locator("#said")).to_have_text("1 warning.")
        await expect(page.locator("#problems > li")).to_contain_text("npc.yaml")
        await expect(page.locator("#state")).to_have_text("changed")
        assert await violations(page) == []
        await page.get_by_role("button", name="Load").click()
        await expect(page.locator("#state")).to_have_text("loaded")
        await expect(page.locator('tr[data-key="agents.npc.agent"]')).to_be_visible()


async def test_a_talker_gets_no_settings(browser: Browser, tmp_path: Path) -> None:
    async with exchange(tmp_path) as (process, _), visiting(browser, process.where) as page:
        await page.goto("/sign-in?to=/")
        await page.get_by_role("textbox", name="Token").fill(SECRETS["TALKER_TOKEN"])
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("heading", name="Home")).to_be_visible()
        answer = await page.request.get("/settings")
        assert answer.status == 403
        assert "Not for you" in await answer.text()
        assert (await page.request.get("/api/settings")).status == 403
