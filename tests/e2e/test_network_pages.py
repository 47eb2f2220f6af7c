"""People use the network in a real browser: sign in, register, keep secrets, answer."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from tests.support.browser import overflow, picture, visiting
from tests.support.fake_launcher import LAUNCHERS, FakeLauncher
from tests.support.patience import PATIENCE_SECONDS
from tests.support.sealed_secrets import ADDRESS, KEY, SECRETS, V1, V2
from trunkline.base import recursion
from trunkline.network.network import Network, NetworkSettings
from trunkline.network.open_database import open_database
from trunkline.network.serving import serve
from trunkline.wires.sns import sealing
from trunkline.wires.sns.drive import Sns
from trunkline.wires.sns.wallet import Wallet

with recursion.kept():
    from eth_account import Account
    from eth_account.messages import encode_defunct

# The browser and the server live in the loop of all these tests. A limit that strikes in the middle of one of their
# callbacks breaks them for the tests that follow, so it is far away.
pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(300),
]

#: How long the server may take to start: on a busy machine its imports alone take seconds.
START_SECONDS = 60

PASSPHRASE = "correct horse battery"
ABI = [
    {"type": "function", "name": "inc", "stateMutability": "nonpayable", "inputs": [{"name": "n", "type": "uint256"}]}
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """The address of a network that runs."""
    home = tmp_path_factory.mktemp("network")
    database = await open_database(f"sqlite:///{home}/network.db")
    network = Network(database, NetworkSettings(admin_key="the admin's key", home=str(home), private_webhooks=True))
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(network, "127.0.0.1", 0, stop, lambda host, port: ready.set_result(port)))
    try:
        await asyncio.wait({serving, ready}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        yield f"http://127.0.0.1:{ready.result()}"
    finally:
        stop.set()
        await asyncio.wait_for(serving, PATIENCE_SECONDS)
        await database.close()


Acting = Callable[[str, str], Sns]


@pytest_asyncio.fixture(loop_scope="module")
async def acting(site: str) -> AsyncIterator[Acting]:
    """Makes runners' ends of the wire, of an agent's id and token. They are closed even if a test fails."""
    made: list[Sns] = []

    def act(agent_id: str, token: str) -> Sns:
        made.append(Sns(site, agent_id, token, timeout=PATIENCE_SECONDS))
        return made[-1]

    yield act
    for each in made:
        await each.close()


@asynccontextmanager
async def signed_in(browser: Browser, site: str, key: str = "", **how: bool) -> AsyncIterator[Page]:
    """A page of somebody who has signed in with a key that is kept in the browser."""
    async with visiting(browser, site, **how) as page:
        await page.goto("/sign-in?next=/manage")
        if key:
            await page.get_by_text("I have a private key already").click()
            await page.get_by_label("Private key, 64").fill(key)
        await page.get_by_label("Passphrase, 12").fill(PASSPHRASE)
        await page.get_by_role("button", name="Make a key and sign in").click()
        await page.wait_for_url("**/manage")
        await expect(page.locator("[data-sign-out]")).to_be_visible()
        yield page


async def register_community(page: Page, name: str, address: str) -> None:
    form = page.locator("#community-form")
    await page.locator("#new-community > summary").click()
    await form.get_by_label("Name of the service").fill(name)
    await form.get_by_label("What it is").fill("A counter that **anybody** may increment.")
    await form.get_by_label("GitHub repository").fill("https://github.com/owner/name")
    await form.locator("[name=name]").fill("Counter")
    await form.get_by_label("Address").fill(address)
    await form.get_by_label("ABI").fill(json.dumps(ABI))
    await form.get_by_role("button", name="Register", exact=True).click()
    await expect(page.locator("#communities").get_by_role("link", name=name)).to_be_visible()


async def register_agent(page: Page, community: str, handle: str) -> None:
    form = page.locator("#agent-form")
    await page.locator("#new-agent > summary").click()
    await form.get_by_label("Community").select_option(label=community)
    await form.get_by_label("Handle").fill(handle)
    await form.get_by_role("button", name="Register").click()
    await expect(page.locator("#agents").get_by_role("link", name=handle)).to_be_visible()


async def issue_credential(page: Page) -> tuple[str, str]:
    """The id of the only agent, and its new token."""
    card = page.locator("#agents article")
    await card.locator("summary", has_text="Credential").click()
    await card.get_by_role("button", name="Issue a new credential").click()
    token = card.locator("[data-token] code")
    await expect(token).to_contain_text("rnr_")
    return str(await card.get_attribute("id")).removeprefix("agent-"), await token.inner_text()


async def test_a_person_with_a_key_in_the_browser_runs_a_community(browser: Browser, site: str, acting: Acting) -> None:
    async with signed_in(browser, site) as page:
        await register_community(page, "Counter", "0x" + "c1" * 20)
        await register_agent(page, "Counter", "alice")
        agent_id, token = await issue_credential(page)
        await picture(page, "manage")

        # What the runner does with the credential, while the person watches the community. The first thread comes after
        # the page and before its stream.
        written = asyncio.Event()

        async def hold(route: Route) -> None:
            await written.wait()
            await route.continue_()

        await page.route("**/events", hold)
        await page.locator("#communities").get_by_role("link", name="Counter").click()
        await expect(page.get_by_role("heading", name="Counter", exact=True)).to_be_visible()
        agent = acting(agent_id, token)
        community = (await agent.context(10))["communities"][0]
        thread = await agent.create_thread(
            community["id"], "Which address is the faucet?", "I need **test ether**.", "REQUEST_TO_HUMAN"
        )
        written.set()
        await page.get_by_role("link", name="Which address is the faucet?").click()
        await expect(page.locator(".prose strong")).to_have_text("test ether")

        await page.get_by_label("Answer as the owner").fill("It is 0x" + "fa" * 20)
        await page.get_by_role("button", name="Send answer").click()
        await expect(page.locator(".comment.owner")).to_contain_text("It is 0xfa")
        await agent.comment(thread["id"], "Thank you. <script>alert(1)</script>")
        await expect(page.locator(".comment.agent")).to_contain_text("Thank you. <script>")
        await agent.set_request_status(thread["id"], "resolved")
        await expect(page.locator("#status .status")).to_have_text("resolved")
        await picture(page, "thread")
        await page.get_by_role("button", name="Reopen").click()
        await expect(page.locator("#status .status")).to_have_text("pending")

        await page.goto("/requests")
        await page.get_by_role("link", name="Mine").click()
        await page.wait_for_url("**/requests?**owner=0x**")
        await page.get_by_text("Answer, reject or reopen").click()
        await picture(page, "requests")
        await page.get_by_role("button", name="Reject").click()
        await expect(page.get_by_text("No pending requests")).to_be_visible()

        report = await agent.create_thread(community["id"], "Overflow in inc", "See above.", "REPORT_TO_HUMAN")
        await page.goto("/reports")
        opened: list[str] = []
        await page.expose_function("drafted", lambda url: opened.append(url))
        await page.evaluate("() => { window.open = (url) => drafted(url) }")
        await page.get_by_role("button", name="Draft a GitHub issue").click()
        await expect(page.locator(".status.issued")).to_be_visible()
        assert opened[0].startswith("https://github.com/owner/name/issues/new?")
        assert report["id"] in opened[0]

        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_role("link", name="Sign in")).to_be_visible()
        assert await page.evaluate("localStorage.getItem('sns_owner_token')") is None


async def test_an_owner_says_where_to_be_told_and_sees_what_became_of_it(browser: Browser, site: str) -> None:
    async with signed_in(browser, site) as page:
        await register_community(page, "Teller", "0x" + "c8" * 20)
        card = page.locator("#communities article")
        part = card.locator("[data-webhook]")
        await part.locator("summary").click()
        await expect(part.get_by_role("button", name="Send a test")).to_be_hidden()
        await part.get_by_label("Your web server").fill("ftp://hooks.example/")
        await part.get_by_role("button", name="Save").click()
        await expect(part.locator("output")).to_contain_text("Invalid url")
        # Nobody listens there.
        await part.get_by_label("Your web server").fill("http://127.0.0.1:9/in")
        await part.get_by_role("button", name="Save").click()
        await expect(part.locator("[data-secret] code")).to_contain_text("whsec_")
        await part.get_by_role("button", name="Send a test").click()
        await expect(part.locator("output")).to_contain_text("on its way")

        async def opened_again() -> str:
            for _ in range(2):
                await part.locator("summary").click()
            await expect(part.locator("[data-deliveries] li")).to_have_count(1)
            return await part.locator("[data-deliveries] li").inner_text()

        async with asyncio.timeout(PATIENCE_SECONDS):
            while "1 attempt: the server cannot be reached" not in await opened_again():
                pass
        await picture(page, "manage-webhook")
        await expect(part.locator("[data-feed]")).to_have_attribute(
            "href", re.compile("/communities/teller.*/feed.atom")
        )
        await part.get_by_role("button", name="Remove it").click()
        await expect(part.locator("output")).to_have_text("Removed.")
        await expect(part.get_by_label("Your web server")).to_have_value("")
        await page.set_viewport_size({"width": 375, "height": 740})
        assert await overflow(page) <= 0


async def test_secrets_are_encrypted_in_the_browser_and_older_ones_are_read(browser: Browser, site: str) -> None:
    async with signed_in(browser, site, KEY) as page:
        assert await page.evaluate("localStorage.getItem('sns_owner_wallet')") == ADDRESS
        kept_key = await page.evaluate("localStorage.getItem('sns_local_key')")
        assert KEY[2:] not in kept_key
        await register_community(page, "Vault", "0x" + "c2" * 20)
        own = page.locator("#communities article")
        await own.locator("summary", has_text="Description and repository").click()
        await expect(own.get_by_label("GitHub repository")).to_have_value("https://github.com/owner/name")
        await own.get_by_label("GitHub repository").fill("https://github.com/owner/other")
        await own.get_by_role("button", name="Save").click()
        await expect(own.locator("[data-form=description] output")).to_have_text("Saved.")
        owned = await api(page, "GET", f"/api/communities/owned?walletAddress={ADDRESS}")
        assert owned["communities"][0]["githubRepositoryUrl"] == "https://github.com/owner/other"
        await own.locator("summary", has_text="Contracts").click()
        await own.get_by_label("Address").fill("0x" + "c7" * 20)
        await own.get_by_label("ABI").fill('{"foo": 1}')
        await own.get_by_role("button", name="Add this contract").click()
        await expect(own.locator("[data-form=contract] output")).to_contain_text('has no array "abi" in it')
        await register_agent(page, "Vault", "keeper")
        card = page.locator("#agents article")
        agent_id = str(await card.get_attribute("id")).removeprefix("agent-")
        await card.locator("summary", has_text="Secrets").click()
        form = card.locator("[data-form=secrets]")
        await form.get_by_label("Password").fill("short")
        await form.get_by_label("Key of the model's provider").fill("sk-new")
        await form.get_by_label("Private key for transactions").fill("0x123")
        await form.get_by_role("button", name="Encrypt and save").click()
        await expect(form.locator("output")).to_have_text(
            "The private key cannot sign: 64 hexadecimal digits are needed."
        )
        await form.get_by_label("Private key for transactions").fill(KEY)
        await form.get_by_role("button", name="Encrypt and save").click()
        await expect(form.locator("output")).to_have_text("The password needs 12 characters or more.")
        await form.get_by_label("Password").fill(PASSPHRASE)
        await form.get_by_role("button", name="Encrypt and save").click()
        await expect(form.locator("output")).to_have_text("Encrypted and saved.")
        sent = await api(page, "GET", f"/api/agents/{agent_id}/secrets")
        assert sent["securitySensitive"]["v"] == 2
        assert "sk-new" not in json.dumps(sent)
        # A terminal reads what the page wrote, and below the page what a terminal writes.
        wallet = Wallet(KEY)
        assert sealing.unseal(sent["securitySensitive"], PASSPHRASE, ADDRESS, wallet.sign)["llmApiKey"] == "sk-new"

        async def load(password: str) -> str:
            await form.get_by_label("Key of the model's provider").fill("")
            await form.get_by_label("Password").fill(password)
            await form.get_by_role("button", name="Load and decrypt").click()
            return await form.get_by_label("Key of the model's provider").input_value()

        await load("another password")
        await expect(form.locator("output")).to_contain_text("That is not the password")
        await load(PASSPHRASE)
        await expect(form.locator("[name=llmApiKey]")).to_have_value("sk-new")
        typed = sealing.seal({"llmApiKey": "sk-terminal \N{KEY}"}, PASSPHRASE, ADDRESS)
        await api(page, "POST", f"/api/agents/{agent_id}/secrets", {"securitySensitive": typed})
        await load(PASSPHRASE)
        await expect(form.locator("[name=llmApiKey]")).to_have_value("sk-terminal \N{KEY}")
        await api(page, "POST", f"/api/agents/{agent_id}/secrets", {"securitySensitive": V2})
        await load("1234")
        await expect(form.locator("[name=llmApiKey]")).to_have_value(SECRETS["llmApiKey"])
        # The oldest form needs a signature, and so the key's passphrase.
        await api(page, "POST", f"/api/agents/{agent_id}/secrets", {"securitySensitive": V1})
        await load("1234")
        await page.get_by_label("Passphrase of your key").fill(PASSPHRASE)
        await page.get_by_role("button", name="Sign", exact=True).click()
        for name, value in SECRETS.items():
            await expect(form.locator(f"[name={name}]")).to_have_value(value)


async def test_a_wallet_of_the_browser_signs_in(browser: Browser, site: str) -> None:
    account = Account.create()

    def answer(asked: dict[str, Any]) -> Any:
        if asked["method"] == "eth_requestAccounts":
            return [account.address]
        assert asked["method"] == "personal_sign"
        message, address = asked["params"]
        assert address == account.address
        return "0x" + account.sign_message(encode_defunct(hexstr=message)).signature.hex()

    async with visiting(browser, site, phone=True) as page:
        await page.expose_function("walletAnswers", answer)
        await page.add_init_script("window.ethereum = { request: (asked) => walletAnswers(asked) }")
        await page.goto("/sign-in?next=//evil.example")
        await page.get_by_role("button", name="Sign in with Browser wallet").click()
        await page.wait_for_url("**/communities")
        wallet = account.address.lower()
        await expect(page.locator("[data-wallet]")).to_have_text(f"{wallet[:6]}…{wallet[-4:]}")


async def test_a_runner_is_started_only_after_a_look_at_what_runs(browser: Browser, site: str, acting: Acting) -> None:
    launcher = FakeLauncher(site)
    async with signed_in(browser, site) as page:
        await page.route(LAUNCHERS, launcher.answer)
        await register_community(page, "Bridge", "0x" + "c3" * 20)
        await register_agent(page, "Bridge", "walker")
        card = page.locator("#agents article")
        agent_id = str(await card.get_attribute("id")).removeprefix("agent-")
        await card.locator("summary", has_text="Runner").click()
        form = card.locator("[data-form=runner]")
        await form.get_by_role("button", name="Find the launcher").click()
        await expect(form.locator("output")).to_have_text("A launcher answers on port 4319.")
        await form.get_by_label("Launcher's secret").fill("s3cret")
        await form.get_by_role("button", name="Start").click()
        await expect(form.locator("output")).to_contain_text("The key of the model's provider is missing")
        await form.get_by_label("Who thinks").select_option("agent")
        await form.get_by_label("That agent's name").fill("coder")
        await form.get_by_role("button", name="Start").click()
        await expect(form.locator("output")).to_have_text("Started. You can close this page.")
        facts = form.locator("[data-state] .facts")
        await expect(facts).to_contain_text("7 since the start, 3 today")
        await expect(facts.get_by_role("link")).to_have_text("2, see the log")
        await form.get_by_text("Everything that the launcher says").click()
        assert str(await form.locator("[data-state] pre").inner_text()).count("cycleCount") == 1
        config = launcher.started[0]["config"]
        assert config["agentId"] == agent_id
        assert config["snsBaseUrl"] == site
        assert config["runtime"]["intervalSec"] == 60
        assert config["brain"] == {"kind": "agent", "name": "coder"}
        agent = acting(agent_id, config["runnerToken"])
        assert (await agent.general())["agent"]["handle"] == "walker"

        # It runs: nothing is started, and above all no new credential is issued.
        await form.get_by_role("button", name="Start").click()
        await expect(form.locator("output")).to_have_text("This agent is running already. Stop it first.")
        assert (await agent.general())["agent"]["handle"] == "walker"
        await form.get_by_role("button", name="Stop").click()
        await expect(form.locator("output")).to_have_text("Runner stopped")
        await expect(facts).to_contain_text("stopped")

        # A community that is closed is offered to nobody.
        offered = page.locator("#a-community option", has_text="Bridge")
        await expect(offered).to_have_count(1)
        own = page.locator("#communities article")
        await own.locator("summary", has_text="Close").click()
        await own.get_by_label("Type the community's name").fill("Bridge")
        await own.get_by_role("button", name="Close the community").click()
        await expect(own.locator("[data-closed]")).to_be_visible()
        await expect(offered).to_have_count(0)
        assert set(launcher.secrets) == {"s3cret"}

        await page.goto("/log")
        await page.get_by_label("Launcher's port").fill("4319")
        await page.get_by_label("Launcher's secret").fill("s3cret")
        await page.get_by_role("button", name="Read the log").click()
        await expect(page.locator("#entries article")).to_have_count(2)
        await expect(page.locator("#entries article").first).to_contain_text("Runner → Agent")
        await expect(page.locator("#entries pre").last).to_have_text('[{"action":"tx","note":"<b>"}]')
        await page.get_by_role("button", name="Transactions that wait").click()
        await expect(page.locator("#approvals pre")).to_have_text("inc()\n  wei: <U+202E>")
        await page.get_by_role("button", name="Approve").click()
        await expect(page.locator("#log-form output")).to_have_text("1 wait for you.")
        await expect(page.locator("#approvals article")).to_have_count(0)
        assert launcher.decided == [{"id": "tx1", "approve": True}]

        await page.goto("/admin")
        page.on("dialog", lambda dialog: dialog.accept())
        await page.get_by_label("Administrator's key").fill("wrong")
        await page.get_by_role("button", name="Show communities and agents").click()
        await expect(page.locator("#admin-form output")).to_have_text("Unauthorized")
        await page.get_by_label("Administrator's key").fill("the admin's key")
        await page.get_by_role("button", name="Show communities and agents").click()
        doomed = page.locator("#admin-communities article", has_text="Bridge")
        await picture(page, "admin")
        await doomed.get_by_role("button", name="Delete").click()
        await expect(doomed).to_have_count(0)


async def test_every_page_fits_a_phone(browser: Browser, site: str, acting: Acting) -> None:
    async with signed_in(browser, site, phone=True, dark=True) as page:
        await register_community(page, "W" * 60 + " " + "iron ore " * 6, "0x" + "c4" * 20)
        await register_agent(page, ("W" * 60 + " " + "iron ore " * 6).strip(), "miner")
        agent_id, token = await issue_credential(page)
        for box in await page.locator("#agents article details, #communities article details").all():
            await box.evaluate("box => { box.open = true }")
        assert await overflow(page) == 0
        await picture(page, "manage-phone")
        agent = acting(agent_id, token)
        community = (await agent.context(10))["communities"][0]
        body = f"`{'x' * 300}` {'y' * 300}\n\n| a | b |\n|-|-|\n| {'z' * 200} | 2 |\n\n```\n{'w' * 400}\n```"
        thread = await agent.create_thread(community["id"], "t" * 180, body, "REPORT_TO_HUMAN")
        await agent.comment(thread["id"], body)
        place = f"/communities/{community['slug']}"
        paths = ["/", "/communities", place, f"{place}/threads/{thread['id']}", "/requests", "/reports"]
        for path in [*paths, f"/agents/{agent_id}", "/about", "/audit", "/sign-in", "/log", "/admin"]:
            await page.goto(path)
            assert await overflow(page) == 0, path
            if path in (place, *paths[3:4]):
                await picture(page, "thread-phone" if "threads" in path else "community-phone")


async def api(page: Page, method: str, path: str, body: Any = None) -> Any:
    """Ask the API as the person who has signed in."""
    token = await page.evaluate("localStorage.getItem('sns_owner_token')")
    answer = await page.request.fetch(path, method=method, data=body, headers={"authorization": f"Bearer {token}"})
    assert answer.ok, await answer.text()
    return await answer.json()
