"""Asking a block explorer for ABIs and sources, and keeping them in one form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.block_explorer import Answering, Asked, bad, block_explorer, good
from tests.support.owner_world import ABI, World, address
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.asgi_answers import Refused
from trunkline.network import explorer as explorers
from trunkline.network import sources
from trunkline.network.explorer import Explorer
from trunkline.network.network import NetworkSettings
from trunkline.store.database import Database

KEY = "explorer-key-0123456789"
NO_ANSWER = "400 The block explorer has no answer:"
PASTE = "Paste the contract's ABI as `abi` instead."
ADDRESS = "0x" + "5" * 40


def telling(source: Any = "contract Counter {}", **members: Any) -> Answering:
    """An explorer that knows every contract."""

    def answer(asked: Asked) -> Mapping[str, Any]:
        if asked["action"] == "getabi":
            return good(json.dumps(ABI))
        return good([{"SourceCode": source, "ContractName": "Counter", "CompilerVersion": "v0.8.30", **members}])

    return answer


async def asked_with(answering: Answering) -> tuple[Any, list[float], list[Asked]]:
    """What is found about a contract, or the refusal; how long was waited; what was asked."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async with block_explorer(answering) as server:
        explorer = Explorer(NetworkSettings(explorer_url=server.url, explorer_key=KEY), pause=pause)
        try:
            found: Any = (await explorer.contracts([ADDRESS]))[ADDRESS]
        except Refused as refused:
            found = f"{refused.status} {refused.message}"
        for secret in (KEY, server.url):
            assert secret not in str(found)
        return found, pauses, server.asked


async def test_the_abi_the_source_and_the_name_are_asked_for() -> None:
    found, pauses, asked = await asked_with(telling())
    assert (found.abi, found.name, pauses) == (ABI, "Counter", [])
    assert found.source["files"] == [{"path": "Counter.sol", "content": "contract Counter {}"}]
    assert found.source["compilerVersion"] == "v0.8.30"
    common = {"chainid": "11155111", "module": "contract", "address": ADDRESS, "apikey": KEY}
    assert asked == [common | {"action": "getabi"}, common | {"action": "getsourcecode"}]


async def test_an_explorer_that_is_asked_too_often_is_asked_again_a_little_later() -> None:
    busy = [bad("Max calls per sec rate limit reached (5/sec)"), b"HTTP/1.1 429 No\r\ncontent-length: 0\r\n\r\n"]
    found, pauses, _ = await asked_with(lambda asked: busy.pop() if busy else telling()(asked))
    assert (found.abi, pauses) == (ABI, [0.45, 0.9])


async def test_an_explorer_that_stays_busy_is_asked_three_times() -> None:
    found, pauses, asked = await asked_with(lambda asked: bad("Max rate limit reached"))
    assert found == f"400 The block explorer is asked too often now. {PASTE}"
    assert (pauses, len(asked)) == ([0.45, 0.9], 3)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (bad("Contract source code not verified"), f"{NO_ANSWER} Contract source code not verified. {PASTE}"),
        (bad(f"Invalid API Key {KEY} (#err2)"), f"{NO_ANSWER} Invalid API Key [redacted] (#err2)."),
        (bad("w" * 10_000), f"{NO_ANSWER} {'w' * 200}."),
        ({"status": "0"}, f"{NO_ANSWER} it gave no reason."),
        ([], f"{NO_ANSWER} its answer is not an object."),
        (good("nonsense"), "abi must be a JSON array"),
        (good(None), "abi must be an array"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n<html", "it did not answer in JSON (status 200)"),
        (b"HTTP/1.1 302 No\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n", "(status 302)"),
        (b"garbage\r\n\r\n", "it cannot be reached (RemoteProtocolError)"),
        (None, "it did not answer in time"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 2000, "its answer is too long"),
    ],
)  # fmt: skip
async def test_what_an_explorer_cannot_tell_is_said_with_what_to_do(
    answer: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explorers, "EXCHANGE_SECONDS", 0.2 if answer is None else PATIENCE_SECONDS)
    monkeypatch.setattr(explorers, "MAX_ANSWER", 1000 if isinstance(answer, bytes) else explorers.MAX_ANSWER)
    found, _, asked = await asked_with(lambda asked: answer)
    assert words in found
    assert len(asked) == 1


async def test_an_explorer_that_is_not_there_is_no_reason_to_fail() -> None:
    explorer = Explorer(NetworkSettings(explorer_url="http://127.0.0.1:1/api", explorer_key=KEY))
    with pytest.raises(Refused, match=r"it cannot be reached \(ConnectError\)") as refused:
        await explorer.contracts([ADDRESS])
    assert KEY not in refused.value.message


async def test_a_contract_without_a_source_is_known_by_its_abi() -> None:
    answering = telling()
    found, _, _ = await asked_with(lambda asked: answering(asked) if asked["action"] == "getabi" else bad("no"))
    assert (found.abi, found.source, found.name) == (ABI, None, None)


BUNDLE = {"a/A.sol": {"content": "contract A {}"}, "B.sol": {"content": "contract B {}"}, "odd": 1}
FILES = [{"path": "a/A.sol", "content": "contract A {}"}, {"path": "B.sol", "content": "contract B {}"}]


@pytest.mark.parametrize(
    "code",
    [
        json.dumps(BUNDLE),
        json.dumps({"language": "Solidity", "sources": BUNDLE, "settings": {}}),
        "{" + json.dumps({"language": "Solidity", "sources": BUNDLE}) + "}",
        f" {{{json.dumps({'sources': BUNDLE})}}}\r\n",
    ],
)
def test_all_forms_of_a_source_are_kept_as_files(code: str) -> None:
    source = sources.from_explorer({"SourceCode": code, "ContractName": "A"})
    assert source is not None
    assert source["files"] == FILES


def test_a_source_that_only_looks_like_a_bundle_is_one_file() -> None:
    for code in ("{ broken", "{{ broken }}", "contract C {}"):
        source = sources.from_explorer({"SourceCode": code, "ContractName": "C"})
        assert source is not None
        assert source["files"] == [{"path": "C.sol", "content": code}]
    nothings: list[Any] = ["", "  ", None, 7, {}, [], "{}"]
    for nothing in nothings:
        assert sources.from_explorer({"SourceCode": nothing}) is None


def test_files_that_are_too_large_are_named_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_CHARS", 20)
    source = sources.pasted({"big": {"content": "x" * 21}, "small": {"content": "x"}}, "C")
    assert source is not None
    assert (source["files"], source["omitted"]) == ([{"path": "small", "content": "x"}], ["big"])


async def test_contracts_without_an_abi_are_registered_and_refreshed_through_the_explorer(
    sqlite_database: Database,
) -> None:
    async with block_explorer(telling()) as server:
        world = World(sqlite_database, explorer_url=server.url)
        async with world.client:
            owner = await world.owner()
            place = address()
            community = await world.community(owner, contracts=[{"address": place}])
            [contract] = await world.rows("SELECT * FROM service_contract")
            assert (contract["name"], json.loads(contract["abi_json"])) == ("Counter", ABI)
            assert "apikey" not in server.asked[0]
            update = {"communityId": community["id"], "contractId": contract["id"], "action": "UPDATE_CONTRACT"}
            _, answer = await world.post("/api/contracts/update", update | {"checkOnly": True}, owner)
            assert answer["canUpdate"] is False
            server.answering = telling("contract Newer {}")
            _, answer = await world.post("/api/contracts/update", update, owner)
            assert (answer["updated"], answer["changedContractCount"]) == (True, 1)
            [thread] = await world.rows("SELECT body FROM thread")
            assert "contract Newer {}" in thread["body"]
            given = len(server.asked)
            await world.community(owner)
            assert len(server.asked) == given
