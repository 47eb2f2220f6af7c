"""Registering and changing contracts, over the API."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from tests.support.owner_world import ABI, Person, World, address
from trunkline.network.contract_update import ACTIONS
from trunkline.network.system_thread import MAX_BODY

NO_EXPLORER = "No block explorer is configured. Paste the contract's ABI as `abi` instead."
REGISTER, UPDATE = "/api/contracts/register", "/api/contracts/update"


def wish(*contracts: dict[str, Any], **members: Any) -> dict[str, Any]:
    listed = list(contracts) or [{"name": "Counter", "address": address(), "abi": ABI}]
    return {"serviceName": "My dApp", "chain": "Sepolia", "contracts": listed, **members}


async def test_contracts_make_a_community_with_its_system_thread(world: World) -> None:
    owner = await world.owner()
    place = "0x" + "aB" * 20
    body = wish({"name": "Counter | one", "address": place, "abi": ABI}, githubRepositoryUrl="https://github.com/a/b")
    status, answer = await world.post(REGISTER, body, owner)
    assert status == 200
    community, [contract] = answer["community"], answer["contracts"]
    assert (community["slug"], community["status"], community["ownerWallet"]) == (
        "my-dapp-0xabab", "ACTIVE", owner.wallet,
    )  # fmt: skip
    assert community["description"] == "Agent community for My dApp on Sepolia."
    assert (contract["address"], contract["abi"], contract["faucetFunction"]) == (place.lower(), ABI, "Faucet")
    assert (answer["contractCount"], answer["systemThreadsCreated"]) == (1, 1)
    [thread] = await world.rows("SELECT * FROM thread")
    assert (thread["type"], thread["title"]) == ("SYSTEM", "Contract registry: My dApp")
    assert thread["body"].startswith("# Contract Registry Snapshot\n")
    assert "| 1 | Counter \\| one |" in thread["body"]
    assert '"name":"inc"' in thread["body"]
    assert "inc(uint256)" in thread["body"]
    [row] = await world.rows("SELECT last_system_hash FROM community")
    assert row["last_system_hash"] == hashlib.sha256(thread["body"].encode()).hexdigest()
    assert await world.actions(community["id"]) == ["community.create", "contract.add"]


async def test_the_signature_of_the_fixed_message_registers_too(world: World) -> None:
    owner = Person()
    status, answer = await world.post(REGISTER, wish(signature=owner.sign("24-7-playground")))
    assert (status, answer["community"]["ownerWallet"]) == (200, owner.wallet)


async def test_a_stale_session_does_not_make_a_good_signature_worse(world: World) -> None:
    owner = Person()
    owner.token = "0" * 48
    signature = owner.sign("24-7-playground")
    assert await world.post(REGISTER, wish(), owner) == (401, {"error": "Invalid session"})
    status, answer = await world.post(REGISTER, wish(signature=signature), owner)
    assert (status, answer["community"]["ownerWallet"]) == (200, owner.wallet)
    change = {"communityId": answer["community"]["id"], "action": "UPDATE_DESCRIPTION", "description": "new"}
    assert (await world.post(UPDATE, change | {"signature": signature}, owner))[1]["updated"] is True


async def test_an_entry_of_an_abi_that_nobody_could_call_is_refused_by_its_number(world: World) -> None:
    owner = await world.owner()
    inputs = "inputs must be an array of objects, each with a type"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "abi[1] must have a type"),
        ({"type": 1}, "abi[1] must have a type"),
        ({"type": "function", "inputs": []}, "abi[1]: a function must have a name"),
        ({"type": "event", "name": 7}, "abi[1]: an event must have a name"),
        ({"type": "function", "name": "f"}, f"abi[1]: {inputs}"),
        ({"type": "function", "name": "f", "inputs": "zz"}, f"abi[1]: {inputs}"),
        ({"type": "function", "name": "f", "inputs": [7]}, f"abi[1]: {inputs}"),
        ({"type": "constructor", "inputs": [{"type": None}]}, f"abi[1]: {inputs}"),
        ({"type": "error", "name": "e", "inputs": [{"type": "tuple", "components": 1}]}, f"abi[1]: {inputs}"),
        ({"type": "function", "name": "f", "inputs": [], "outputs": {}}, f"abi[1]: {inputs.replace('in', 'out', 1)}"),
    ]
    for entry, message in wrong:
        body = wish({"address": address(), "abi": [*ABI[:1], entry]})
        assert await world.post(REGISTER, body, owner) == (400, {"error": message})
    odd = [{"type": "fallback", "payable": True}, {"type": "receive"}, {"type": "event", "name": "E", "inputs": []}]
    assert (await world.post(REGISTER, wish({"address": address(), "abi": odd}), owner))[0] == 200


async def test_a_repository_has_one_form_and_no_password(world: World) -> None:
    owner = await world.owner()
    for url in (
        "https://user:secret@github.com/a/b", "https://github.com:8443/a/b", "ftp://github.com/a/b",
        "https://example.com/a/b", "https://github.com/a", "https://github.com/a/..", "https://github.com/a b/c",
        "https://github.com.evil.example/a/b", "https://[github.com/a/b", "javascript:alert(1)",
    ):  # fmt: skip
        refusal = (400, {"error": "Invalid GitHub repository URL."})
        assert await world.post(REGISTER, wish(githubRepositoryUrl=url), owner) == refusal, url
    community = await world.community(owner, githubRepositoryUrl="http://www.GitHub.com/a-b/c.d.git/")
    assert community["githubRepositoryUrl"] == "https://github.com/a-b/c.d"
    change = {"communityId": community["id"], "action": "UPDATE_DESCRIPTION"}
    await world.post(UPDATE, change | {"githubRepositoryUrl": "https://github.com/x/y/tree/main"}, owner)
    [row] = await world.rows("SELECT github_repository_url AS url FROM community")
    assert row["url"] == "https://github.com/x/y"


async def test_the_older_form_with_one_address_is_understood(world: World) -> None:
    owner = await world.owner()
    body = {
        "name": "Old",
        "chain": "Sepolia",
        "address": address(),
        "abi": '[{"type":"function","name":"f","inputs":[]}]',
    }
    status, answer = await world.post(REGISTER, body, owner)
    assert (status, answer["contracts"][0]["name"]) == (200, "Old")
    assert answer["contracts"][0]["abi"] == [{"type": "function", "name": "f", "inputs": []}]


async def test_the_fourth_community_of_a_wallet_is_refused_also_when_all_come_at_once(each_world: World) -> None:
    owner = await each_world.owner()
    answers = await asyncio.gather(*(each_world.post(REGISTER, wish(), owner) for _ in range(6)))
    assert sorted(status for status, _ in answers) == [200, 200, 200, 403, 403, 403]
    slugs = sorted(answer["community"]["slug"] for status, answer in answers if status == 200)
    assert len(set(slugs)) == 3
    fourth = (403, {"error": "A wallet can own at most 3 communities"})
    assert await each_world.post(REGISTER, wish(), owner) == fourth


async def test_slugs_that_are_taken_get_a_number(world: World) -> None:
    owner, tail = await world.owner(), "0" * 35
    slugs = [
        (await world.community(owner, "Café!", contracts=[{"address": f"0x1234{n}{tail}", "abi": ABI}]))["slug"]
        for n in range(3)
    ]
    assert slugs == ["cafe-0x1234", "cafe-0x1234-2", "cafe-0x1234-3"]


async def test_a_name_without_latin_letters_has_a_slug_too(world: World) -> None:
    community = await world.community(
        await world.owner(), "日本語 \U0001f600", contracts=[{"address": "0x" + "12" * 20, "abi": []}]
    )
    assert community["slug"] == "0x1212"


async def test_more_contracts_join_the_community_of_those_that_are_known(world: World) -> None:
    owner, other = await world.owner(), await world.owner()
    first, second = {"address": address(), "abi": ABI}, {"address": address(), "abi": ABI}
    community = await world.community(owner, contracts=[first])
    status, answer = await world.post(REGISTER, wish(first, second), owner)
    assert (status, answer["community"]["id"], answer["contractCount"]) == (200, community["id"], 2)
    assert [contract["address"] for contract in answer["contracts"]] == [second["address"]]
    assert answer["systemThreadsCreated"] == 0
    [comment] = await world.rows("SELECT body FROM comment")
    assert comment["body"] == f"## Contract Registry Change\n\n- Added `{second['address']}`"
    known = (409, {"error": "All contracts are already registered"})
    assert await world.post(REGISTER, wish(first, second), owner) == known
    third = {"address": address(), "abi": ABI}
    forbidden = (403, {"error": "Only the community owner can do this"})
    assert await world.post(REGISTER, wish(first, third), other) == forbidden
    await world.community(owner, contracts=[third])
    apart = (400, {"error": "The contracts belong to different communities"})
    assert await world.post(REGISTER, wish(first, third), owner) == apart


WRONG_REGISTRATIONS: Any = [
    ({"serviceName": ""}, "serviceName and chain are required"),
    ({"chain": ""}, "serviceName and chain are required"),
    ({"chain": "Mainnet"}, "Only Sepolia is supported for now"),
    ({"contracts": []}, "At least one contract is required"),
    ({"contracts": "0x1"}, "contracts must be an array of objects"),
    ({"contracts": ["0x1"]}, "contracts must be an array of objects"),
    ({"contracts": [{"address": "0x12", "abi": []}]}, "Invalid contract address"),
    ({"contracts": [{"abi": []}]}, "Contract address is required"),
    ({"contracts": [{"address": "0x" + "1" * 40, "abi": {}}]}, "abi must be an array"),
    ({"contracts": [{"address": "0x" + "1" * 40, "abi": [1]}]}, "abi must be an array of objects"),
    ({"contracts": [{"address": "0x" + "1" * 40, "abi": "[nonsense"}]}, "abi must be a JSON array"),
    ({"contracts": [{"address": "0x" + "1" * 40, "abi": [{}] * 2001}]}, "abi must have 2000 entries or fewer"),
    (
        {"contracts": [{"address": "0x" + "1" * 40, "abi": [{"name": "x" * 300_000}]}]},
        "abi must be 262144 characters or fewer",
    ),
    ({"contracts": [{"address": "0x" + "1" * 40, "abi": []}] * 51}, "A community can have at most 50 contracts"),
    ({"serviceName": "n" * 121}, "name must be 120 characters or fewer"),
    ({"description": "\U0001f600" * 6001}, "description must be 12000 characters or fewer"),
    ({"githubRepositoryUrl": "https://evil.example/a/b"}, "Invalid GitHub repository URL."),
    ({"signature": "0xdead"}, "Invalid signature"),
    ({"signature": ""}, "signature is required"),
    (
        {"contracts": [{"address": "0x" + "1" * 40}]},
        NO_EXPLORER,
    ),
]


async def test_a_registration_that_is_wrong_is_refused(world: World) -> None:
    good = wish(signature=Person().sign("24-7-playground"))
    for changes, error in WRONG_REGISTRATIONS:
        assert await world.post(REGISTER, good | changes) == (400, {"error": error}), error
    assert await world.rows("SELECT id FROM community") == []


async def test_hostile_texts_in_an_abi_and_a_source_are_inert(each_world: World) -> None:
    owner = await each_world.owner()
    abi = [{"type": "function", "name": "f\ud800\u0000|`", "inputs": [{"type": "```"}]}, {"type": "\0"}]
    contract = {"address": address(), "abi": abi, "source": "a ```` fence\u0000\ud800 contract C {}"}
    # Lone surrogates can only be sent as escapes.
    body = wish(contract)
    status, answer = await each_world.post(REGISTER, body, owner)
    assert (status, answer["contracts"][0]["abi"]) == (200, abi)
    [row] = await each_world.rows("SELECT id, body FROM thread")
    assert "`````solidity\na ```` fence" in row["body"]
    assert (await each_world.get(f"/api/threads/{row['id']}"))[0] == 200


async def test_a_system_thread_has_an_end_however_large_the_contracts_are(world: World) -> None:
    owner = await world.owner()
    large = {"big.sol": {"content": "x" * MAX_BODY}, "small.sol": {"content": "contract Small {}"}}
    await world.community(owner, contracts=[{"address": address(), "abi": ABI, "source": large}])
    [thread] = await world.rows("SELECT body FROM thread")
    assert len(thread["body"]) <= MAX_BODY
    assert "contract Small {}" in thread["body"]
    assert "### File big.sol\n\nNot shown here because of its size." in thread["body"]


async def updating(world: World) -> tuple[Person, dict[str, Any], dict[str, Any]]:
    """An owner with a community, and what an update of it begins with."""
    owner = await world.owner()
    community = await world.community(owner)
    [contract] = await world.rows("SELECT id FROM service_contract WHERE community_id = ?", community["id"])
    return owner, community, {"communityId": community["id"], "contractId": contract["id"]}


async def test_a_contract_is_renamed_moved_and_given_another_abi(each_world: World) -> None:
    owner, community, base = await updating(each_world)
    place, abi = address(), [{"type": "function", "name": "newer", "inputs": []}]
    body = base | {"action": "UPDATE_CONTRACT", "name": "Renamed", "address": place, "abi": abi}
    differences = {"nameChanged": True, "addressChanged": True, "abiChanged": True, "sourceChanged": False}
    planned = (200, {"canUpdate": True, "differences": differences})
    assert await each_world.post(UPDATE, body | {"checkOnly": True}, owner) == planned
    [row] = await each_world.rows("SELECT name FROM service_contract")
    assert row["name"] == "Counter"
    status, answer = await each_world.post(UPDATE, body, owner)
    assert status == 200
    assert {name: answer[name] for name in answer if name != "systemThreadId"} == {
        "updated": True, "action": "UPDATE_CONTRACT", "changedContractCount": 1, "contractCount": 1,
        "systemThreadCreated": False, "removedSystemThreadCount": 0,
    }  # fmt: skip
    [thread] = await each_world.rows("SELECT id, body, comment_count FROM thread")
    assert (thread["id"], thread["comment_count"]) == (answer["systemThreadId"], 1)
    assert place in thread["body"]
    assert "newer()" in thread["body"]
    again = await each_world.post(UPDATE, body, owner)
    assert again[1] == {"updated": False, "action": "UPDATE_CONTRACT", "changedContractCount": 0, "contractCount": 1}
    assert (await each_world.post(UPDATE, body | {"checkOnly": True}, owner))[1]["canUpdate"] is False
    found = await each_world.get(f"/api/communities/{community['slug']}/threads?q=newer")
    assert [entry["id"] for entry in found[1]["threads"]] == [thread["id"]]


async def test_a_contract_keeps_what_an_update_does_not_name(world: World) -> None:
    owner, _, base = await updating(world)
    status, answer = await world.post(UPDATE, base | {"action": "UPDATE_CONTRACT", "name": "Other"}, owner)
    assert (status, answer["updated"]) == (200, True)
    [row] = await world.rows("SELECT * FROM service_contract")
    assert (row["name"], row["faucet_function"]) == ("Other", "Faucet")


async def test_contracts_are_added_and_removed_but_not_the_last_one(world: World) -> None:
    owner, _, base = await updating(world)
    last = (400, {"error": "At least one contract is required"})
    assert await world.post(UPDATE, base | {"action": "REMOVE_CONTRACT"}, owner) == last
    added = base | {"action": "ADD_CONTRACT", "name": "Two", "address": address(), "abi": ABI}
    assert (await world.post(UPDATE, added | {"checkOnly": True}, owner))[1]["canUpdate"] is True
    assert (await world.post(UPDATE, added, owner))[1]["contractCount"] == 2
    known = (409, {"error": "Contract is already registered"})
    assert await world.post(UPDATE, added, owner) == known
    assert (await world.post(UPDATE, base | {"action": "REMOVE_CONTRACT"}, owner))[1]["contractCount"] == 1
    comments = await world.rows("SELECT body FROM comment ORDER BY created_at, id")
    assert ["Added" in comments[0]["body"], "Removed" in comments[1]["body"]] == [True, True]


async def test_a_description_and_a_repository_are_changed_and_taken_away(world: World) -> None:
    owner, community, base = await updating(world)
    body = base | {"action": "update_description", "description": "New words"}
    assert (await world.post(UPDATE, body, owner))[1]["updated"] is True
    assert (await world.post(UPDATE, body, owner))[1]["updated"] is False
    repository = base | {"action": "UPDATE_DESCRIPTION", "githubRepositoryUrl": "https://github.com/a/b"}
    assert (await world.post(UPDATE, repository, owner))[1]["updated"] is True
    [row] = await world.rows("SELECT description, github_repository_url FROM community")
    assert tuple(row.values()) == ("New words", "https://github.com/a/b")
    assert (await world.actions(community["id"])).count("community.update") == 2


WRONG_UPDATES: Any = [
    ({"communityId": ""}, 400, "communityId and signature are required"),
    ({"action": "EXPLODE"}, 400, f"action must be one of {', '.join(ACTIONS)}"),
    ({"contractId": ""}, 400, "contractId is required"),
    ({"contractId": "cunknown"}, 404, "Contract not found"),
    ({"communityId": "cunknown"}, 404, "Community not found"),
    ({"address": "0x1"}, 400, "Invalid contract address"),
    ({"action": "UPDATE_DESCRIPTION"}, 400, "description is required"),
    ({"address": "0x" + "7" * 40}, 400, NO_EXPLORER),
]  # fmt: skip


async def test_an_update_that_is_wrong_is_refused(world: World) -> None:
    owner, _, base = await updating(world)
    for changes, status, error in WRONG_UPDATES:
        body = base | {"action": "UPDATE_CONTRACT", "name": "x"} | changes
        assert await world.post(UPDATE, body, owner) == (status, {"error": error}), changes


async def test_only_the_owner_updates_and_only_while_the_community_is_open(world: World) -> None:
    owner, community, base = await updating(world)
    body = base | {"action": "UPDATE_CONTRACT", "name": "x"}
    stranger = body | {"signature": Person().sign("24-7-playground")}
    assert await world.post(UPDATE, stranger) == (403, {"error": "Only the community owner can do this"})
    await world.post(
        "/api/communities/close", {"communityId": community["id"], "confirmName": community["name"]}, owner
    )
    assert await world.post(UPDATE, body, owner) == (403, {"error": "Community is closed"})
