"""The pages about agents in a real browser: what each is, how to reach it, its log, a new beginning."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, expect

from tests.support.browser import cramped, nothing_goes, picture, pictures
from tests.support.console_world import ConsoleWorld, console, violations
from tests.support.loop import until
from trunkline.core.events import UserMessage
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.settings import AgentBudget, AgentSettings

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

HOSTILE = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>'


async def described(world: ConsoleWorld, **agents: AgentSettings) -> None:
    """Give the exchange these agents, too."""
    settings = world.exchange.settings
    named = {name: agent.replace(name=name, workspace=str(world.root)) for name, agent in agents.items()}
    await world.exchange.take_up(settings.replace(agents={**settings.agents, **named}))


async def said(world: ConsoleWorld, text: str, agent: str = "helper") -> LiveSession:
    """A session in which something was said."""
    live = await world.exchange.switchboard.open(agent, by="ana")
    await world.exchange.switchboard.submit(live, UserMessage(text, sender="ana"))
    return live


async def test_all_agents_are_listed_with_what_they_are_and_how_they_do(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path, echo="echo", broken="agentproc:/nowhere.yaml") as world:
        await described(
            world,
            reviewer=AgentSettings(
                "", "echo", description="Reads what others have changed, and says what it thinks of it.", mode="plan"
            ),
        )
        await said(world, "say one; wait")
        async with world.visited(browser) as page:
            await page.goto("/agents")
            await expect(page.locator(".agent")).to_have_count(4)
            well = page.locator('.agent[data-agent="helper"]')
            await expect(well.locator("[data-health]")).to_have_text("well")
            await expect(well).to_contain_text("1 at work")
            await expect(page.locator('.agent[data-agent="broken"] [data-health]')).to_have_text("unwell")
            await expect(page.locator('.agent[data-agent="broken"] .problem')).to_contain_text("nowhere.yaml")
            assert await violations(page) == []
            await pictures(page, "console-agents")
            await well.get_by_role("button", name="Write to it").click()
            await page.wait_for_url("**/sessions/*")


async def test_one_agent_is_shown_with_all_that_is_known_of_it(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as world:
        budget = AgentBudget(turns_per_hour=10, tokens_per_day=1_000_000)
        reviewer = AgentSettings(
            "", "echo", description="Reads what others have changed.", allow=("Read", "Grep"), budget=budget
        )
        await described(world, reviewer=reviewer)
        async with world.visited(browser) as page:
            await page.goto("/agents/reviewer")
            await expect(page.get_by_text("Read, Grep")).to_be_visible()
            await expect(page.locator("#budget > li")).to_have_count(2)
            await expect(page.locator("#lines-empty")).to_be_visible()
            await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
            way = page.locator(".ways > li").filter(has_text="The HTTP API, on this machine")
            # It says so for two seconds.
            await nothing_goes(page, after_ms=2000)
            await way.get_by_role("button", name="Copy").click()
            await expect(way.get_by_role("button")).to_have_text("Copied")
            copied = await page.evaluate("navigator.clipboard.readText()")
            assert copied == await way.locator("pre").text_content()
            assert f"{world.root}/home/exchange.sock" in copied
            assert await violations(page) == []
            await pictures(page, "console-agent")


async def test_its_log_grows_before_your_eyes_and_a_restart_makes_it_well_again(
    browser: Browser, tmp_path: Path
) -> None:
    async with console(tmp_path) as world:
        busy = await said(world, "wait")
        await until(lambda: busy.session.turn)
        resting = await said(world, "say one")
        await until(lambda: resting.is_idle)
        async with world.visited(browser) as page:
            await page.goto("/agents/helper")
            await expect(page.locator("#lines-empty")).to_be_visible()
            await said(world, "crash")
            await expect(page.locator("#lines > li").first).to_contain_text("the agent crashed in turn 1")
            await expect(page.locator("[data-health]")).to_have_text("unwell")
            assert await violations(page) == []
            await picture(page, "console-agent-log")
            await page.get_by_role("button", name="Restart").click()
            await expect(page.get_by_role("status").filter(has_text="Restarted")).to_contain_text(
                "1 session in use keep"
            )
            await expect(page.locator("[data-health]")).to_have_text("well")
            assert world.exchange.switchboard.live(busy.id) is busy
            assert world.exchange.switchboard.live(resting.id) is None
            await page.get_by_role("button", name="Cut them off now").click()
            await expect(page.locator("#restart-now")).to_be_hidden()
            assert world.exchange.switchboard.live(busy.id) is None


async def test_what_agents_and_files_say_stays_text(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as world:
        hostile = AgentSettings("", f"agentproc:{HOSTILE}", description=HOSTILE, allow=(HOSTILE,))
        await described(world, hostile=hostile)
        world.exchange.directory.logs.note("hostile", "stderr", HOSTILE)
        async with world.visited(browser) as page:
            await page.goto("/agents")
            await expect(page.get_by_text(HOSTILE).first).to_be_visible()
            await page.goto("/agents/hostile")
            await expect(page.locator("#lines > li").first).to_contain_text(HOSTILE)
            await expect(page.locator("main img")).to_have_count(0)
            assert await page.evaluate("window.hurt") is None
            assert await cramped(page) == []
            answer = await page.request.get(f"/agents/{quote(HOSTILE.replace('/', ''))}")
            assert answer.status == 404
            assert "<img src=x" not in await answer.text()


@pytest.mark.parametrize("dark", [False, True])
async def test_the_agents_fit_a_phone(browser: Browser, tmp_path: Path, dark: bool) -> None:
    async with console(tmp_path, echo="echo") as world, world.visited(browser, phone=True, dark=dark) as page:
        world.exchange.directory.logs.note("helper", "warning", "The agent did not stop within 5 s. " * 3)
        for path, name in (("/agents", "agents"), ("/agents/helper", "agent")):
            await page.goto(path)
            await expect(page.locator("[data-health]").first).to_have_text("well")
            assert await cramped(page) == []
            assert await violations(page) == []
            await picture(page, f"console-{name}-phone{'-dark' if dark else ''}")
