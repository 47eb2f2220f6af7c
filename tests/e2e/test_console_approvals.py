"""The inbox of approvals in a real browser: what is asked is read, decided once, and remembered."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.support.browser import cramped, picture, pictures, visiting
from tests.support.console_world import ConsoleWorld, console, violations
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import log_context
from trunkline.core.agent import Approve, Deny
from trunkline.core.events import UserMessage
from trunkline.exchange.approvals import Approval
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.settings import PersonSettings, Role

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

BUILDS = """\
turns:
  - steps:
      - tool:
          name: Bash
          args: {command: "make -C build clean all 2>&1 | tail -20", timeout: 60}
          description: "Build everything anew"
          output: "built"
      - text: "Built."
"""
EDITS = """\
turns:
  - steps:
      - tool:
          name: Edit
          args:
            file_path: "src/app/greeting.py"
            old_string: "def greet(name):\\n    print('Hi', name)\\n    return 1\\n"
            new_string: "def greet(name):\\n    print(f'Hello, {name}!')\\n    return 1\\n"
          description: "Edit src/app/greeting.py"
          output: "edited"
      - text: "Edited."
"""

HOSTILE = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>'
HURTS = f"""\
turns:
  - steps:
      - tool:
          name: '{HOSTILE}'
          category: exec
          args:
            command: '{HOSTILE}'
            '{HOSTILE}': '{HOSTILE}'
            path: 'javascript:window.hurt=1'
            edits: [{{old: '{HOSTILE}', new: '{HOSTILE} more'}}]
            deep: {{'{HOSTILE}': ['{HOSTILE}', "{"very long " * 400}"]}}
          description: '{HOSTILE}'
          output: "done"
"""


@asynccontextmanager
async def inbox(tmp_path: Path, **scripts: str) -> AsyncIterator[ConsoleWorld]:
    """A console with these agents besides `helper`, which play scripts."""
    agents = {}
    for name, script in scripts.items():
        (tmp_path / f"{name}.yaml").write_text(script)
        agents[name] = f"scripted:{tmp_path / f'{name}.yaml'}"
    async with console(tmp_path, **agents) as world:
        yield world


async def asked(world: ConsoleWorld, agent: str = "helper", text: str = "tool t1") -> LiveSession:
    """A session in which an agent asks for something."""
    board = world.exchange.switchboard
    live = await board.open(agent, by="ana")
    await board.submit(live, UserMessage(text, sender="ana"))
    await until(lambda: live.session.waiting)
    await live.written()
    return live


async def row(world: ConsoleWorld, live: LiveSession) -> Approval:
    """The latest approval of a session."""
    await live.written()
    return (await world.exchange.switchboard.approvals.found(session=live.id))[-1]


def card(page: Page, text: str) -> Locator:
    """The card with a text in it."""
    return page.locator("#pending > .one").filter(has_text=text)


async def test_what_all_agents_ask_for_is_read_and_decided_with_the_mouse(browser: Browser, tmp_path: Path) -> None:
    async with inbox(tmp_path, builder=BUILDS, editor=EDITS) as world, world.visited(browser) as page:
        await page.goto("/approvals")
        await expect(page.get_by_text("Nothing waits for an answer.")).to_be_visible()
        assert await violations(page) == []
        builder, editor = await asked(world, "builder"), await asked(world, "editor")
        third, fourth = await asked(world), await asked(world)
        await expect(page.locator("#pending > .one")).to_have_count(4)
        await expect(page).to_have_title("(4) Approvals · Trunkline")
        await expect(card(page, "Build everything anew").locator("pre.command")).to_have_text(
            "make -C build clean all 2>&1 | tail -20"
        )
        changes = card(page, "greeting.py").locator(".difference .line")
        await expect(changes).to_have_text(
            [
                " def greet(name):\n",
                "-    print('Hi', name)\n",
                "+    print(f'Hello, {name}!')\n",
                "     return 1\n",
            ]
        )
        assert await violations(page) == []
        await pictures(page, "console-approvals")

        await card(page, "Build everything anew").get_by_role("button", name="Approve").click()
        await expect(page.locator("#pending > .settled")).to_contain_text("Approved by local from the console")
        assert ((found := await row(world, builder)).state, found.decided_wire) == ("approved", "console")

        denied = card(page, "greeting.py")
        await denied.get_by_role("button", name="Deny…").click()
        await denied.get_by_placeholder("Why not?").fill("Not on a Friday.")
        await denied.get_by_role("button", name="Deny", exact=True).click()
        await expect(page.locator("#past > li").first).to_contain_text("“Not on a Friday.”")
        assert ((found := await row(world, editor)).state, found.reason) == ("denied", "Not on a Friday.")

        always = page.locator(f'#pending > .one[data-id="{(await row(world, third)).id}"]')
        await always.get_by_role("button", name="Always").click()
        await expect(page.locator("#past > li")).to_have_count(3)
        assert len(third.session.grants) == 1
        assert (await row(world, fourth)).state == "pending"
        await expect(page).to_have_title("(1) Approvals · Trunkline")
        assert await violations(page) == []
        await picture(page, "console-approvals-decided")


async def test_the_keyboard_alone_is_enough(browser: Browser, tmp_path: Path) -> None:
    async with inbox(tmp_path) as world:
        lives = [await asked(world, text=f"tool t{number}") for number in range(4)]
        async with world.visited(browser) as page:
            await page.goto("/approvals")
            cards = page.locator("#pending > .one")
            await expect(cards).to_have_count(4)
            await page.keyboard.press("a")  # nothing is selected yet
            for key, place in (("j", 0), ("ArrowDown", 1), ("j", 2), ("k", 1), ("ArrowUp", 0)):
                await page.keyboard.press(key)
                await expect(cards.nth(place)).to_be_focused()
            assert [(await row(world, live)).state for live in lives] == ["pending"] * 4
            await page.keyboard.press("a")
            await expect(cards).to_have_count(3)
            # The next one has the focus then.
            await expect(cards.nth(0)).to_be_focused()
            await page.keyboard.press("A")
            await expect(cards).to_have_count(2)
            await page.keyboard.press("d")
            await page.keyboard.type("Rather not.")
            await page.keyboard.press("Escape")
            await page.keyboard.press("d")
            await page.keyboard.press("Enter")
            await expect(cards).to_have_count(1)
            found = [await row(world, live) for live in lives]
            assert [each.state for each in found] == ["approved", "approved", "denied", "pending"]
            assert found[2].reason == "Rather not."
            assert [len(live.session.grants) for live in lives] == [0, 1, 0, 0]


async def test_several_are_denied_at_once_with_one_reason(browser: Browser, tmp_path: Path) -> None:
    async with inbox(tmp_path) as world:
        lives = [await asked(world, text=f"tool t{number}") for number in range(3)]
        async with world.visited(browser) as page:
            await page.goto("/approvals")
            await page.get_by_role("checkbox", name="All", exact=True).check()
            await page.locator("#pending > .one").nth(1).get_by_role("checkbox").uncheck()
            await page.get_by_role("button", name="Deny 2 selected…").click()
            await page.get_by_label("Why not? The agents are told.").fill("We are closed.")
            assert await violations(page) == []
            await page.get_by_role("button", name="Deny 2", exact=True).click()
            await expect(page.locator("#pending > .one")).to_have_count(1)
            found = [await row(world, live) for live in lives]
            assert [(each.state, each.reason) for each in found] == [
                ("denied", "We are closed."), ("pending", None), ("denied", "We are closed."),
            ]  # fmt: skip


async def test_of_two_browsers_one_decides_and_the_other_is_told(browser: Browser, tmp_path: Path) -> None:
    async with inbox(tmp_path) as world:
        live, other = await asked(world), await asked(world, text="tool t2")
        async with world.visited(browser) as one, world.visited(browser) as two:
            for page in (one, two):
                await page.goto("/approvals")
                await expect(page.locator("#pending > .one")).to_have_count(2)
            await one.locator("#pending > .one").first.get_by_role("button", name="Approve").click()
            await expect(two.locator("#pending > .settled")).to_contain_text("Approved by local from the console")
            await expect(two.get_by_role("status").filter(has_text="Write: Approved by local")).to_be_attached()
            await expect(two.locator("#pending > .one")).to_have_count(1)
            await expect(two.locator("#past > li")).to_have_count(1)
            with log_context.about(wire="telegram"):
                await other.decide(await row(world, other), Approve(), "ana")
            for page in (one, two):
                await expect(page.locator("#pending > .settled").last).to_contain_text("Approved by ana from telegram")
        assert [(await row(world, each)).state for each in (live, other)] == ["approved"] * 2


async def test_who_comes_a_moment_too_late_is_told_who_was_first(browser: Browser, tmp_path: Path) -> None:
    async with inbox(tmp_path) as world:
        live = await asked(world)
        async with world.visited(browser) as page:

            async def first(route: Route) -> None:
                # Somebody else answers while the answer of this page is on its way.
                if route.request.method == "POST":
                    await live.decide(await row(world, live), Deny("No."), "ana")
                await route.continue_()

            await page.goto("/approvals")
            await page.route("**/api/approvals/*", first)
            await page.locator("#pending > .one").get_by_role("button", name="Approve").click()
            await expect(page.locator("#pending > .settled")).to_contain_text("Denied by ana")
            assert (await row(world, live)).decided_by == "ana"


async def test_what_was_decided_does_not_come_back_with_news_from_a_moment_before(
    browser: Browser, tmp_path: Path
) -> None:
    async with inbox(tmp_path) as world:
        await asked(world)
        async with world.visited(browser) as page:
            first = await (await page.request.get("/api/overview")).text()
            await asked(world, text="tool t2")
            late = await (await page.request.get("/api/overview")).text()
            decided = asyncio.Event()
            told: list[str] = []

            async def news(route: Route) -> None:
                # Both were read before the decision. The second comes after it, and has another call.
                if told:
                    await decided.wait()
                told.append(late if told else first)
                await route.fulfill(content_type="text/event-stream", body=f"event: overview\ndata: {told[-1]}\n\n")

            await page.route("**/api/overview/events", news)
            await page.goto("/approvals")
            await expect(page.locator("#pending > .one")).to_have_count(1)
            await page.get_by_role("button", name="Approve").click()
            await expect(page.locator("#pending > .settled")).to_contain_text("Approved by local")
            decided.set()
            await expect(page).to_have_title("(2) Approvals · Trunkline")
            await expect(page.locator("#pending > .one")).to_have_count(1)


async def test_filters_are_in_the_address_and_the_past_is_paged(browser: Browser, tmp_path: Path) -> None:
    async with inbox(tmp_path, builder=BUILDS) as world:
        for number in range(27):
            live = await asked(world, text=f"tool t{number}")
            await live.decide(await row(world, live), Approve(), "ana")
        await asked(world, "builder")
        await asked(world)
        async with world.visited(browser) as page:
            await page.goto("/approvals?agent=builder")
            await expect(page.locator("#pending > .one")).to_have_count(1)
            await expect(page.get_by_text("Nothing was decided yet.")).to_be_visible()
            await page.get_by_role("button", name="Show all").click()
            await expect(page.locator("#pending > .one")).to_have_count(2)
            await expect(page.locator("#past > li")).to_have_count(25)
            await page.get_by_role("button", name="Older ones").click()
            await expect(page.locator("#past > li")).to_have_count(27)
            await expect(page.get_by_role("button", name="Older ones")).to_be_hidden()
            await page.get_by_label("Kind").select_option("exec")
            await expect(page.locator("#pending > .one")).to_have_count(1)
            assert page.url.endswith("/approvals?category=exec")
            await page.get_by_role("textbox", name="Tool").fill("Write")
            await page.get_by_role("textbox", name="Tool").press("Enter")
            await expect(page.locator("#pending > .one")).to_have_count(0)


@pytest.mark.parametrize("role", ["observer", "talker"])
async def test_who_may_not_decide_sees_it_without_buttons(browser: Browser, tmp_path: Path, role: Role) -> None:
    async with inbox(tmp_path) as world:
        digest = hashlib.sha256(b"a token of bob's").hexdigest()
        people = {"bob": PersonSettings("bob", digest, role)}
        await world.exchange.take_up(world.exchange.settings.replace(people=people))
        await asked(world)
        async with visiting(browser, world.site) as page:
            await page.goto("/sign-in?to=/approvals")
            await page.get_by_role("textbox", name="Token").fill("a token of bob's")
            await page.keyboard.press("Enter")
            await expect(page.locator("#pending > .one")).to_have_count(1)
            await expect(page.get_by_text(f"Your role is {role}")).to_be_visible()
            await expect(page.locator("main").get_by_role("button")).to_have_count(0)
            await expect(page.locator("main").get_by_role("checkbox")).to_have_count(0)
            assert await violations(page) == []


async def test_what_an_agent_says_stays_text(browser: Browser, tmp_path: Path) -> None:
    async with inbox(tmp_path, hurting=HURTS) as world:
        live = await asked(world, "hurting")
        async with world.visited(browser) as page:
            await page.goto("/approvals")
            found = page.locator("#pending > .one")
            await expect(found.get_by_role("heading")).to_have_text(HOSTILE)
            await expect(found.locator("pre.command")).to_have_text(HOSTILE)
            await expect(page.locator("main img")).to_have_count(0)
            assert await cramped(page) == []
            await found.get_by_role("button", name="Deny…").click()
            await found.get_by_placeholder("Why not?").fill(HOSTILE)
            await found.get_by_role("button", name="Deny", exact=True).click()
            await expect(page.locator("#past > li")).to_contain_text(f"“{HOSTILE}”")
            assert await page.evaluate("window.hurt") is None
            assert await violations(page) == []
        assert (await row(world, live)).reason == HOSTILE


@pytest.mark.parametrize("dark", [False, True])
async def test_the_inbox_fits_a_phone(browser: Browser, tmp_path: Path, dark: bool) -> None:
    async with inbox(tmp_path, builder=BUILDS, editor=EDITS) as world:
        live = await asked(world)
        await live.decide(await row(world, live), Deny("Not now."), "ana")
        await asked(world, "builder")
        await asked(world, "editor")
        async with world.visited(browser, phone=True, dark=dark) as page:
            await page.goto("/approvals")
            await expect(page.locator("#pending > .one")).to_have_count(2)
            await expect(page.locator("#past > li")).to_have_count(1)
            assert await cramped(page) == []
            assert await violations(page) == []
            await picture(page, f"console-approvals-phone{'-dark' if dark else ''}")


FILE = """\
[exchange]
listen = "127.0.0.1:0"
home = "home"
[agents.builder]
agent = "scripted:builder.yaml"
workspace = "."
"""


def trunkline(folder: Path, *arguments: str) -> Awaitable[asyncio.subprocess.Process]:
    """A command, as somebody runs it in a folder."""
    return asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trunkline", *arguments),
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )


async def heard(host: asyncio.subprocess.Process, kind: str) -> list[dict[str, Any]]:
    """The lines that a host reads, up to one of a type."""
    assert host.stdout is not None
    lines: list[dict[str, Any]] = []
    while not lines or lines[-1]["type"] != kind:
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = await host.stdout.readline()
        assert line, lines
        lines.append(json.loads(line))
    return lines


async def test_what_the_agent_of_a_host_asks_is_answered_in_the_console(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "builder.yaml").write_text(BUILDS)
    (tmp_path / "trunkline.toml").write_text(FILE)
    exchange = await trunkline(tmp_path, "up", "--config", "trunkline.toml")
    try:
        for socket in ("exchange.sock", "attach.sock"):
            await until((tmp_path / "home" / socket).exists)
        link, _ = await (await trunkline(tmp_path, "console", "--no-open")).communicate()
        host = await trunkline(tmp_path, "agent", "--json-stream", "--agent", "builder", "--attach")
        assert host.stdin is not None
        host.stdin.write(b'{"type": "message", "msg_id": "m1", "content": "Go"}\n')
        request = (await heard(host, "tool_request"))[-1]
        site, _, path = link.decode().strip().rpartition("/")
        async with visiting(browser, site) as page:
            await page.goto(f"/{path}")
            await page.goto("/approvals")
            asked = card(page, "Build everything anew")
            await expect(asked.locator("pre.command")).to_have_text(request["tool"]["args"]["command"])
            await asked.get_by_role("button", name="Approve").click()
            await expect(page.locator("#past > li")).to_contain_text("Approved by local from the console")
            lines = await heard(host, "stream_end")
            assert "tool_result" in [line["type"] for line in lines]
            assert "Built." in [line.get("text") for line in lines]
        host.stdin.close()
        assert await host.wait() == 0
    finally:
        exchange.terminate()
        await exchange.wait()
