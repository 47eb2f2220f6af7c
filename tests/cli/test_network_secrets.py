"""An agent's secrets, from a terminal: `trunkline network agent secrets`."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.support.owner_terminal import KEY, OTHER_KEY, Site, invoke, registered
from trunkline.runner.config import normalise
from trunkline.wires.sns import sealing
from trunkline.wires.sns.wallet import Wallet

pytestmark = pytest.mark.usefixtures("no_keyring")

SECRET = "sk-secret-secret"
PASSWORD = "a long password"
WALLET = Wallet(KEY)


async def kept(site: Site) -> Any:
    [row] = await site.rows("SELECT security_sensitive FROM agent")
    return json.loads(row["security_sensitive"]) if row["security_sensitive"] else None


def opened(sealed: Any, password: str = PASSWORD) -> dict[str, str]:
    return sealing.unseal(sealed, password, WALLET.address, WALLET.sign)


def password_of(site: Site, password: str = PASSWORD) -> tuple[str, str]:
    return ("--password-file", site.file("password", f"{password}\n"))


async def test_secrets_are_set_listed_shown_and_removed_and_the_network_reads_none(site: Site) -> None:
    await registered(site)
    password = password_of(site)
    secrets = ("agent", "secrets")
    assert (await site.done(*secrets, "list", "ada", *password))["secrets"] == dict.fromkeys(sealing.NAMES, False)
    saved = await site.run(*secrets, "set", "ada", "llmApiKey", *password, input=f"{SECRET}\r\n")
    assert (saved.exit_code, saved.output) == (0, "Encrypted and saved.\n")
    path = site.file("wallet.key", f" {OTHER_KEY}\n")
    assert (await site.done(*secrets, "set", "ada", "executionwalletprivatekey", "--file", path, *password))["ok"]
    sealed = await kept(site)
    assert (sealed["v"], set(sealed)) == (2, {"v", "iv", "ciphertext"})
    assert opened(sealed) == {"llmApiKey": SECRET, "executionWalletPrivateKey": OTHER_KEY}
    listed = await site.run(*secrets, "list", "ada", *password)
    assert [line.split() for line in listed.stdout.splitlines()[1:]] == [
        ["llmApiKey", "yes"], ["executionWalletPrivateKey", "yes"], ["alchemyApiKey", "no"], ["githubIssueToken", "no"],
    ]  # fmt: skip
    assert SECRET not in listed.output
    assert (await site.run(*secrets, "show", "ada", "llmApiKey", *password)).stdout == f"{SECRET}\n"
    assert SECRET in (await site.run(*secrets, "show", "ada", *password)).stdout
    assert (await site.run(*secrets, "remove", "ada", "executionWalletPrivateKey", *password)).stdout == "Removed.\n"
    assert opened(await kept(site)) == {"llmApiKey": SECRET}
    absent = await site.run(*secrets, "remove", "ada", "alchemyApiKey", *password)
    assert (absent.exit_code, "has no `alchemyApiKey`. It has: `llmApiKey`." in absent.stderr) == (1, True)
    absent = await site.run(*secrets, "show", "ada", "alchemyApiKey", *password)
    assert (absent.exit_code, absent.stdout) == (1, "")


async def test_a_runner_takes_what_is_shown(site: Site) -> None:
    agent_id = await registered(site)
    given = {"llmApiKey": SECRET, "executionWalletPrivateKey": OTHER_KEY, "githubIssueToken": "ghp_0123456789"}
    password = password_of(site)
    await site.done("agent", "secrets", "set", "ada", *password, input=json.dumps({**given, "alchemyApiKey": ""}))
    shown = await site.done("agent", "secrets", "show", agent_id, *password)
    assert shown == given
    config = normalise({"agentId": agent_id, "runnerToken": "t", "securitySensitive": shown})
    assert config.llm_api_key == SECRET
    assert set(given.values()) <= set(config.secrets())


async def test_several_come_as_json_and_replace_what_a_forgotten_password_hides(site: Site) -> None:
    await registered(site)
    set_all = ("agent", "secrets", "set", "ada", "--file", site.file("all.json", json.dumps({"alchemyApiKey": "alch"})))
    await site.done(*set_all, *password_of(site))
    wrong = await site.run(*set_all, *password_of(site, "another password"))
    assert (wrong.exit_code, wrong.stdout) == (1, "")
    assert "not the password, or the secrets belong to another wallet. `secrets set --replace`" in wrong.stderr
    assert opened(await kept(site)) == {"alchemyApiKey": "alch"}
    await site.done(*set_all, "--replace", *password_of(site, "another password"))
    assert opened(await kept(site), "another password") == {"alchemyApiKey": "alch"}
    emptied = site.file("none.json", '{"alchemyApiKey": ""}')
    await site.done("agent", "secrets", "set", "ada", "--file", emptied, *password_of(site, "another password"))
    assert opened(await kept(site), "another password") == {}


async def test_at_a_terminal_password_and_secret_are_typed_and_not_seen(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await registered(site)
    monkeypatch.setattr("trunkline.cli.network_asking.at_terminal", lambda: True)
    typed = f"{SECRET}\n{PASSWORD}\n{PASSWORD}\n"
    saved = await site.run("agent", "secrets", "set", "ada", "githubIssueToken", input=typed)
    assert (saved.exit_code, saved.stdout) == (0, "Encrypted and saved.\n")
    assert SECRET not in saved.output
    assert PASSWORD not in saved.output
    shown = await site.run("agent", "secrets", "show", "ada", "githubIssueToken", input=f"{PASSWORD}\n")
    assert shown.stdout == f"{SECRET}\n"
    unnamed = await site.run("agent", "secrets", "set", "ada")
    assert (unnamed.exit_code, "Say which secret" in unnamed.stderr) == (2, True)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("llmApiKey", "", "is empty"),
        ("llmApiKey", " \n", "is empty"),
        ("llmApiKey", "sk-one\nsk-two", "more than one line"),
        ("llmApiKey", "sk-\x1b[2J", "more than one line"),
        ("executionWalletPrivateKey", "0x1234", "cannot sign"),
        ("executionWalletPrivateKey", "0x" + "00" * 32, "cannot sign"),
        ("llmApiKey", "x" * 9000, "more than 8192 bytes"),
        (None, '{"llmApiKey": "sk-secret', "holds no JSON object"),
        (None, '["sk-secret"]', "holds no JSON object"),
        (None, '{"llmApiKey": 5}', "`llmApiKey` is not a string"),
        (None, '{"llmapikey": "sk-secret"}', "`llmapikey` is not a secret that an agent can have"),
        (None, '{"llmApiKey": "sk-\\ud800secret"}', "more than one line"),
    ],
)
async def test_what_is_no_secret_is_refused_without_showing_it(
    site: Site, name: str | None, content: str, said: str
) -> None:
    path = site.file("secret", content)
    result = await site.run(
        "agent", "secrets", "set", "ada", *([name] if name else []), "--file", path, *password_of(site)
    )
    assert (result.exit_code, result.stdout) == (1, "")
    assert said in result.stderr
    assert "sk-" not in result.output
    assert "0x1234" not in result.output


async def test_a_password_is_not_short_and_a_file_that_others_can_read_is_told(site: Site) -> None:
    await registered(site)
    set_one = ("agent", "secrets", "set", "ada", "llmApiKey")
    for password in ("short", ""):
        refused = await site.run(*set_one, *password_of(site, password), input=SECRET)
        assert (refused.exit_code, "The password" in refused.stderr) == (1, True)
    assert await kept(site) is None
    option, path = password_of(site)
    os.chmod(path, 0o644)
    told = await site.run(*set_one, option, path, input=SECRET)
    assert (told.exit_code, told.stderr.count("Others can read the password in")) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("list", "ada"), "give `--password-file FILE`"),
        (("list", "ada", "--password-file", "-", "--key-file", "-"), "cannot be both the password and the key"),
        (("set", "ada", "llmApiKey", "--password-file", "-"), "cannot be both the secret and the password"),
        (("set", "ada", "llmApiKey", "--key-file", "-", "--password-file", "p"), "both the secret and the key"),
        (("set", "ada", "llmApiKey", "sk-on-the-command-line"), "unexpected extra argument"),
        (("set", "ada", "llmKey"), "'llmKey' is not one of"),
        (("remove", "ada", "--password-file", "-"), "Missing argument"),
    ],
)
async def test_wrong_usage_is_told_before_anybody_is_asked(arguments: tuple[str, ...], said: str) -> None:
    result = await invoke("agent", "secrets", *arguments, input="x")
    assert result.exit_code == 2
    assert said in result.output
