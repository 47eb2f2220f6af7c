"""A conversation in a real browser: said, answered, decided, stopped, and continued after all that can happen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.support.console_world import ConsoleWorld
from tests.support.loop import until
from tests.support.staged_agent import StagedAgent
from trunkline.core.agent import Approve, Deny
from trunkline.core.events import Event, Progress, TextDelta, ToolFinished, ToolRequested, ToolStarted, UserMessage

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

WRITE = ToolRequested("t1", "Write", "edit", {"file_path": "a.txt", "content": "one\n"}, "Write a.txt")
WRITTEN = [WRITE, ToolStarted("t1", "Write"), ToolFinished("t1", "Write", "success", "written"), TextDelta("Done.")]


@asynccontextmanager
async def world_with(root: Path, **stage: Sequence[Event]) -> AsyncIterator[tuple[ConsoleWorld, StagedAgent]]:
    """An exchange whose agent says these events for these messages."""
    world = ConsoleWorld(root, {})
    world.helper = agent = StagedAgent(stage)
    async with world.served():
        yield world, agent


async def opened(world: ConsoleWorld, page: Page, id: str = "one") -> None:
    await world.exchange.switchboard.open("helper", id, by="ana")
    await page.goto(f"/sessions/{id}")
    await expect(page.locator("#state")).to_have_text("ready")


async def say(page: Page, text: str) -> None:
    await page.get_by_label("Message to helper").fill(text)
    await page.keyboard.press("Enter")


async def test_a_message_is_answered_while_one_watches(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path) as (world, agent), world.visited(browser) as page:
        await opened(world, page)
        await expect(page.get_by_text("No messages yet.")).to_be_visible()
        await say(page, "say Hello; wait; say **there**")
        await expect(page.locator(".row.answer")).to_have_text("Hello#2")
        await expect(page.locator("#state")).to_have_text("at work")
        agent.gate.set()
        await expect(page.locator(".row.answer strong")).to_have_text("there")
        await expect(page.locator(".row.end")).to_contain_text("answered")
        await expect(page.locator("#state")).to_have_text("ready")
        await expect(page.locator(".row.message")).to_contain_text("local")
        assert await page.get_by_label("Message to helper").input_value() == ""
        assert (await page.title()).startswith("say Hello")


async def test_the_keys_approve_once_and_for_good(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path, write=WRITTEN) as (world, agent), world.visited(browser) as page:
        await opened(world, page)
        for count, key in enumerate("aA", 1):
            await say(page, "write")
            await expect(page.locator("#questions > li")).to_contain_text("a.txt")
            # Keys are for what one has seen.
            await expect(page.locator(".tool-card")).to_have_count(count)
            await expect(page.locator(".tool-card").last).to_be_in_viewport()
            await page.locator("#events").focus()
            await page.keyboard.press(key)
            await expect(page.locator(".row.end")).to_have_count(count)
        assert agent.answers == [Approve(), Approve()]
        await say(page, "write")
        await expect(page.locator(".row.end")).to_have_count(3)
        # Nobody was asked, and yet it is told what the call was about.
        await expect(page.locator(".tool-card").last).to_contain_text("a.txt")
        await expect(page.locator("#questions > li")).to_have_count(0)


async def test_denying_asks_for_a_reason_which_the_agent_hears(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path, write=WRITTEN) as (world, agent), world.visited(browser) as page:
        await opened(world, page)
        await say(page, "write")
        await expect(page.locator("#questions > li")).to_have_count(1)
        # In a text these are letters.
        await page.keyboard.type("ad")
        assert agent.answers == []
        await page.get_by_label("Message to helper").fill("")
        await page.locator("#events").focus()
        await page.keyboard.press("d")
        await page.keyboard.type("Not in this folder")
        await page.keyboard.press("Enter")
        await expect(page.locator(".tool-card")).to_contain_text("Denied by local.")
        await expect(page.locator(".tool-card")).to_contain_text("Reason: Not in this folder")
        assert agent.answers == [Deny("Not in this folder")]


async def test_who_was_slower_is_told_who_decided(browser: Browser, tmp_path: Path) -> None:
    async with (
        world_with(tmp_path, write=WRITTEN) as (world, agent),
        world.visited(browser) as page,
        world.visited(browser) as other,
    ):
        await opened(world, page)
        await other.goto("/sessions/one")
        await say(page, "write")
        for each in (page, other):
            await expect(each.locator("#questions > li")).to_have_count(1)
        # The answer of the other comes while this page does not hear of it.
        await other.route("**/api/sessions/one/events*", lambda route: route.abort())
        await other.reload()
        await page.get_by_role("button", name="Approve").click()
        await expect(page.locator(".row.end")).to_be_visible()
        await other.unroute("**/api/sessions/one/events*")
        await expect(other.locator(".tool-card")).to_contain_text("Approved by local.")
        await expect(other.locator("#questions > li")).to_have_count(0)
        assert agent.answers == [Approve()]


async def test_a_decision_that_comes_too_late_changes_nothing(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path, write=WRITTEN) as (world, agent), world.visited(browser) as page:
        await opened(world, page)
        await say(page, "write")
        await expect(page.locator("#questions > li")).to_have_count(1)
        decided = asyncio.Event()

        async def first(route: Route) -> None:
            # Somebody else answers while the request is on its way.
            board = world.exchange.switchboard
            (approval,) = await board.approvals.found("pending")
            async with board.attached("one") as live:
                await live.decide(approval, Deny("no"), "ben")
            decided.set()
            await route.continue_()

        await page.route("**/api/approvals/*", first)
        await page.get_by_role("button", name="Approve").click()
        await expect(page.locator("#told")).to_contain_text("by ben")
        await expect(page.locator(".tool-card")).to_contain_text("Denied by ben.")
        assert decided.is_set()
        assert agent.answers == [Deny("no")]


async def test_a_page_that_is_loaded_in_the_middle_of_an_answer_has_all_of_it_once(
    browser: Browser, tmp_path: Path
) -> None:
    async with world_with(tmp_path) as (world, agent), world.visited(browser) as page:
        await opened(world, page)
        await say(page, "say one,; say two,; wait; say three")
        await expect(page.locator(".row.answer .prose")).to_have_text("one,two,")
        await page.reload()
        await expect(page.locator(".row.answer .prose")).to_have_text("one,two,")
        await expect(page.locator("#state")).to_have_text("at work")
        agent.gate.set()
        await expect(page.locator(".row.answer .prose")).to_have_text("one,two,three")
        await expect(page.locator(".row.message")).to_have_count(1)
        await expect(page.locator(".row.end")).to_have_count(1)


async def test_the_page_goes_on_by_itself_when_the_exchange_is_started_again(browser: Browser, tmp_path: Path) -> None:
    world = ConsoleWorld(tmp_path, {})
    world.helper = StagedAgent({})
    async with AsyncExitStack() as stack:
        async with world.served():
            page = await stack.enter_async_context(world.visited(browser))
            await opened(world, page)
            await say(page, "say one")
            await expect(page.locator(".row.end")).to_have_count(1)
            await page.get_by_label("Message to helper").fill("say two")
        await expect(page.locator("#state")).to_have_text("disconnected, reconnecting…")
        await page.get_by_label("Message to helper").press("Enter")
        await expect(page.locator("#trouble")).to_contain_text("does not answer")
        async with world.served():
            await expect(page.locator("#state")).to_have_text("ready")
            await expect(page.locator("#trouble")).to_be_hidden()
            # What could not be sent is still there.
            await page.get_by_label("Message to helper").press("Enter")
            await expect(page.locator(".row.answer .prose")).to_have_text(["one", "two"])
            await expect(page.locator(".row.end")).to_have_count(2)
            await expect(page.locator("#trouble")).to_be_hidden()


async def test_a_gap_is_filled_from_the_log(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path) as (world, _), world.visited(browser) as page:
        live = await world.exchange.switchboard.open("helper", "one", by="ana")
        await world.exchange.switchboard.submit(live, UserMessage("say a; say b; say c", sender="ana"))
        await live.session.at_rest()
        asked: list[str] = []

        async def lossy(route: Route) -> None:
            asked.append(route.request.url.partition("?")[2])
            if len(asked) > 1:
                await route.continue_()
                return
            one = '{"session":"one","seq":1,"turn":1,"at":1,"message":"say a; say b; say c","by":"ana","files":[]}'
            four = '{"session":"one","seq":4,"turn":1,"at":1,"text":"c"}'
            body = (
                f"id: 1\nevent: turn_started\ndata: {one}\n\n"
                'event: gap\ndata: {"session":"one","first":2,"last":3}\n\n'
                f"id: 4\nevent: text_delta\ndata: {four}\n\n"
            )
            await route.fulfill(content_type="text/event-stream", body=body)

        await page.route("**/api/sessions/one/events*", lossy)
        await page.goto("/sessions/one")
        await expect(page.locator(".row.answer .prose")).to_have_text("abc")
        await expect(page.locator(".row.message")).to_have_count(1)
        assert asked[:2] == ["since=0", "since=1"]


async def test_what_the_log_has_lost_is_said_and_not_asked_for_again(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path) as (world, _), world.visited(browser) as page:
        await world.exchange.switchboard.open("helper", "one", by="ana")

        async def damaged(route: Route) -> None:
            if "since=0" not in route.request.url:
                await route.abort()
                return
            five = '{"session":"one","seq":5,"turn":0,"at":1,"message":"Still here."}'
            body = f'event: gap\ndata: {{"session":"one","first":1,"last":4}}\n\nid: 5\nevent: notice\ndata: {five}\n\n'
            await route.fulfill(content_type="text/event-stream", body=body)

        await page.route("**/api/sessions/one/events*", damaged)
        await page.goto("/sessions/one")
        await expect(page.get_by_text("Events 1 to 4 are missing from the log.")).to_be_visible()
        await expect(page.get_by_text("Still here.")).to_be_visible()


async def test_messages_wait_or_reach_the_turn_in_progress(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path) as (world, agent), world.visited(browser) as page:
        await opened(world, page)
        await say(page, "say one; wait; say two")
        await expect(page.locator("#state")).to_have_text("at work")
        await say(page, "say later")
        await expect(page.locator("#queued > li")).to_contain_text("say later")
        await page.get_by_label("While it works").select_option("steer")
        await say(page, "look here first")
        await expect(page.locator(".row.message").nth(1)).to_contain_text("while it worked")
        agent.gate.set()
        await expect(page.locator(".row.answer .prose")).to_have_text(["one", "two", "later"])
        await expect(page.locator("#queued > li")).to_have_count(0)


async def test_a_stop_is_also_for_a_message_that_is_still_on_its_way(browser: Browser, tmp_path: Path) -> None:
    on_its_way, arrives = asyncio.Event(), asyncio.Event()

    async def slow(route: Route) -> None:
        on_its_way.set()
        await arrives.wait()
        await route.continue_()

    async with world_with(tmp_path) as (world, agent), world.visited(browser) as page:
        await opened(world, page)
        await say(page, "say one; wait")
        await expect(page.locator("#state")).to_have_text("at work")
        await page.route("**/api/sessions/one/messages", slow)
        await say(page, "say later")
        await on_its_way.wait()
        await page.get_by_role("button", name="Stop").click()
        arrives.set()
        await expect(page.locator(".row.end").first).to_contain_text("stopped")
        await expect(page.locator("#queued > li")).to_have_count(0)
        await expect(page.locator("#state")).to_have_text("ready")
        assert agent.heard == ["say one; wait"]


@pytest.mark.parametrize("by", ["button", "key"])
async def test_a_turn_is_stopped_with_what_waits_behind_it(browser: Browser, tmp_path: Path, by: str) -> None:
    async with world_with(tmp_path) as (world, agent), world.visited(browser) as page:
        await opened(world, page)
        await say(page, "say one; wait")
        await say(page, "say later")
        await expect(page.locator("#queued > li")).to_have_count(1)
        if by == "key":
            # The first one leaves the field.
            await page.keyboard.press("Escape")
            await page.keyboard.press("Escape")
        else:
            await page.get_by_role("button", name="Stop").click()
        await expect(page.locator(".row.end").first).to_contain_text("stopped")
        await expect(page.locator("#queued > li")).to_have_count(0)
        await expect(page.locator("#state")).to_have_text("ready")
        assert agent.heard == ["say one; wait"]


async def test_what_waits_is_still_there_when_the_page_is_loaded_again(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path) as (world, agent), world.visited(browser) as page:
        await opened(world, page)
        await say(page, "say one; wait")
        await expect(page.locator("#state")).to_have_text("at work")
        await say(page, "say later")
        await say(page, "say last")
        await expect(page.locator("#queued > li")).to_have_count(2)
        await page.reload()
        await expect(page.locator("#queued > li")).to_have_text(["Queued: say later", "Queued: say last"])
        agent.gate.set()
        await expect(page.locator(".row.answer .prose")).to_have_text(["one", "later", "last"])
        await expect(page.locator("#queued > li")).to_have_count(0)
        # Somebody else stops it, with what waits behind it.
        agent.gate.clear()
        await say(page, "say one; wait")
        await expect(page.locator("#state")).to_have_text("at work")
        await say(page, "say later")
        await expect(page.locator("#queued > li")).to_have_count(1)
        (await world.exchange.switchboard.find("one")).session.stop("ben")
        await expect(page.locator("#state")).to_have_text("ready")
        await expect(page.locator("#queued > li")).to_have_count(0)


async def test_what_a_command_prints_is_seen_while_it_runs(browser: Browser, tmp_path: Path) -> None:
    events = [
        ToolStarted("b1", "Bash"),
        *(Progress(f"line {number}", "b1") for number in range(250)),
        Progress("reading the model: 40 %"),
        ToolRequested("q1", "Write", "edit", {"file_path": "a"}),
    ]
    async with world_with(tmp_path, build=events) as (world, _), world.visited(browser) as page:
        await opened(world, page)
        await say(page, "build")
        output = page.locator(".output.live")
        await expect(output).to_contain_text("line 249")
        await expect(output).to_contain_text("[50 more lines]")
        await expect(page.locator("#activity")).to_have_text("reading the model: 40 %")


async def test_others_who_watch_are_named_with_their_wire(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path) as (world, _), world.visited(browser) as page:
        await opened(world, page)
        await expect(page.locator("#watchers")).to_have_text("only you")
        async with world.exchange.switchboard.attached("one", by="ben", wire="telegram"):
            await say(page, "say hello")
            await expect(page.locator("#watchers")).to_have_text("ben · telegram")


async def test_the_mode_is_switched_and_followed(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path) as (world, _), world.visited(browser) as page:
        await opened(world, page)
        await page.locator("#mode").select_option("yolo")
        await expect(page.get_by_text("Mode changed to yolo")).to_be_visible()
        live = await world.exchange.switchboard.find("one")
        assert live.session.mode == "yolo"
        await live.set_mode("plan")
        await expect(page.locator("#mode")).to_have_value("plan")


async def test_a_conversation_is_forked_at_an_event_and_removed(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path) as (world, _), world.visited(browser) as page:
        await opened(world, page)
        for text in ("say one", "say two"):
            await say(page, text)
            await expect(page.locator(".row.answer .prose").last).to_have_text(text.removeprefix("say "))
        await page.get_by_role("button", name="Fork from here").first.click()
        await page.wait_for_url(lambda url: not url.endswith("/one"))
        await expect(page.locator(".row.answer .prose")).to_have_text(["one"])
        forked = page.url.rsplit("/", 1)[1]
        await page.get_by_role("button", name="Remove", exact=True).click()
        await page.get_by_role("button", name="Keep").click()
        await page.get_by_role("button", name="Remove", exact=True).click()
        await page.locator("#removing").get_by_role("button", name="Remove").click()
        await page.wait_for_url("**/sessions")
        assert await world.exchange.switchboard.row(forked) is None


async def test_who_watches_a_conversation_that_is_removed_is_told(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path) as (world, _), world.visited(browser) as page:
        await opened(world, page)
        await world.exchange.switchboard.remove("one")
        await expect(page.locator("#trouble")).to_have_text("This conversation was removed.")
        await expect(page.locator("#state")).to_have_text("removed")


async def test_the_keys_are_listed_and_can_be_turned_off(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path, write=WRITTEN) as (world, agent), world.visited(browser) as page:
        await opened(world, page)
        await page.locator("#events").focus()
        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        await page.get_by_label("Use these keys").uncheck()
        await page.keyboard.press("Escape")
        await say(page, "write")
        await expect(page.locator("#questions > li")).to_have_count(1)
        await page.locator("#events").focus()
        await page.keyboard.press("a")
        await page.get_by_role("button", name="Deny").click()
        await page.get_by_label("Reason").press("Enter")
        await until(lambda: agent.answers)
        assert isinstance(agent.answers[0], Deny)


#: A browser tells a page that its window cannot be seen, or can be seen again.
SEEN = """(seen) => {
  Object.defineProperty(document, "hidden", { value: !seen, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


async def test_a_window_that_nobody_sees_has_no_line_and_catches_up(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path) as (world, _), world.visited(browser) as page:
        await opened(world, page)
        live = await world.exchange.switchboard.find("one")
        await until(lambda: live.clients == 1)
        await page.evaluate(SEEN, False)
        await until(lambda: live.clients == 0)
        await world.exchange.switchboard.submit(live, UserMessage("say hello", sender="ana"))
        await live.session.at_rest()
        await page.evaluate(SEEN, True)
        await expect(page.locator(".row.answer .prose")).to_have_text("hello")
        await expect(page.locator(".row.message")).to_have_count(1)
