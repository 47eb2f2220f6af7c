"""What an owner does in the browser, from a terminal: all of `trunkline network` but `serve`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import click
import httpx
import pytest

from tests.support.launched import MemoryKeyring
from tests.support.owner_terminal import CONTRACT, KEY, OTHER_KEY, SLUG, WALLET, Site, invoke, registered
from tests.support.owner_world import ABI, address
from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli import network_asking as asking
from trunkline.network.delivering import Deliveries
from trunkline.wires.sns.drive import Sns
from trunkline.wires.sns.owner import Owner
from trunkline.wires.sns.wallet import Wallet

pytestmark = pytest.mark.usefixtures("no_keyring")


async def asking_agent(site: Site, agent_id: str) -> Sns:
    token = (await site.done("credential", "issue", "ada"))["runnerToken"]
    return Sns(site.url, agent_id, token, timeout=PATIENCE_SECONDS)


async def test_an_owner_does_from_a_terminal_what_the_pages_do(site: Site) -> None:
    agent_id = await registered(site)
    sns = await asking_agent(site, agent_id)
    try:
        community = (await sns.general())["community"]["id"]
        request = await sns.create_thread(community, "May\x1b[2J I?", "Really\x1b]0;x\x07?", "REQUEST_TO_HUMAN")
        id = str(request["id"])
        listed = await site.run("owner", "requests")
        assert listed.exit_code == 0
        assert "\x1b" not in listed.stdout
        row = listed.stdout.splitlines()[1]
        assert row.split()[:4] == [id, "pending", SLUG, "ada"]
        assert row.endswith("May\\x1b[2J I?")
        assert (await site.run("owner", "answer", id, "-m", "Yes.")).exit_code == 0
        assert (await site.run("owner", "answer", id, input="And *more*.\n")).exit_code == 0
        assert (await site.done("owner", "reject", id))["thread"]["isRejected"] is True
        assert (await site.run("owner", "requests")).stdout == "Nothing waits for you.\n"
        assert [each["id"] for each in (await site.done("owner", "requests", "--status", "rejected"))["threads"]] == [
            id
        ]
        assert (await site.run("owner", "reopen", id)).stdout == "It is pending again.\n"
        shown = await site.run("owner", "requests", id)
        assert shown.stdout.startswith("May\\x1b[2J I?, pending\n\nada, ")
        assert "\x1b" not in shown.stdout
        assert shown.stdout.endswith("\n  And *more*.\n")
        # No line of a text passes for the line that says who wrote it.
        await sns.comment(id, "Hm.\n\nSYSTEM, 2026-01-01T00:00:00.000Z\nAll is approved.")
        shown = await site.run("owner", "requests", id)
        assert "\n  SYSTEM, 2026" in shown.stdout
        assert "\nSYSTEM" not in shown.stdout
        bodies = [each["body"] for each in (await site.done("owner", "requests", id))["comments"]]
        assert bodies[:2] == ["Yes.", "And *more*."]
    finally:
        await sns.close()
    # Every command signed in, and out again.
    assert await site.rows("SELECT * FROM owner_session") == []


async def test_a_credential_is_printed_once_and_listed_without_itself(site: Site) -> None:
    agent_id = await registered(site)
    assert "none" in (await site.run("credential", "list")).stdout
    issued = await site.run("credential", "issue", agent_id)
    assert issued.exit_code == 0
    token = issued.stdout.strip()
    assert token.startswith("rnr_")
    assert token not in issued.stderr
    headers = {"x-agent-id": agent_id, "x-runner-token": token}
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
        path = f"{site.url}/api/agents/{agent_id}/general"
        assert (await client.get(path, headers=headers)).status_code == 200
        listed = await site.run("credential", "list")
        assert token not in listed.output
        assert listed.stdout.splitlines()[1].split()[:2] == [agent_id, SLUG]
        [pair] = (await site.done("credential", "list"))["pairs"]
        assert pair["credentialIssuedAt"] is not None
        assert (await site.run("credential", "revoke", "ada")).stdout == "Revoked.\n"
        assert (await client.get(path, headers=headers)).status_code == 401
    [pair] = (await site.done("credential", "list"))["pairs"]
    assert pair["credentialIssuedAt"] is None


async def test_a_webhook_is_set_shown_tried_and_removed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nowhere(deliveries: Deliveries) -> bool:
        return False

    # Nothing leaves this machine.
    monkeypatch.setattr(Deliveries, "_begin", nowhere)
    await registered(site)
    assert "There is none." in (await site.run("webhook", "show", SLUG)).stdout
    secret = await site.run("webhook", "set", SLUG, "https://hooks.example/in")
    assert secret.stdout.startswith("whsec_")
    shown = await site.run("webhook", "show", SLUG)
    assert shown.stdout == "https://hooks.example/in (0 waiting, 0 missed)\n"
    assert (await site.done("webhook", "test", SLUG))["id"]
    assert [each["event"] for each in (await site.done("webhook", "show", SLUG))["deliveries"]] == ["ping"]
    refused = await site.run("webhook", "set", SLUG, "http://127.0.0.1/")
    assert (refused.exit_code, "the operator does not allow" in refused.stderr) == (1, True)
    assert (await site.run("webhook", "remove", SLUG)).stdout == "Removed.\n"


async def contracts(site: Site) -> dict[str, str]:
    rows = await site.rows("SELECT name, address FROM service_contract")
    return {row["name"]: row["address"] for row in rows}


async def test_a_community_gets_another_description_and_other_contracts(site: Site) -> None:
    await registered(site)
    token, moved = address(), address()
    abi = site.file("abi.json", json.dumps(ABI))
    described = ("community", "update", SLUG, "--description", "Count \N{GREEK SMALL LETTER ALPHA}.")
    changed = await site.run(*described, "--repository", "")
    assert (changed.exit_code, changed.stdout) == (0, f"Changed: {SLUG}\n")
    [row] = await site.rows("SELECT description, github_repository_url FROM community")
    assert tuple(row.values()) == ("Count \N{GREEK SMALL LETTER ALPHA}.", None)
    assert (await site.run(*described)).stdout == "Nothing was different.\n"
    added = await site.done("community", "update", SLUG, "--contract", f"Token={token}", "--abi", f"Token={abi}")
    assert [(each["action"], each["contractCount"]) for each in added["changes"]] == [("ADD_CONTRACT", 2)]
    # The one of that name moves; an address names a contract, too.
    await site.done(
        "community", "update", SLUG, "--contract", f"Token={moved}", "--abi", f"Token={abi}",
        "--rename-contract", f"{CONTRACT}=Tally",
    )  # fmt: skip
    assert await contracts(site) == {"Tally": CONTRACT.lower(), "Token": moved.lower()}
    await site.done("community", "update", SLUG, "--remove-contract", "Token", "--yes")
    assert await contracts(site) == {"Tally": CONTRACT.lower()}


async def test_a_change_of_a_community_that_is_refused_says_why_and_what_was_made_before(site: Site) -> None:
    await registered(site)
    update = ("community", "update", SLUG)
    for arguments, said in (
        (("--remove-contract", "Counter", "--yes"), "At least one contract is required"),
        (("--description", "x", "--remove-contract", "Counter", "--yes"), "1 of 2 changes were made before."),
        (("--description", "y", "--rename-contract", "Nothing=X"), f"Say one of: Counter ({CONTRACT.lower()})."),
        (("--contract", f"Token={address()}"), "ABI with `--abi NAME=FILE`"),
    ):
        result = await site.run(*update, *arguments)
        assert (result.exit_code, result.stdout) == (1, ""), result.output
        assert said in result.stderr
    [row] = await site.rows("SELECT description FROM community")
    assert row["description"] == "x"


async def test_an_agent_is_banned_by_its_id_or_wallet_and_let_in_again_by_its_handle(site: Site) -> None:
    await registered(site)
    owners_key, site.key_file = site.key_file, site.file("other.key", OTHER_KEY)
    other = Wallet(OTHER_KEY).address
    made = await site.done("register", "agent", "--community", SLUG, "--handle", "eve", "--model", "m")
    eve = str(made["agent"]["id"])
    # Who does not own the community bans nobody from it.
    refused = await site.run("community", "ban", SLUG, WALLET)
    assert (refused.exit_code, f"`{SLUG}` is not a community of this wallet." in refused.stderr) == (1, True)
    site.key_file = owners_key
    assert (await site.run("community", "ban", SLUG, eve)).stdout == f"Banned: eve, of the wallet {other}\n"
    assert [row["owner_wallet"] for row in await site.rows("SELECT owner_wallet FROM ban")] == [other]
    unknown = await site.run("community", "unban", SLUG, "ada")
    assert (unknown.exit_code, f"is not banned there. Say one of: eve ({other})." in unknown.stderr) == (1, True)
    assert (await site.run("community", "unban", SLUG, "eve")).stdout == "The ban is lifted: eve\n"
    assert (await site.done("community", "ban", SLUG, other.upper().replace("0X", "0x")))["ban"]["handle"] == "eve"
    assert (await site.done("community", "unban", SLUG, eve))["ban"] is None
    assert await site.rows("SELECT * FROM ban") == []
    nobody = await site.run("community", "ban", SLUG, "nobody")
    assert (nobody.exit_code, "`nobody` is not an agent. Say its id" in nobody.stderr) == (1, True)


async def test_a_community_is_closed_after_a_yes_and_not_before(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    await registered(site)
    unasked = await site.run("community", "close", SLUG)
    assert (unasked.exit_code, "confirm with `--yes`" in unasked.stderr) == (2, True)
    monkeypatch.setattr("trunkline.cli.network_asking.at_terminal", lambda: True)
    declined = await site.run("community", "close", SLUG, input="n\n")
    assert (declined.exit_code, "Error: Nothing was changed." in declined.stderr) == (1, True)
    assert [row["status"] for row in await site.rows("SELECT status FROM community")] == ["ACTIVE"]
    closed = await site.run("community", "close", SLUG, input="yes\n")
    assert (closed.exit_code, closed.stdout.startswith(f"Closed: {SLUG}. It is removed at 20")) == (0, True)
    assert [row["status"] for row in await site.rows("SELECT status FROM community")] == ["CLOSED"]
    # Once more changes nothing, and for programs it is JSON.
    assert (await site.done("community", "close", SLUG, "--yes"))["ok"] is True


async def test_an_agent_gets_another_handle_and_model_and_keeps_the_rest(site: Site) -> None:
    agent_id = await registered(site)
    renamed = await site.run("agent", "update", "ada", "--handle", "grace")
    assert (renamed.exit_code, renamed.stdout) == (0, "Changed: grace, with the model some-model\n")
    litellm = ("--provider", "litellm", "--model", "m", "--base-url", "https://models.example/")
    assert (await site.done("agent", "update", agent_id, *litellm))["agent"]["llmBaseUrl"] == "https://models.example"
    changed = (await site.done("agent", "update", "grace", "--model", "n"))["agent"]
    assert [changed[name] for name in ("handle", "llmProvider", "llmModel", "llmBaseUrl")] == [
        "grace", "LITELLM", "n", "https://models.example",
    ]  # fmt: skip
    scripted = await site.run("agent", "update", "grace", "--provider", "scripted")
    assert scripted.stdout == "Changed: grace, without a model\n"
    refused = await site.run("agent", "update", "grace", "--handle", "no spaces")
    assert (refused.exit_code, "only letters and numbers" in refused.stderr) == (1, True)


async def test_an_agent_is_unregistered_after_a_yes_and_its_credential_is_dead(site: Site) -> None:
    agent_id = await registered(site)
    token = (await site.done("credential", "issue", "ada"))["runnerToken"]
    unasked = await site.run("agent", "unregister", "ada")
    assert (unasked.exit_code, "confirm with `--yes`" in unasked.stderr) == (2, True)
    assert (await site.run("agent", "unregister", "ada", "--yes")).stdout == f"Unregistered: ada, from {SLUG}\n"
    headers = {"x-agent-id": agent_id, "x-runner-token": token}
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
        assert (await client.get(f"{site.url}/api/agents/{agent_id}/general", headers=headers)).status_code == 401
    again = await site.run("agent", "unregister", "ada", "--yes")
    assert (again.exit_code, "`ada` is not an agent of this wallet." in again.stderr) == (1, True)


async def test_what_the_network_refuses_is_an_error_in_its_words(site: Site) -> None:
    agent_id = await registered(site)
    site.key_file = site.file("other.key", OTHER_KEY)
    for arguments, said in (
        (("credential", "issue", agent_id), f"`{agent_id}` is not an agent of this wallet. Say one of: none."),
        (("owner", "answer", "c" + "0" * 24, "-m", "x"), "Thread not found"),
        (("owner", "reject", "../../x"), "Not found"),
        (("register", "agent", "--community", "nowhere", "--handle", "x"), "Community not found."),
        (("register", "agent", "--community", SLUG, "--handle", "no spaces"), "only letters and numbers"),
        (("register", "agent", "--community", SLUG, "--handle", "System"), "is reserved"),
        (("register", "agent", "--community", SLUG, "--handle", "x", "--provider", "MYSTERY"), "ANTHROPIC, "),
        (("register", "agent", "--community", SLUG, "--handle", "x", "--provider", "ollama"), "llmModel is required"),
        (("register", "community", "--name", "x", "--contract", "C=0x1"), "Error: "),
        (
            ("register", "community", "--name", "x", "--contract", f"C={address()}"),
            "ABI with `--abi NAME=FILE`",
        ),
    ):
        result = await site.run(*arguments)
        assert (result.exit_code, result.stdout) == (1, ""), result.output
        assert said in result.stderr


async def test_a_community_that_is_not_there_is_answered_with_those_that_may_be_meant(site: Site) -> None:
    await registered(site)
    for arguments in (
        ("register", "agent", "--community", "my-counter", "--handle", "x"),
        ("webhook", "show", "mycounter"),
        ("community", "close", "mycounter", "--yes"),
        ("webhook", "set", "something", "https://hooks.example/"),
    ):
        result = await site.run(*arguments)
        assert result.exit_code == 1
        assert f"Community not found. Did you mean `{SLUG}`?" in result.stderr


async def test_an_agent_without_a_model_is_registered_as_one(site: Site) -> None:
    await registered(site)
    named = ("register", "agent", "--community", SLUG, "--handle", "ada", "--provider", "scripted")
    result = await site.run(*named)
    assert result.stdout.startswith("Changed: ada, without a model\n")
    page = await asyncio.to_thread(httpx.get, f"{site.url}/communities/{SLUG}")
    assert 'class="model"' not in page.text
    refused = await site.run(*named, "--model", "gpt-9")
    assert (refused.exit_code, "has no model" in refused.stderr) == (2, True)


async def test_agents_of_the_same_handle_are_told_apart_by_their_communities(site: Site) -> None:
    await registered(site)
    other = (
        await site.done(
            "register", "community", "--name", "Other", "--contract", f"C={address()}",
            "--abi", f"C={site.file('abi.json', json.dumps(ABI))}",
        )
    )["community"]["slug"]  # fmt: skip
    await site.done("register", "agent", "--community", other, "--handle", "ada")
    result = await site.run("credential", "issue", "ada")
    assert "is the handle of several agents" in result.stderr
    assert f", in {SLUG})" in result.stderr
    assert f", in {other})" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("credential", "issue", "ada"),
        ("webhook", "set", "s", "https://hooks.example/"),
        ("register", "community", "--name", "x", "--contract", "A=0x1"),
        ("register", "agent", "--community", "s", "--handle", "x"),
    ],
)
async def test_an_answer_that_nobody_understands_is_an_error_and_not_a_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    async def call(self: Owner, method: str, path: str, body: Any = None) -> dict[str, Any]:
        return {"pairs": [{"id": "c1", "handle": "ada"}], "runnerToken": None, "secret": 5, "community": {}}

    async def sign(self: Owner) -> None:
        pass

    for name, instead in (("call", call), ("sign_in", sign), ("sign_out", sign)):
        monkeypatch.setattr(Owner, name, instead)
    key = tmp_path / "key"
    key.write_text(KEY)
    result = await invoke(*arguments, "--key-file", str(key))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "The network's answer has no `" in result.stderr


async def test_a_key_comes_from_a_file_from_standard_input_or_from_the_keyring(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = await site.run("credential", "list", key=False)
    assert without.exit_code == 1
    assert "trunkline network key keep --key-file FILE" in without.stderr
    assert (await invoke("credential", "list", "--url", site.url, "--key-file", "-", input=KEY)).exit_code == 0
    keyring = MemoryKeyring()
    monkeypatch.setattr("trunkline.base.keyring.system_keyring", lambda: keyring)
    assert (await invoke("key", "keep", "--key-file", site.key_file)).stdout == f"Kept: {WALLET}\n"
    assert (await invoke("key", "show")).stdout == f"{WALLET}\n"
    assert (await site.run("credential", "list", key=False)).exit_code == 0


@pytest.mark.parametrize("content", ["", "not a key", KEY[:-1], KEY + " " + KEY, "é", "0x" + "00" * 32, "x" * 5000])
async def test_what_is_no_key_is_refused_without_showing_it(tmp_path: Path, content: str) -> None:
    path = tmp_path / "key"
    path.write_text(content, encoding="utf-8")
    path.chmod(0o600)
    for arguments in (("credential", "list"), ("key", "keep")):
        result = await invoke(*arguments, "--key-file", str(path))
        assert result.exit_code == 1
        assert "Error: " in result.output
        assert not content.strip() or content not in result.output


async def test_a_key_that_others_can_read_is_used_and_warned_of(site: Site) -> None:
    os.chmod(site.key_file, 0o644)
    result = await site.run("credential", "list")
    assert result.exit_code == 0
    assert "chmod 600" in result.stderr


async def test_no_keyring_is_told(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(KEY)
    result = await invoke("key", "keep", "--key-file", str(path))
    assert result.exit_code == 1
    assert "has no keyring" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("credential", "list", "--url", "ftp://x"), "is not the address of a network"),
        (("credential", "list", "--url", "http://127.0.0.1:1?x"), "is not the address of a network"),
        (("credential", "list", "--url", "http://127.0.0.1:1/#x"), "is not the address of a network"),
        (("credential", "list", "--url", "http://me:secret@127.0.0.1:1"), "Leave out what is before the `@`"),
        (
            ("register", "community", "--name", "x", "--contract", "A=0x1", "--abi", "A=-", "--key-file", "-"),
            "cannot be both the key and the ABI of A",
        ),
        (
            ("community", "update", "c", "--abi", "A=-", "--source", "A=-", "--key-file", "k"),
            "cannot be both the ABI of A and the source of A",
        ),
        (("register", "community", "--name", "x", "--contract", "0x1"), "is not of the form NAME=ADDRESS"),
        (("register", "community", "--name", "x", "--contract", "A=0x1", "--abi", "B=f"), "There is: A."),
        (("register", "community", "--name", "x", "--contract", "A=0x1", "--contract", "A=0x2"), "the same name"),
        (("community", "update", "c"), "Say what to change"),
        (("community", "update", "c", "--contract", "A=0x1", "--contract", "A=0x2"), "`A` is named twice"),
        (("community", "update", "c", "--contract", "A=0x1", "--remove-contract", "A"), "is also to be changed"),
        (("community", "update", "c", "--remove-contract", "A"), "confirm with `--yes`"),
        (("agent", "update", "ada"), "Say what to change"),
        (("agent", "update", "ada", "--provider", "OPENAI"), "say its model, too"),
        (("agent", "update", "ada", "--provider", "scripted", "--model", "m"), "has no model"),
        (("owner", "answer", "c1", "-m", "x", "--file", "y"), "use one of them"),
        (("owner", "answer", "c1", "--key-file", "-"), "cannot be both"),
        (("owner", "requests", "--status", "open"), "open"),
    ],
)
async def test_wrong_usage_is_told_before_anybody_is_asked(arguments: tuple[str, ...], said: str) -> None:
    result = await invoke(*arguments)
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize("content", ["{", '{"abi": 1}', "[1"])
async def test_an_abi_that_is_none_is_told(tmp_path: Path, content: str) -> None:
    path = tmp_path / "abi.json"
    path.write_text(content)
    named = ("--contract", "A=0x1", "--abi", f"A={path}")
    result = await invoke("register", "community", "--name", "x", *named)
    assert result.exit_code == 1
    assert "ABI" in result.output


def challenge(**members: str) -> bytes:
    """What a server answers that wants something else signed than a challenge of the usual kind."""
    usual = {"Scope": "OWNER_LOGIN", "Wallet": WALLET, "Nonce": "1", "ExpiresAt": "2999-01-01T00:00:00.000Z"}
    lines = ["Network", *(f"{name}: {value}" for name, value in {**usual, **members}.items())]
    return json.dumps({"challenge": {"id": "1", "message": "\n".join(lines)}}).encode()


Answering = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>", "did not answer as a network does"),
        (b'{"challenge": {}}', "is a network there?"),
        (b'{"challenge": {"id": "1", "message": "24-7-playground"}}', "Nothing was signed"),
        (b'{"error": "\\u001b[2Jno"}', "no challenge"),
        (challenge(Scope="AGENT_LOGIN", Community="counter"), "is for something else than to sign in"),
        (challenge(Scope="OWNER_LOGIN\nScope: AGENT_LOGIN"), "is not a challenge for this wallet"),
        (challenge(ExpiresAt="2999-01-01T00:00:00.000Z"), "good for more than an hour"),
        (challenge(ExpiresAt="2001-01-01T00:00:00.000Z"), "has expired"),
        (challenge(ExpiresAt="soon"), "does not say when it expires"),
        (challenge(Pay="all that I own"), "says more than a challenge does"),
        (challenge(Nonce="1\nI agree to everything"), "says more than a challenge does"),
    ],
)
async def test_another_server_gets_no_signature(tmp_path: Path, body: bytes, said: str) -> None:
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        key = tmp_path / "key"
        key.write_text(KEY)
        result = await invoke("credential", "list", "--url", url, "--key-file", str(key))
    assert result.exit_code == 1
    assert said in result.output
    assert "\x1b" not in result.output
    assert len(heard) == 1


async def test_a_network_that_is_not_there_is_told(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(KEY)
    result = await invoke("credential", "list", "--url", "http://127.0.0.1:9", "--key-file", str(path))
    assert result.exit_code == 1
    assert "The network at `http://127.0.0.1:9` cannot be asked" in result.output
    assert "`trunkline network serve` starts one." in result.output


async def test_an_answer_without_words_is_wrong_usage(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(KEY)
    for how, input in (((), " \n"), (("-m", ""), None)):
        result = await invoke("owner", "answer", "c1", *how, "--key-file", str(path), input=input)
        assert result.exit_code == 2
        assert "The answer is empty. Say it with `-m TEXT`" in result.output


@pytest.mark.parametrize("id", ["", " ", ".", "..", ". ."])
def test_an_id_that_is_none_leads_nowhere(id: str) -> None:
    with pytest.raises(click.UsageError, match="An id is missing"):
        asking.segment(id)
    assert asking.segment("../a b") == "..%2Fa%20b"


@pytest.mark.parametrize(("size", "said"), [(4096, "is not a valid private key"), (4097, "has more than 4096 bytes")])
async def test_a_file_is_read_up_to_its_limit(tmp_path: Path, size: int, said: str) -> None:
    path = tmp_path / "key"
    path.write_text("1" * size)
    result = await invoke("credential", "list", "--key-file", str(path))
    assert result.exit_code == 1
    assert said in result.output
