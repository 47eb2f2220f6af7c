"""What an owner has, from a terminal: reports and drafts of issues, communities, agents, the key in the keyring."""

from __future__ import annotations

import pytest

from tests.support.launched import MemoryKeyring
from tests.support.owner_terminal import CONTRACT, OTHER_KEY, SLUG, WALLET, Site, invoke, registered
from tests.support.patience import PATIENCE_SECONDS
from trunkline.wires.sns.drive import Sns
from trunkline.wires.sns.wallet import Wallet

pytestmark = pytest.mark.usefixtures("no_keyring")


async def test_reports_are_listed_read_and_made_drafts_of_issues(site: Site) -> None:
    agent_id = await registered(site)
    token = (await site.done("credential", "issue", "ada"))["runnerToken"]
    sns = Sns(site.url, agent_id, token, timeout=PATIENCE_SECONDS)
    try:
        community = (await sns.general())["community"]["id"]
        assert (await site.run("owner", "reports")).stdout == "There is none.\n"
        report = str((await sns.create_thread(community, "It\x1b[2J breaks", "Look.", "REPORT_TO_HUMAN"))["id"])
        other = str((await sns.create_thread(community, "Another", "Look here.", "REPORT_TO_HUMAN"))["id"])
        comment = str((await sns.comment(report, "And again."))["id"])
    finally:
        await sns.close()
    listed = await site.run("owner", "reports", "--issued", "no")
    assert [line.split()[:4] for line in listed.stdout.splitlines()[1:]] == [
        [other, "no", SLUG, "ada"], [report, "no", SLUG, "ada"],
    ]  # fmt: skip
    assert "\x1b" not in listed.output
    found = await site.done("owner", "reports", "--search", "breaks")
    assert [each["id"] for each in found["threads"]] == [report]
    drafted = await site.run("owner", "draft-issue", report)
    assert (drafted.exit_code, drafted.stdout.count("\n")) == (0, 1), drafted.output
    assert drafted.stdout.startswith("https://github.com/owner/counter/issues/new?")
    assert [each["id"] for each in (await site.done("owner", "reports", "--issued", "no"))["threads"]] == [other]
    assert [each["id"] for each in (await site.done("owner", "reports", "--issued", "yes"))["threads"]] == [report]
    shown = await site.run("owner", "reports", report)
    assert shown.stdout.startswith("It\\x1b[2J breaks, issued\n\nada, ")
    assert f" ({comment})\n  And again.\n" in shown.stdout
    assert (await site.done("owner", "draft-issue", comment, "--comment"))["issueDraftUrl"].startswith("https://")
    # Somebody else's is nobody's to draft, and marks nothing.
    site.key_file = site.file("other.key", OTHER_KEY)
    refused = await site.run("owner", "draft-issue", other)
    assert (refused.exit_code, refused.stdout) == (1, "")
    [row] = await site.rows(f"SELECT is_issued FROM thread WHERE id = '{other}'")
    assert not row["is_issued"]


async def test_requests_are_found_by_their_words(site: Site) -> None:
    agent_id = await registered(site)
    token = (await site.done("credential", "issue", "ada"))["runnerToken"]
    sns = Sns(site.url, agent_id, token, timeout=PATIENCE_SECONDS)
    try:
        community = (await sns.general())["community"]["id"]
        wanted = await sns.create_thread(community, "Money", "Please.", "REQUEST_TO_HUMAN")
        await sns.create_thread(community, "Time", "Please.", "REQUEST_TO_HUMAN")
    finally:
        await sns.close()
    found = await site.done("owner", "requests", "--search", "money")
    assert [each["id"] for each in found["threads"]] == [wanted["id"]]
    assert (await site.run("owner", "requests", "--search", "nothing")).stdout == "There is none.\n"


async def test_communities_are_listed_and_shown_with_contracts_and_bans(site: Site) -> None:
    assert "has no community" in (await site.run("community", "list")).stdout
    await registered(site)
    listed = await site.run("community", "list")
    assert listed.stdout.splitlines()[1].split() == [SLUG, "active", "1", "My", "counter"]
    other = Wallet(OTHER_KEY).address
    await site.done("community", "ban", SLUG, other)
    shown = (await site.run("community", "show", SLUG)).stdout
    assert shown.startswith("My counter, active\n  https://github.com/owner/counter\n  Count.\n\nCONTRACT")
    assert CONTRACT.lower() in shown
    assert other in shown
    found = await site.done("community", "show", SLUG)
    assert (found["ownerWallet"], [each["ownerWallet"] for each in found["bannedAgents"]]) == (WALLET, [other])
    unknown = await site.run("community", "show", "my-counter")
    assert (unknown.exit_code, f"Did you mean `{SLUG}`?" in unknown.stderr) == (1, True)


async def test_agents_are_listed_with_their_models_and_whether_they_have_secrets(site: Site) -> None:
    assert "has no agent" in (await site.run("agent", "list")).stdout
    agent_id = await registered(site)
    row = [agent_id, SLUG, "no", "ada", "some-model"]
    assert (await site.run("agent", "list")).stdout.splitlines()[1].split() == row
    password = site.file("password", "a long password")
    await site.done("agent", "secrets", "set", "ada", "llmApiKey", "--password-file", password, input="sk-1")
    assert (await site.run("agent", "list")).stdout.splitlines()[1].split()[2] == "yes"
    assert [each["id"] for each in (await site.done("agent", "list"))["pairs"]] == [agent_id]


async def test_a_key_in_the_keyring_is_forgotten(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = MemoryKeyring()
    monkeypatch.setattr("trunkline.base.keyring.system_keyring", lambda: keyring)
    await invoke("key", "keep", "--key-file", site.key_file)
    assert (await invoke("key", "forget")).stdout == "Forgotten.\n"
    assert keyring.entries == {}
    again = await invoke("key", "forget")
    assert (again.exit_code, "There is no key in the keyring." in again.stderr) == (1, True)
