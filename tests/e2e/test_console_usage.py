"""The console's page of what was used, in a real browser."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.support.browser import cramped, picture
from tests.support.console_world import ConsoleWorld, console, violations
from trunkline.exchange.budgets import day_of
from trunkline.exchange.settings import AgentBudget
from trunkline.store.database import Transaction

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

EVIL = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
DAYS = 30


async def spend(world: ConsoleWorld, *more: str) -> date:
    """Some weeks of usage by three agents, and by these; gives today."""
    today = date.fromisoformat(day_of(world.exchange.clock()))
    agents = (("coder", "claude-sonnet-5", 3100), ("helper", "smollm2-135m", 0), ("reviewer", "gpt-6-luna", 900))
    rows = []
    for back in range(DAYS):
        for place, (agent, model, price) in enumerate([*agents, *((name, name, 10) for name in more)]):
            tokens = 9_000 + (back * 7919 + place * 4241) % 41_000
            if (back + place) % 6:
                day = (today - timedelta(back)).isoformat()
                rows.append((day, agent, "ana" if back % 2 else "ben", model, 3, tokens, tokens // 6, 0, 0, price * 40))

    def write(tx: Transaction) -> None:
        for row in rows:
            tx.execute("INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    await world.exchange.budgets._database.write(write)
    await world.exchange.budgets.open(
        {"helper": AgentBudget(tokens_per_day=100_000, turns_per_hour=20), "coder": AgentBudget(usd_per_day=5.0)}
    )
    return today


@pytest.mark.parametrize("dark", [False, True])
async def test_what_was_used_is_drawn_and_told_by_day_agent_model_and_person(
    browser: Browser, tmp_path: Path, dark: bool
) -> None:
    async with console(tmp_path) as world, world.visited(browser, dark=dark) as page:
        today = await spend(world)
        await page.goto("/usage")
        await expect(page.get_by_role("heading", name="Usage", level=1)).to_be_visible()
        chart = page.get_by_role("img", name="Tokens by day and agent")
        await expect(chart).to_be_visible()
        assert await chart.locator("> rect").count() == DAYS * 3 * 5 // 6
        assert await chart.locator("> rect > title").first.text_content()
        row = page.locator("section[aria-labelledby=by-agent] tbody tr", has_text="helper")
        # Nobody knows what its model costs.
        await expect(row.locator("td").last).to_have_text("-")
        await expect(page.locator("section[aria-labelledby=by-person] tbody tr")).to_have_count(2)
        await expect(page.get_by_text("USD today")).to_be_visible()
        assert await violations(page) == []
        await picture(page, f"console-usage{'-dark' if dark else ''}")
        await page.get_by_role("link", name="7 days").click()
        await expect(page.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")
        await page.get_by_role("link", name="US dollars").click()
        await expect(page.get_by_role("img", name="US dollars by day and agent")).to_be_visible()
        await page.get_by_role("link", name="Model", exact=True).click()
        await expect(page.get_by_role("img", name="US dollars by day and model")).to_be_visible()
        await expect(page.locator(".legend > li")).to_have_count(2)
        assert f"since={today - timedelta(6)}" in page.url
        await picture(page, f"console-usage-dollars{'-dark' if dark else ''}")


async def test_own_days_are_shown_and_leave_as_a_table_for_spreadsheets(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as world, world.visited(browser) as page:
        today = await spend(world)
        await page.goto("/usage")
        await page.get_by_label("First day").fill((today - timedelta(3)).isoformat())
        await page.get_by_label("Last day").fill((today - timedelta(2)).isoformat())
        await page.get_by_role("button", name="Apply").click()
        await expect(
            page.get_by_role("heading", name=f"{today - timedelta(3)} to {today - timedelta(2)}")
        ).to_be_visible()
        async with page.expect_download() as expected:
            await page.get_by_role("link", name="CSV").click()
        saved = tmp_path / "usage.csv"
        await (await expected.value).save_as(saved)
        lines = saved.read_text().splitlines()
        assert lines[0].startswith("day,agent,turns,")
        assert {line[:10] for line in lines[1:]} == {str(today - timedelta(back)) for back in (3, 2)}


@pytest.mark.parametrize("dark", [False, True])
async def test_it_fits_a_phone(browser: Browser, tmp_path: Path, dark: bool) -> None:
    async with console(tmp_path) as world, world.visited(browser, phone=True, dark=dark) as page:
        await spend(world)
        await page.goto("/usage")
        await expect(page.get_by_role("img", name="Tokens by day and agent")).to_be_visible()
        assert await cramped(page) == []
        assert await violations(page) == []
        await picture(page, f"console-usage-phone{'-dark' if dark else ''}")


async def test_without_usage_it_says_what_to_do_first(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as world, world.visited(browser) as page:
        await page.goto("/usage")
        await expect(page.get_by_text("Nothing was used on these days.")).to_be_visible()
        await expect(page.get_by_text("No agent has a budget.")).to_be_visible()
        assert await violations(page) == []
        await picture(page, "console-usage-empty")


async def test_names_with_markup_are_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as world, world.visited(browser) as page:
        await spend(world, EVIL)
        await page.goto("/usage")
        await expect(page.get_by_role("rowheader", name=EVIL).first).to_be_visible()
        await expect(page).to_have_title("Usage · Trunkline")
        assert await page.locator("main img").count() == 0
