"""The list of sessions, the search in them and the timeline of one, in a real browser."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import APIResponse, Browser, Page, Route, expect

from tests.support.browser import cramped, picture
from tests.support.console_world import ConsoleWorld, console, violations
from tests.support.loop import until
from trunkline.core.events import UserMessage
from trunkline.core.turns import State

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

#: What would run or change a page that takes texts for markup.
MARKUP = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>{{7*7}}&lt;b&gt;"


#: A graph that needs no model.
GRAPH = """
start: guard
nodes:
  guard:
    type: HumanMessageGuardrail
    inline_strings: [ignore your orders]
    triggered: refuse
    not_triggered: answer
  refuse: {type: CannedResponse, inline_strings: [Nice try.]}
  answer: {type: CannedResponse, inline_strings: ["Apples, pears and plums."]}
"""


async def said(world: ConsoleWorld, text: str, *, agent: str = "helper", by: str = "ana", session: str = "") -> str:
    """Say something in a session, and wait until its row is written."""
    board = world.exchange.switchboard
    live = await (board.find(session) if session else board.open(agent, by=by))
    await board.submit(live, UserMessage(text, sender=by))
    await live.session.at_rest()
    await live.written()
    return live.id


async def filled(world: ConsoleWorld) -> dict[str, str]:
    """Sessions as a busy day leaves them."""
    found = {"deploy": await said(world, "say The deployment went through: three services are up, none was restarted.")}
    await said(world, "say All four replicas answer.", session=found["deploy"])
    found["crash"] = await said(world, "say I look at the invoices of March; crash", by="ben")
    found["echo"] = await said(world, "Please repeat the minutes of the meeting on pricing", agent="parrot", by="carla")
    found["markup"] = await said(world, f"say {MARKUP}", by=MARKUP[:60])
    return found


async def test_what_was_said_is_found_and_leads_to_its_place(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path, parrot="echo") as world, world.visited(browser) as page:
        found = await filled(world)
        await page.goto("/sessions")
        rows = page.locator(".sessions > li")
        await expect(rows).to_have_count(4)
        await expect(rows.nth(2).locator(".tag")).to_have_text("failed")
        assert await violations(page) == []
        await picture(page, "console-sessions")
        await page.get_by_label("Search in what was said").fill("REPLICAS")
        await page.keyboard.press("Enter")
        await expect(rows).to_have_count(1)
        await expect(page.locator("mark")).to_have_text(["replicas"])
        assert await violations(page) == []
        await rows.locator(".title").click()
        await expect(page).to_have_url(re.compile(rf"/sessions/{found['deploy']}#e\d+$"))


async def test_sessions_are_chosen_by_agent_outcome_and_person(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path, parrot="echo") as world, world.visited(browser) as page:
        await filled(world)
        await page.goto("/sessions")
        titles = page.locator(".sessions .title")
        await page.get_by_role("combobox", name="Agent", exact=True).select_option("parrot")
        await page.get_by_role("button", name="Search").click()
        await expect(titles).to_have_text(["Please repeat the minutes of the meeting on pricing"])
        await page.goto("/sessions?outcome=error")
        await expect(titles).to_have_text(["say I look at the invoices of March; crash"])
        await page.goto("/sessions?q=say&by=ben")
        await expect(titles).to_have_text(["say I look at the invoices of March; crash"])
        await expect(page.locator(".cause")).to_be_visible()
        await picture(page, "console-sessions-search")
        await page.goto("/sessions?q=nothing+of+that+kind")
        await expect(page.get_by_text("Nothing was found.")).to_be_visible()
        assert await violations(page) == []


async def test_older_sessions_are_on_further_pages(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.exchange.console.sessions.PAGE", 2)
    async with console(tmp_path) as world, world.visited(browser) as page:
        for number in range(5):
            await said(world, f"say word{number} common")
        for address in ("/sessions", "/sessions?q=common"):
            await page.goto(address)
            seen = []
            for count in (2, 2, 1):
                await expect(page.locator(".sessions > li")).to_have_count(count)
                seen += await page.locator(".sessions .title").all_text_contents()
                if count == 2:
                    await page.get_by_role("link", name="Older").click()
            assert seen == [f"say word{number} common" for number in reversed(range(5))]
            await expect(page.get_by_role("link", name="Older")).to_have_count(0)
            await page.get_by_role("link", name="Newest").click()
            await expect(page.locator(".sessions .title").first).to_have_text("say word4 common")


async def test_a_session_is_begun_from_the_empty_list_and_is_seen_at_work_there(
    browser: Browser, tmp_path: Path
) -> None:
    async with console(tmp_path) as world, world.visited(browser) as page:
        await page.goto("/sessions")
        await expect(page.get_by_text("There is no session yet.")).to_be_visible()
        assert await violations(page) == []
        await picture(page, "console-sessions-empty")
        await page.get_by_role("button", name="Begin").click()
        await expect(page).to_have_url(re.compile(r"/sessions/[^/?]+$"))
        (row,) = await world.exchange.switchboard.rows()
        live = await world.exchange.switchboard.find(row.id)
        await page.goto("/sessions")
        await expect(page.locator(".sessions .tag")).to_have_text("new")
        await world.exchange.switchboard.submit(live, UserMessage("wait"))
        await expect(page.locator(".sessions .tag")).to_have_text("at work")
        world.helper.gate.set()
        await expect(page.locator(".sessions .tag")).not_to_have_text("at work")


async def test_a_timeline_tells_causes_and_folds_what_is_long(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as world, world.visited(browser) as page:
        id = await said(world, f"say {'word ' * 200}")
        await said(world, "say almost; crash", session=id)
        live = await world.exchange.switchboard.find(id)
        await world.exchange.switchboard.submit(live, UserMessage("say I wait; wait", sender="ana"))
        await until(lambda: live.session.status is State.RUNNING)
        live.session.stop("ben")
        await live.session.at_rest()
        await page.goto(f"/sessions/{id}/timeline")
        turns = page.locator(".turn")
        await expect(turns.locator("summary > .tag")).to_have_text(["answered", "failed", "stopped"])
        await expect(turns.nth(2).locator(".cause")).to_have_text("ben stopped it.")
        await expect(turns.nth(1).locator(".cause")).to_have_count(0)
        await turns.nth(1).locator("summary").first.focus()
        # What happens meanwhile takes the keyboard from nobody, and closes nothing.
        await world.exchange.switchboard.submit(live, UserMessage("wait"))
        await expect(turns).to_have_count(4)
        await page.keyboard.press("Enter")
        await expect(turns.nth(1).locator(".cause")).to_contain_text("told to")
        world.helper.gate.set()
        await expect(turns.nth(3).locator("summary > .tag")).to_have_text("answered")
        await expect(turns.nth(1).locator(".cause")).to_be_visible()
        await turns.nth(0).locator("summary").first.click()
        folded = turns.nth(0).locator(".entry-answer .long > .text")
        await expect(folded).to_be_hidden()
        await turns.nth(0).locator(".entry-answer summary").click()
        await expect(folded).to_be_visible()
        assert await violations(page) == []
        await picture(page, "console-timeline")
        link = turns.nth(1).locator(".entry-message .marks a")
        await expect(link).to_have_attribute("href", re.compile(rf"^/sessions/{id}#e\d+$"))


async def test_a_turn_that_began_before_the_first_news_is_there_whichever_answer_comes_first(
    browser: Browser, tmp_path: Path
) -> None:
    news, late = asyncio.Event(), asyncio.Event()
    read: list[APIResponse] = []

    async def slow(route: Route) -> None:
        await news.wait()
        now = await (await page.request.get("/api/overview")).text()
        await route.fulfill(content_type="text/event-stream", body=f"event: overview\ndata: {now}\n\n")

    async def first(route: Route) -> None:
        response = await route.fetch()
        read.append(response)
        if len(read) == 1:
            await late.wait()
        await route.fulfill(response=response)

    async with console(tmp_path) as world, world.visited(browser) as page:
        id = await said(world, "say one")
        await page.route("**/api/overview/events", slow)
        await page.route("**/explanation", first)
        await page.goto(f"/sessions/{id}/timeline")
        await until(lambda: read)
        live = await world.exchange.switchboard.find(id)
        await world.exchange.switchboard.submit(live, UserMessage("wait"))
        await until(lambda: live.session.status is State.RUNNING)
        await live.written()
        news.set()
        await expect(page.locator(".turn")).to_have_count(2)
        async with page.expect_event("requestfinished", lambda request: request.url.endswith("/explanation")):
            late.set()
        # The page has made of it what it makes when it has read another answer.
        await page.evaluate("fetch('/api/overview').then((found) => found.text())")
        await expect(page.locator(".turn")).to_have_count(2)


async def test_a_session_is_forked_handed_over_exported_and_removed_there(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path, parrot="scripted:demo") as world, world.visited(browser) as page:
        id = await said(world, "say one")
        await said(world, "say two", session=id)
        await page.goto(f"/sessions/{id}/timeline#turn-1")
        end = page.locator("#turn-1 .entry-end")
        await end.hover()
        await end.get_by_role("button", name="Fork after event").click()
        await expect(page).not_to_have_url(re.compile(id))
        await page.wait_for_url(re.compile(r"/sessions/[^/]+$"))
        fork = page.url.rsplit("/", 1)[1]
        assert (await world.exchange.switchboard.find(fork)).session.state.turns == 1
        await page.goto(f"/sessions/{id}/timeline")
        await page.locator("summary", has_text="Export").click()
        async with page.expect_download() as download:
            await page.get_by_role("link", name="Markdown").click()
        kept = await (await download.value).path()
        assert "> say two" in kept.read_text()
        assert (await download.value).suggested_filename == f"{id}.md"
        await page.locator("summary", has_text="Hand over").click()
        await picture(page, "console-timeline-handover")
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Remove").click()
        assert await violations(page) == []
        await page.get_by_role("dialog").get_by_role("button", name="Keep it").click()
        await page.get_by_role("button", name="Remove").click()
        await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        await page.wait_for_url("**/sessions")
        assert await world.exchange.switchboard.row(id) is None


#: Times that run into what stands beside them, each said to be as long as times can be.
TOO_LONG = """() => [...document.querySelectorAll(".entry .offset")]
  .map((each) => { each.textContent = "+23 h 59 min"; return each; })
  .filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.scrollWidth)"""


async def test_a_session_is_seen_once_more_as_it_happened(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as world, world.visited(browser) as page:
        id = await said(world, "say one")
        await said(world, "say two", session=id)
        await page.goto(f"/sessions/{id}/timeline")
        await page.get_by_role("button", name="Replay").click()
        await expect(page.locator("#replay-play")).to_have_text("Again")
        await expect(page.locator("#replay-list .entry-answer .text")).to_have_text(["one", "two"])
        # The longest time that there is has room in its column.
        assert await page.evaluate(TOO_LONG) == []
        assert await violations(page) == []
        await picture(page, "console-timeline-replay")
        await page.locator("#replay-place").focus()
        await page.keyboard.press("Home")
        await expect(page.locator("#replay-list > li")).to_have_count(0)
        await page.get_by_role("button", name="Close").click()
        await expect(page.locator("#replay")).to_be_hidden()


async def test_a_turn_of_a_graph_is_drawn_with_its_times(browser: Browser, tmp_path: Path) -> None:
    graph = tmp_path / "shop.yaml"
    graph.write_text(GRAPH)
    async with console(tmp_path, shop=f"graph:{graph}") as world, world.visited(browser) as page:
        id = await said(world, "Do you sell apples?", agent="shop")
        await page.goto(f"/sessions/{id}/timeline")
        drawn = page.locator("figure.graph img")
        await expect(drawn).to_be_visible()
        await page.wait_for_function("document.querySelector('figure.graph img').naturalWidth > 100")
        assert await violations(page) == []
        await picture(page, "console-timeline-graph")


async def test_texts_are_only_ever_texts(browser: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as world, world.visited(browser) as page:
        id = await said(world, f"say {MARKUP}", by=MARKUP[:60])
        await said(world, f"say {MARKUP}; crash", session=id, by=MARKUP[:60])
        for address in ("/sessions", "/sessions?q=onerror", f"/sessions/{id}/timeline"):
            await page.goto(address)
            await expect(page.get_by_text("<img src=x").first).to_be_visible()
            await expect(page.locator("main img")).to_have_count(0)
            await expect(page).to_have_title(re.compile("^(Sessions|Timeline) · Trunkline$"))
        await page.goto(
            "/sessions?q=%3Cscript%3Edocument.title%3D'run'%3C/script%3E&by=%22%3E%3Cb%3E&agent=%22%3E%3Cb%3E"
        )
        await expect(page.get_by_text("Nothing was found.")).to_be_visible()
        await expect(page).to_have_title("Sessions · Trunkline")


@pytest.mark.parametrize("dark", [False, True])
async def test_the_pages_fit_a_phone_and_the_dark(browser: Browser, tmp_path: Path, dark: bool) -> None:
    async with console(tmp_path, parrot="echo") as world, world.visited(browser, phone=True, dark=dark) as page:
        found = await filled(world)
        await looked_at(page, "/sessions", f"console-sessions-phone{'-dark' if dark else ''}")
        await looked_at(page, "/sessions?q=say", f"console-sessions-search-phone{'-dark' if dark else ''}")
        await looked_at(
            page, f"/sessions/{found['crash']}/timeline", f"console-timeline-phone{'-dark' if dark else ''}"
        )
    async with console(tmp_path / "wide", parrot="echo") as world, world.visited(browser, dark=dark) as page:
        found = await filled(world)
        await looked_at(page, "/sessions", f"console-sessions{'-dark' if dark else ''}")
        # Also after the script has heard what is at work.
        await expect(page.locator(".sessions .tag").last).to_have_text("answered")
        await looked_at(page, f"/sessions/{found['deploy']}/timeline", f"console-timeline{'-dark' if dark else '-two'}")


async def looked_at(page: Page, address: str, name: str) -> None:
    await page.goto(address)
    await expect(page.locator(".sessions > li, .turn").first).to_be_visible()
    assert await cramped(page) == []
    assert await violations(page) == []
    await picture(page, name)
