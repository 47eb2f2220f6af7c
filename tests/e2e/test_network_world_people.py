"""An agent asks, and a person answers in a real browser: both ends in processes of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.support.anvil import KEY
from tests.support.browser import picture, visiting
from tests.support.world_place import Place, place

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(300),
]

PASSPHRASE = "correct horse battery"
TITLE = "Which fee is meant for 999 wei?"
ANSWER = "Two wei. **Please** write a report."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    folder = tmp_path_factory.mktemp("world")
    async with place(f"sqlite:///{folder}/network.db", folder, key=KEY) as made:
        yield made


@asynccontextmanager
async def signed_in(browser: Browser, world: Place, *, phone: bool = False) -> AsyncIterator[Page]:
    """The owner of the community, at the requests."""
    async with visiting(browser, world.network.url, phone=phone) as page:
        await page.goto("/sign-in?next=/requests")
        await page.get_by_text("I have a private key already").click()
        await page.get_by_label("Private key, 64").fill(KEY)
        await page.get_by_label("Passphrase, 12").fill(PASSPHRASE)
        await page.get_by_role("button", name="Make a key and sign in").click()
        await page.wait_for_url("**/requests")
        yield page


async def test_a_request_is_answered_in_the_browser_and_the_agent_reads_it_in_its_next_cycle(
    browser: Browser, world: Place
) -> None:
    asked = await world.runner.scripted(world.thread(TITLE, "The fee of 999 wei is 0.", "REQUEST_TO_HUMAN"))
    thread = asked.line["results"][0]["threadId"]
    async with signed_in(browser, world, phone=True) as page:
        await page.get_by_role("link", name="Mine").click()
        await page.wait_for_url("**/requests?**owner=0x**")
        await page.get_by_text("Answer, reject or reopen").click()
        await page.get_by_label("Answer as the owner").fill(ANSWER)
        await page.get_by_role("button", name="Send answer").click()
        await expect(page.locator(".last")).to_contain_text("Two wei.")
        await picture(page, "world-requests")

        report = world.thread("`fee` divides before it multiplies", "999 wei: expected 2, got 0.", "REPORT_TO_HUMAN")
        resolve = {"action": "set_request_status", "communitySlug": world.slug, "threadId": thread}
        await page.goto(f"/communities/{world.slug}/threads/{thread}")
        await expect(page.locator("#status .status")).to_have_text("pending")
        settled, context = await world.prompted(report, {**resolve, "status": "resolved"})
        assert settled.oks == [True, True]
        # Nobody loads the page again.
        await expect(page.locator("#status .status")).to_have_text("resolved")
        await expect(page.locator(".comment.owner strong")).to_have_text("Please")
        await picture(page, "world-thread")
        await page.goto("/reports")
        await expect(page.get_by_role("link", name="`fee` divides before")).to_be_visible()
        await picture(page, "world-reports")

    # What the model was told before it decided.
    community = context["communities"][0]
    assert [each["body"] for each in community["recentComments"] if each["threadId"] == thread] == [ANSWER]
    request = next(each for each in community["threads"] if each["id"] == thread)
    assert (request["isResolved"], request["isRejected"], request["commentCount"]) == (False, False, 1)


async def test_a_rejected_request_is_rejected_in_the_agents_context_and_only_its_author_may_resolve_it(
    browser: Browser, world: Place
) -> None:
    asked = await world.runner.scripted(world.thread("May I have the keys?", "All of them.", "REQUEST_TO_HUMAN"))
    thread = asked.line["results"][0]["threadId"]
    async with signed_in(browser, world) as page:
        item = page.locator("#feed article", has_text="May I have the keys?")
        await item.get_by_text("Answer, reject or reopen").click()
        await item.get_by_role("button", name="Reject").click()
        await expect(item).to_have_count(0)
    _, context = await world.prompted(world.comment(thread, "I understand."))
    request = next(each for each in context["communities"][0]["threads"] if each["id"] == thread)
    assert (request["isResolved"], request["isRejected"]) == (False, True)

    other, token = await world.site.agent(await world.site.owner(), world.community["id"], "Mallory")
    path = f"/api/threads/{thread}/request-status"
    signed = await world.site.signed(other, token, {"status": "resolved"})
    assert (await world.site.write(path, signed, "PATCH")).status_code == 403
