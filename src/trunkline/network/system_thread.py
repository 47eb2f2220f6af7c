"""The SYSTEM thread: the one thread of a community that the network itself writes, about the registered contracts.

Its body is a snapshot that is rewritten in place; every change is a comment under it.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.network import abi as abis
from trunkline.network.reindexing import reindex_own
from trunkline.network.sources import clean
from trunkline.network.threads import insert_comment, insert_thread
from trunkline.store.database import Row, Transaction

#: Characters of the body. What does not fit is named, with the way to read it.
MAX_BODY = 400_000

#: A heading, a text below it, and the language that the text is code of; None for plain words.
_Part = tuple[str, str, str | None]

_TICKS = re.compile("`+")
_ELSEWHERE = "Not shown here because of its size. Runners read it at `/api/agents/contracts/source?contractId={id}`."


class Written(Value):
    """What became of the SYSTEM thread."""

    thread_id: str
    created: bool
    removed: int
    """How many surplus ones went."""


def write(tx: Transaction, now: int, community: Row, change: str | None = None) -> Written:
    """Bring the SYSTEM thread up to date with the contracts, and say below it what changed."""
    title, body = f"Contract registry: {community['name']}", snapshot(community, contracts(tx, community["id"]))
    ids = [
        row["id"]
        for row in tx.all(
            "SELECT id FROM thread WHERE community_id = ? AND type = 'SYSTEM' ORDER BY created_at, id",
            (community["id"],),
        )
    ]
    if ids:
        thread_id = ids[0]
        tx.execute("UPDATE thread SET title = ?, body = ? WHERE id = ?", (title, body, thread_id))
        reindex_own(tx, thread_id, f"{title}\n{body}")
    else:
        thread = insert_thread(tx, now, community_id=community["id"], title=title, body=body, type="SYSTEM")
        thread_id = thread["id"]
    for surplus in ids[1:]:
        tx.execute("DELETE FROM thread WHERE id = ?", (surplus,))
    if change:
        text = f"## Contract Registry Change\n\n{clean(change)}"
        insert_comment(tx, now, thread_id=thread_id, community_id=community["id"], body=text)
    digest = hashlib.sha256(body.encode()).hexdigest()
    tx.execute("UPDATE community SET last_system_hash = ? WHERE id = ?", (digest, community["id"]))
    return Written(thread_id, not ids, len(ids[1:]))


def contracts(tx: Transaction, community_id: str) -> list[Row]:
    """The contracts of a community in the order in which they came."""
    return tx.all("SELECT * FROM service_contract WHERE community_id = ? ORDER BY created_at, id", (community_id,))


def snapshot(community: Row, rows: list[Row]) -> str:
    """The text about a community's contracts, in Markdown."""
    lines = [
        "# Contract Registry Snapshot",
        "",
        f"- Community: {inline(community['name'])}",
        f"- Description: {inline(community['description'] or '-')}",
        f"- Repository: {inline(community['github_repository_url'] or '-')}",
        f"- Contracts: {len(rows)}",
        "",
        "## Contract Index",
        "",
        "| # | Name | Address | Chain | Functions | Faucet |",
        "|---|---|---|---|---|---|",
    ]
    described = [(row, jsontext.loads(row["abi_json"].encode())) for row in rows]
    for number, (row, abi) in enumerate(described, 1):
        faucet = f"`{row['faucet_function']}`" if row["faucet_function"] else "-"
        lines.append(
            f"| {number} | {inline(row['name'])} | `{row['address']}` | {row['chain']} "
            f"| {len(abis.functions(abi))} | {faucet} |"
        )
    pieces = ["\n".join(lines)]
    left = MAX_BODY - len(pieces[0])
    for number, (row, abi) in enumerate(described, 1):
        for title, content, language in _parts(number, row, abi):
            piece = f"\n\n{title}\n\n{fenced(content, language) if language is not None else content}"
            if len(piece) > left:
                piece = f"\n\n{title}\n\n{_ELSEWHERE.format(id=row['id'])}"
            if len(piece) <= left:
                left -= len(piece)
                pieces.append(piece)
    return clean("".join(pieces))


def inline(text: str) -> str:
    """A text of somebody's on one line, and without a meaning in a table."""
    return " ".join(text.split()).replace("|", "\\|")


def _parts(number: int, row: Row, abi: abis.Abi) -> list[_Part]:
    source: dict[str, Any] = jsontext.loads(row["source_json"].encode()) if row["source_json"] else {}
    return [
        _heading(number, row, source),
        ("### Functions", "\n".join(abis.functions(abi)) or "none", ""),
        ("### ABI", jsontext.dumps(abi).decode(), "json"),
        *((f"### File {inline(file['path'])}", file["content"], "solidity") for file in source.get("files", ())),
    ]


def _heading(number: int, row: Row, source: dict[str, Any]) -> _Part:
    facts = {
        "Contract ID": f"`{row['id']}`",
        "Address": f"`{row['address']}`",
        "Chain": row["chain"],
        "Compiler": inline(source.get("compilerVersion") or "-"),
        "License": inline(source.get("licenseType") or "-"),
        "Libraries": inline(source.get("libraries") or "-"),
        "Source files": str(len(source.get("files", ()))) if source else "not available",
    }
    return f"## {number}. {inline(row['name'])}", "\n".join(f"- {name}: {value}" for name, value in facts.items()), None


def fenced(content: str, language: str = "") -> str:
    """A text as a block of code, whatever it holds: the fence is longer than any in it."""
    longest = max(map(len, _TICKS.findall(content)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{content}\n{fence}"
