"""Changes to a community's description and contracts, planned first and then made or only told.

Every change that is made rewrites the SYSTEM thread and leaves a comment there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from trunkline.base.asgi_answers import Refused
from trunkline.base.values import Value
from trunkline.network import abi as abis
from trunkline.network import audit, communities, contracts, system_thread
from trunkline.network.contracts import ContractRequest
from trunkline.network.explorer import VerifiedContract
from trunkline.network.network import SEPOLIA
from trunkline.network.texts import Limits, limited, text
from trunkline.store.database import Row, Transaction

Action = Literal["UPDATE_DESCRIPTION", "UPDATE_CONTRACT", "ADD_CONTRACT", "REMOVE_CONTRACT"]
ACTIONS: tuple[Action, ...] = ("UPDATE_DESCRIPTION", "UPDATE_CONTRACT", "ADD_CONTRACT", "REMOVE_CONTRACT")

_DIFFERENCES = ("nameChanged", "addressChanged", "abiChanged", "sourceChanged")


#: What the explorer knows, by address.
Verified = Mapping[str, VerifiedContract]


class ContractChange(Value):
    """What an owner wants changed."""

    action: Action
    contract_id: str = ""
    contract: ContractRequest = ContractRequest("", "")
    """The contract as it is to be; what is empty stays as it is."""
    description: str | None = None
    github_repository_url: str | None = None


class UpdatePlan(Value):
    """What a change comes to. Without `make` it comes to nothing."""

    make: Callable[[], None] | None
    note: str = ""
    contracts: int = 0
    differences: Mapping[str, bool] = dict.fromkeys(_DIFFERENCES, False)


def change(body: Mapping[str, Any], limits: Limits) -> ContractChange:
    """What a request wants changed.

    Raises:
        Refused: 400, something is missing, too long or wrong.
    """
    wanted = text(body.get("action")).upper()
    action = next((action for action in ACTIONS if action == wanted), None)
    if action is None:
        raise Refused(400, f"action must be one of {', '.join(ACTIONS)}")
    contract_id = text(body.get("contractId"))
    limited("contractId", contract_id, limits["ids"]["contractId"])
    if action == "UPDATE_DESCRIPTION":
        return _description(body, limits)
    if action == "ADD_CONTRACT":
        return ContractChange(action, contract=contracts.wanted(_contract(body), limits))
    if not contract_id:
        raise Refused(400, "contractId is required")
    if action == "REMOVE_CONTRACT":
        return ContractChange(action, contract_id)
    given = _contract(body)
    # What is not said stays: an address is filled in when the contract is known.
    placeholder = given.get("address") or "0x" + "0" * 40
    found = contracts.wanted({**given, "address": placeholder}, limits)
    return ContractChange(action, contract_id, found if given.get("address") else found.replace(address=""))


def to_look_up(tx: Transaction, wallet: str, community_id: str, change: ContractChange, explorer: bool) -> list[str]:
    """The addresses that the explorer must be asked about first, if there is one.

    Raises:
        Refused: 404, 403 if the wallet may not change this community.
    """
    _open_owned(tx, wallet, community_id)
    if change.action not in ("ADD_CONTRACT", "UPDATE_CONTRACT") or change.contract.abi is not None:
        return []
    if change.action == "ADD_CONTRACT":
        return [change.contract.address]
    row = _known(tx, community_id, change.contract_id)
    address = change.contract.address or row["address"]
    # The same contract under another name needs no explorer; with one, its ABI is brought up to date.
    return [address] if explorer or address != row["address"] else []


def apply(
    tx: Transaction,
    now: int,
    wallet: str,
    community_id: str,
    change: ContractChange,
    found: Mapping[str, VerifiedContract],
    *,
    check_only: bool,
) -> dict[str, Any]:
    """Make a change, or only tell what it would come to.

    Raises:
        Refused: 400, 403, 404 or 409, the change is not possible.
    """
    communities.one_at_a_time(tx, community_id)
    community = _open_owned(tx, wallet, community_id)
    plan = _PLANS[change.action](tx, now, wallet, community, change, found)
    if check_only:
        return {"canUpdate": plan.make is not None, "differences": dict(plan.differences)}
    if plan.make is None:
        return {
            "updated": False,
            "action": change.action,
            "changedContractCount": 0,
            "contractCount": len(system_thread.contracts(tx, community_id)),
        }
    plan.make()
    written = system_thread.write(tx, now, communities.community(tx, community_id), plan.note)
    return {
        "updated": True,
        "action": change.action,
        "changedContractCount": plan.contracts,
        "contractCount": len(system_thread.contracts(tx, community_id)),
        "systemThreadId": written.thread_id,
        "systemThreadCreated": written.created,
        "removedSystemThreadCount": written.removed,
    }


def _contract(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The contract of a request: a member of its own, or members beside the others."""
    nested = body.get("contract")
    if isinstance(nested, Mapping):
        return nested
    return {name: body.get(name) for name in ("name", "address", "abi", "source")}


def _description(body: Mapping[str, Any], limits: Limits) -> ContractChange:
    description = text(body["description"]) if "description" in body else None
    repository = text(body["githubRepositoryUrl"]) if "githubRepositoryUrl" in body else None
    if description is None and repository is None:
        raise Refused(400, "description is required")
    limited("description", description or "", limits["community"]["description"])
    if repository is not None:
        repository = contracts.repository_url(repository, limits)
    return ContractChange("UPDATE_DESCRIPTION", description=description, github_repository_url=repository)


def _open_owned(tx: Transaction, wallet: str, community_id: str) -> Row:
    community = communities.owned_community(tx, community_id, wallet)
    communities.open_community(tx, community_id)
    return community


def _known(tx: Transaction, community_id: str, contract_id: str) -> Row:
    row = tx.one("SELECT * FROM service_contract WHERE id = ? AND community_id = ?", (contract_id, community_id))
    if row is None:
        raise Refused(404, "Contract not found")
    return row


def _free(tx: Transaction, address: str) -> None:
    if tx.one("SELECT 1 AS found FROM service_contract WHERE chain = ? AND address = ?", (SEPOLIA, address)):
        raise Refused(409, "Contract is already registered")


def _plan_description(
    tx: Transaction, now: int, wallet: str, community: Row, change: ContractChange, found: Verified
) -> UpdatePlan:
    new = {
        "description": community["description"] if change.description is None else change.description or None,
        "github_repository_url": community["github_repository_url"]
        if change.github_repository_url is None
        else change.github_repository_url or None,
    }
    changed = [name for name, value in new.items() if value != community[name]]
    if not changed:
        return UpdatePlan(None)
    id = community["id"]

    def make() -> None:
        tx.execute("UPDATE community SET description = ?, github_repository_url = ? WHERE id = ?", (*new.values(), id))
        detail = {"changed": changed}
        audit.record(tx, now, "owner", wallet, "community.update", community_id=id, subject=id, detail=detail)

    return UpdatePlan(make, f"- Changed: {', '.join(changed)}")


def _plan_update(
    tx: Transaction, now: int, wallet: str, community: Row, change: ContractChange, found: Verified
) -> UpdatePlan:
    row = _known(tx, community["id"], change.contract_id)
    wanted = change.contract
    address = wanted.address or row["address"]
    if address != row["address"]:
        _free(tx, address)
    new = _updated(row, wanted.replace(address=address), found.get(address))
    columns = ("name", "address", "abi_json", "source_json")
    differences = {label: new[column] != row[column] for label, column in zip(_DIFFERENCES, columns, strict=True)}
    if not any(differences.values()):
        return UpdatePlan(None)

    def make() -> None:
        tx.execute(
            "UPDATE service_contract SET name = ?, address = ?, abi_json = ?, source_json = ?, faucet_function = ? "
            "WHERE id = ?",
            (*(new[column] for column in columns), new["faucet_function"], row["id"]),
        )
        audit.record(
            tx, now, "owner", wallet, "contract.update",
            community_id=community["id"], subject=row["id"], detail=differences,
        )  # fmt: skip

    what = ", ".join(label.removesuffix("Changed") for label, differs in differences.items() if differs)
    return UpdatePlan(make, f"- Updated `{row['address']}` ({what})", 1, differences)


def _updated(row: Row, wanted: ContractRequest, found: VerifiedContract | None) -> dict[str, Any]:
    """A contract's columns as they are to be."""
    same_contract = wanted.address == row["address"]
    abi = wanted.abi if wanted.abi is not None else found.abi if found else None
    source = wanted.source or (found.source if found else None)
    if abi is None and not same_contract:
        raise Refused(400, "Paste the contract's ABI as `abi`")
    kept_source = row["source_json"] if same_contract else None
    return {
        "name": wanted.name or row["name"],
        "address": wanted.address,
        "abi_json": row["abi_json"] if abi is None else contracts.kept(abi),
        "source_json": contracts.kept(source) if source else kept_source,
        "faucet_function": row["faucet_function"] if abi is None else abis.faucet_function(abi),
    }


def _plan_add(
    tx: Transaction, now: int, wallet: str, community: Row, change: ContractChange, found: Verified
) -> UpdatePlan:
    wanted = change.contract
    _free(tx, wanted.address)

    def make() -> None:
        contracts.insert(tx, now, wallet, community["id"], wanted, found.get(wanted.address), community["name"])

    return UpdatePlan(make, f"- Added `{wanted.address}`", 1)


def _plan_remove(
    tx: Transaction, now: int, wallet: str, community: Row, change: ContractChange, found: Verified
) -> UpdatePlan:
    row = _known(tx, community["id"], change.contract_id)
    if len(system_thread.contracts(tx, community["id"])) == 1:
        raise Refused(400, "At least one contract is required")

    def make() -> None:
        tx.execute("DELETE FROM service_contract WHERE id = ?", (row["id"],))
        detail = {"address": row["address"], "name": row["name"]}
        audit.record(
            tx, now, "owner", wallet, "contract.remove",
            community_id=community["id"], subject=row["id"], detail=detail,
        )  # fmt: skip

    return UpdatePlan(make, f"- Removed `{row['address']}` ({system_thread.inline(row['name'])})", 1)


_PLANS: Mapping[
    Action, Callable[[Transaction, int, str, Row, ContractChange, Mapping[str, VerifiedContract]], UpdatePlan]
] = {
    "UPDATE_DESCRIPTION": _plan_description,
    "UPDATE_CONTRACT": _plan_update,
    "ADD_CONTRACT": _plan_add,
    "REMOVE_CONTRACT": _plan_remove,
}
