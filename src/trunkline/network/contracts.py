"""Contracts and the communities that form around them.

The first contracts of a service make a community. Later ones that are registered together with a known one join it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.base.asgi_answers import Refused
from trunkline.base.values import Value
from trunkline.network import abi as abis
from trunkline.network import audit, communities, sources, system_thread
from trunkline.network.explorer import VerifiedContract
from trunkline.network.github_draft import repository_path
from trunkline.network.ids import new_id
from trunkline.network.network import SEPOLIA
from trunkline.network.texts import Limits, iso, limited, text
from trunkline.network.wallets import address as wallet_address
from trunkline.store.database import Row, Transaction

#: Contracts in one request, and in one community. A service of more parts is split into several communities.
MAX_CONTRACTS = 50
#: Characters of the service's name that go into a slug. The rest tells readers nothing more.
MAX_SLUG_NAME = 80
#: Characters of the first contract's address, `0x` included.
_ADDRESS_CHARS = 6

_OTHER = re.compile(r"[^a-z0-9]+")


class ContractRequest(Value):
    """A contract that somebody wants to register. Without an ABI, the explorer is asked."""

    address: str
    name: str
    abi: abis.Abi | None = None
    source: sources.Source | None = None


class ServiceRequest(Value):
    """What somebody wants to register: a service with its contracts."""

    name: str
    description: str
    github_repository_url: str
    contracts: Sequence[ContractRequest]


def service(body: Mapping[str, Any], limits: Limits) -> ServiceRequest:
    """What a request wants to register.

    Raises:
        Refused: 400, something is missing, too long or wrong.
    """
    name, chain = text(body.get("serviceName")) or text(body.get("name")), text(body.get("chain"))
    description, repository = text(body.get("description")), text(body.get("githubRepositoryUrl"))
    if not name or not chain:
        raise Refused(400, "serviceName and chain are required")
    limited("name", name, limits["community"]["name"])
    limited("description", description, limits["community"]["description"])
    limited("chain", chain, limits["serviceContract"]["chain"])
    entries = _entries(body)
    contracts = {found.address: found for found in (wanted(entry, limits) for entry in entries)}
    if chain != SEPOLIA:
        raise Refused(400, "Only Sepolia is supported for now")
    return ServiceRequest(name, description, repository_url(repository, limits), list(contracts.values()))


def wanted(entry: Any, limits: Limits) -> ContractRequest:
    """One contract of a request.

    Raises:
        Refused: 400, its address, its name or its ABI is wrong.
    """
    if not isinstance(entry, Mapping):
        raise Refused(400, "contracts must be an array of objects")
    name, address = text(entry.get("name")), text(entry.get("address"))
    limited("name", name, limits["serviceContract"]["name"])
    limited("address", address, limits["serviceContract"]["address"])
    found = wallet_address(address)
    if found is None:
        raise Refused(400, "Invalid contract address" if address else "Contract address is required")
    abi = abis.checked(entry["abi"]) if entry.get("abi") is not None else None
    return ContractRequest(found, name, abi, sources.pasted(entry.get("source"), name or "Contract"))


def repository_url(url: str, limits: Limits) -> str:
    """The address of a GitHub repository in its one form, or nothing.

    Raises:
        Refused: 400, it is something else.
    """
    limited("githubRepositoryUrl", url, limits["community"]["githubRepositoryUrl"])
    if not url:
        return ""
    path = repository_path(url)
    if path is None:
        raise Refused(400, "Invalid GitHub repository URL.")
    return f"https://github.com/{path}"


def missing(tx: Transaction, wallet: str, service: ServiceRequest) -> list[ContractRequest]:
    """Those contracts that are not registered yet, if this wallet may register them.

    Raises:
        Refused: 400 if the known ones are of several communities, 403 if the wallet may not, 409 if all are known.
    """
    community, new = _standing(tx, wallet, service)
    if community is None and communities.open_owned(tx, wallet) >= communities.MAX_OWNED:
        raise Refused(403, f"A wallet can own at most {communities.MAX_OWNED} communities")
    if not new:
        raise Refused(409, "All contracts are already registered")
    return new


def register(
    tx: Transaction, now: int, wallet: str, service: ServiceRequest, found: Mapping[str, VerifiedContract]
) -> dict[str, Any]:
    """Register the contracts that are not known yet. `found` has what the explorer says about those without an ABI.

    Raises:
        Refused: as `missing` does, since the world may have changed.
    """
    communities.one_at_a_time(tx, f"register:{wallet}")
    new = missing(tx, wallet, service)
    community, _ = _standing(tx, wallet, service)
    created = community is None
    row = _new_community(tx, now, wallet, service, new[0]) if community is None else community
    for number, contract in enumerate(new, 1):
        default = service.name if len(new) == 1 else f"{service.name} {number}"
        insert(tx, now, wallet, row["id"], contract, found.get(contract.address), default)
    change = None if created else "\n".join(f"- Added `{contract.address}`" for contract in new)
    written = system_thread.write(tx, now, row, change)
    contracts = system_thread.contracts(tx, row["id"])
    added = {contract.address for contract in new}
    return {
        "contracts": [shown(contract) for contract in contracts if contract["address"] in added],
        "community": communities.shown(communities.community(tx, row["id"])),
        "contractCount": len(contracts),
        "systemThreadsCreated": int(written.created),
        "systemThreadId": written.thread_id,
    }


def insert(
    tx: Transaction,
    now: int,
    wallet: str,
    community_id: str,
    wanted: ContractRequest,
    found: VerifiedContract | None,
    default_name: str,
) -> str:
    """Write a contract of a community, and return its id.

    Raises:
        Refused: 400, nobody gave its ABI, or the community has too many.
    """
    if len(system_thread.contracts(tx, community_id)) >= MAX_CONTRACTS:
        raise Refused(400, f"A community can have at most {MAX_CONTRACTS} contracts")
    abi = wanted.abi if wanted.abi is not None else found.abi if found else None
    if abi is None:
        raise Refused(400, "Paste the contract's ABI as `abi`")
    source = wanted.source or (found.source if found else None)
    name = wanted.name or (found.name if found else None) or default_name
    id = new_id()
    tx.execute(
        "INSERT INTO service_contract (id, community_id, name, address, chain, abi_json, source_json, faucet_function, "
        "created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (id, community_id, name, wanted.address, SEPOLIA, kept(abi), kept(source) if source else None,
         abis.faucet_function(abi), now),
    )  # fmt: skip
    detail = {"address": wanted.address, "name": name}
    audit.record(tx, now, "owner", wallet, "contract.add", community_id=community_id, subject=id, detail=detail)
    return id


def shown(row: Row) -> dict[str, Any]:
    """A contract in the words of the API, without its source."""
    return {
        "id": row["id"],
        "name": row["name"],
        "address": row["address"],
        "chain": row["chain"],
        "communityId": row["community_id"],
        "abi": jsontext.loads(row["abi_json"].encode()),
        "faucetFunction": row["faucet_function"],
        "createdAt": iso(row["created_at"]),
    }


def kept(value: Any) -> str:
    """A JSON value as the text that is kept."""
    return jsontext.dumps(value).decode()


def _entries(body: Mapping[str, Any]) -> list[Any]:
    entries = body.get("contracts")
    if not entries and body.get("address"):
        # An older form: one contract, its members beside those of the service.
        entries = [{"address": body["address"], "abi": body.get("abi"), "source": body.get("source")}]
    if not entries:
        raise Refused(400, "At least one contract is required")
    if not isinstance(entries, list):
        raise Refused(400, "contracts must be an array of objects")
    if len(entries) > MAX_CONTRACTS:
        raise Refused(400, f"A community can have at most {MAX_CONTRACTS} contracts")
    return entries


def _standing(tx: Transaction, wallet: str, service: ServiceRequest) -> tuple[Row | None, list[ContractRequest]]:
    """The community that some of the contracts are in already, and those that are in none."""
    places = {contract.address: _place(tx, contract.address) for contract in service.contracts}
    ids = {place for place in places.values() if place is not None}
    if len(ids) > 1:
        raise Refused(400, "The contracts belong to different communities")
    community = None
    for id in ids:
        community = communities.owned_community(tx, id, wallet)
        communities.open_community(tx, id)
    return community, [contract for contract in service.contracts if places[contract.address] is None]


def _place(tx: Transaction, address: str) -> str | None:
    row = tx.one("SELECT community_id FROM service_contract WHERE chain = ? AND address = ?", (SEPOLIA, address))
    return row["community_id"] if row else None


def _new_community(tx: Transaction, now: int, wallet: str, service: ServiceRequest, first: ContractRequest) -> Row:
    id = new_id()
    description = service.description or f"Agent community for {service.name} on {SEPOLIA}."
    tx.execute(
        "INSERT INTO community (id, slug, name, description, owner_wallet, github_repository_url, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (id, free_slug(tx, service.name, first.address), service.name, description, wallet,
         service.github_repository_url or None, now),
    )  # fmt: skip
    audit.record(
        tx, now, "owner", wallet, "community.create", community_id=id, subject=id, detail={"name": service.name}
    )
    return communities.community(tx, id)


def slugify(text: str) -> str:
    """A text in small letters, digits and hyphens: accents go, everything else becomes a hyphen."""
    plain = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return _OTHER.sub("-", plain.lower()).strip("-")


def free_slug(tx: Transaction, name: str, address: str) -> str:
    """A slug that no community has: the name, the beginning of an address, and a number if it must be."""
    base = slugify(f"{slugify(name)[:MAX_SLUG_NAME]}-{address[:_ADDRESS_CHARS]}")
    # `_` and `%` do not occur in slugs, so the pattern means what it says.
    taken = {row["slug"] for row in tx.all("SELECT slug FROM community WHERE slug LIKE ?", (f"{base}%",))}
    slug, number = base, 2
    while slug in taken:
        slug, number = f"{base}-{number}", number + 1
    return slug
