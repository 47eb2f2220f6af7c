"""The commands of owners, asked of a network that answers whatever it likes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result

from tests.support.owner_terminal import KEY, OTHER_KEY, Site, invoke
from trunkline.wires.sns.owner import Owner
from trunkline.wires.sns.wallet import Wallet

pytestmark = pytest.mark.usefixtures("no_keyring")

ESCAPES = "\x1b]0;x\x07\x1b[2J\u202e"
COMMANDS = tuple(
    line.split()
    for line in f"""
    credential list
    credential issue ada
    credential revoke ada
    agent list
    agent update ada --handle x
    agent unregister ada --yes
    agent secrets list ada --password-file {{home}}/password
    agent secrets show ada --password-file {{home}}/password
    agent secrets set ada llmApiKey --file {{home}}/password --password-file {{home}}/password
    agent secrets remove ada llmApiKey --password-file {{home}}/password
    community list
    community show s
    community update s --description x
    community update s --rename-contract A=B
    community update s --remove-contract A --yes
    community close s --yes
    community ban s ada
    community ban s 0x{"ab" * 20}
    community unban s ada
    webhook show s
    webhook set s https://hooks.example/
    webhook test s
    webhook remove s
    owner requests
    owner requests c1
    owner reports
    owner reports c1
    owner draft-issue c1
    owner answer c1 -m x
    owner reject c1
    owner reopen c1
    register agent --community s --handle x
    register community --name x --contract A=0x1
    """.strip().splitlines()
)

LISTS = ("pairs", "threads", "comments", "communities", "deliveries", "contracts")
MEMBERS = (
    "community", "agent", "thread", "comment", "webhook", "ban", "runnerToken", "secret", "securitySensitive", "error",
    "deleteAt", "handle", "hasMore", "issueDraftUrl",
)  # fmt: skip


def answer(value: Any) -> dict[str, Any]:
    """An answer to every question, with the same value wherever something is looked for."""
    return {**{name: [value, value] for name in LISTS}, **dict.fromkeys(MEMBERS, value)}


NAMES = (
    "name", "status", "author", "title", "body", "createdAt", "url", "waiting", "missed", "event", "state", "attempts",
    "error", "ownerWallet", "llmModel", "credentialIssuedAt",
)  # fmt: skip
KNOWN = {"id": "c1", "slug": "s", "handle": "ada"}
ANSWERS: dict[str, dict[str, Any]] = {
    "escapes": answer({**dict.fromkeys(NAMES, ESCAPES), **KNOWN, "community": {"slug": ESCAPES, "id": ESCAPES}}),
    "escapes in ids": answer({**KNOWN, "id": ESCAPES}),
    "no ids": answer({"slug": "s", "handle": "ada", "contracts": [{"name": "A"}], "bannedAgents": [{"handle": "ada"}]}),
    "no ids within": answer({**KNOWN, "contracts": [{"name": "A"}], "bannedAgents": [{"handle": "ada"}]}),
    "ids that are numbers": answer({"slug": "s", "handle": "ada", "id": 7}),
    "half characters": answer({**KNOWN, "id": "\ud800", "name": "\ud800"}),
    "numbers": answer(5),
    "lists": answer([1]),
    "nothing": answer(None),
    "texts": answer("x"),
    "objects": answer({"id": {"a": [1]}, "handle": "ada", "slug": "s", "contracts": {"a": 1}}),
    "pages without an end": {"threads": [], "comments": [], "nextBefore": "1", "nextAfter": "1", "hasMore": True},
}


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    for name, content in (("key", KEY), ("password", "a long password")):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o600)
    return tmp_path


def answering(monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]) -> None:
    asked = 0

    async def call(self: Owner, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        nonlocal asked
        asked += 1
        assert asked < 20, "it goes on asking"
        # Another page each time, so that none is known already.
        return {name: f"{value}{asked}" if name.startswith("next") else value for name, value in given.items()}

    async def nothing(self: Owner) -> None:
        pass

    for name, instead in (("call", call), ("sign_in", nothing), ("sign_out", nothing)):
        monkeypatch.setattr(Owner, name, instead)


@pytest.mark.parametrize("name", ANSWERS)
async def test_no_answer_breaks_a_command_or_moves_the_cursor(
    keys: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for arguments in COMMANDS:
        for more in ((), ("--json",)):
            answering(monkeypatch, ANSWERS[name])
            named = [each.replace("{home}", str(keys)) for each in arguments]
            result: Result = await invoke(*named, "--key-file", str(keys / "key"), *more)
            assert result.exception is None or isinstance(result.exception, SystemExit), (named, result.exception)
            assert result.exit_code in (0, 1), (named, result.output)
            assert not result.exit_code or not result.stdout, named
            assert not any(char in result.output for char in "\x1b\x07"), (named, result.output)
            if more and not result.exit_code:
                json.loads(result.stdout)


async def test_an_agent_without_an_id_is_not_asked_for_as_none(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, {"pairs": [{"handle": "ada", "id": None}]})
    result = await invoke("credential", "revoke", "ada", "--key-file", str(keys / "key"))
    assert (result.exit_code, "The network's answer has no `id`" in result.stderr) == (1, True)


async def test_where_the_network_is_may_be_written_in_capitals(site: Site) -> None:
    for url in (site.url.replace("http", "HTTP"), f"{site.url}//"):
        result = await invoke("credential", "list", "--url", url, "--key-file", site.key_file)
        assert result.exit_code == 0, result.output


async def test_standard_input_that_is_closed_is_no_key_and_no_answer(
    keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments, code, said in (
        (("credential", "list", "--key-file", "-"), 1, "Standard input holds no key"),
        (("owner", "answer", "c1", "--key-file", str(keys / "key")), 2, "The answer is empty"),
        (("community", "close", "s", "--key-file", str(keys / "key")), 2, "There is no terminal to ask in"),
    ):
        # As Python has it in a process that was started without one.
        monkeypatch.setattr("trunkline.cli.network_asking.sys", SimpleNamespace(stdin=None))
        result = await invoke(*arguments)
        assert (result.exit_code, said in result.output) == (code, True), result.output


async def test_a_key_that_is_typed_is_not_seen(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.cli.network_asking.at_terminal", lambda: True)
    result = await invoke("credential", "list", "--url", site.url, "--key-file", "-", input=f"{OTHER_KEY}\n")
    assert result.exit_code == 0, result.output
    assert OTHER_KEY not in result.output
    assert Wallet(OTHER_KEY).address not in result.output


async def test_a_pipe_in_the_place_of_a_key_file_is_told_how_it_is_read(tmp_path: Path) -> None:
    result = await invoke("credential", "list", "--key-file", str(tmp_path))
    assert (result.exit_code, "is not a regular file. `-` reads from a pipe." in result.stderr) == (1, True)
