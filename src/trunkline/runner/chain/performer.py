"""Carries out an agent's `tx`: what a runner uses.

    performer = TxPerformer(settings, home, redactor, agent_id="c...")
    for settled in await performer.settle():      # before a cycle: what became known since the last one
        ...
    outcome = await performer.perform(action, community)
    await performer.close()

- A `tx` is checked, tried, and held against the caps before anything is signed; a view is called and nothing more.
- Nothing here raises for what an agent, a contract or a node does: that is an outcome with an error's text. Secrets are
  masked in all of it.
- What was returned counts as received when the performer is used again, or closed. What a crash keeps from the agent is
  therefore told by a later `settle`, in the same process or another one.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from trunkline.base.redact import Redactor
from trunkline.core.faults import Fault, UnknownCall
from trunkline.runner.chain import caps, outcome, reverts, simulation
from trunkline.runner.chain.abi import Refusal
from trunkline.runner.chain.jsonrpc import Refused, RpcFault
from trunkline.runner.chain.ledger import OPEN, Ledger, Row
from trunkline.runner.chain.outcome import Settled, TxResult
from trunkline.runner.chain.planning import Plan, plan
from trunkline.runner.chain.rpc import Rpc
from trunkline.runner.chain.sending import Sender
from trunkline.runner.chain.settings import TxSettings
from trunkline.runner.chain.wallet import Wallet

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

#: A person who did not decide within this time did not see it, and the agent's reasons are old.
APPROVAL_MS = 3 * caps.DAY_MS

#: How many open transactions are looked up in one `settle`.
MOST_LOOKS = 50

#: What an agent is told whose arguments hold what it must not know.
NOT_FOR_OTHERS = "Not sent: the action holds a value that is a secret of this runner."

#: What an agent is told of a transaction's state, where there is no receipt.
_WORDS = {
    "unknown": "It was sent, and no answer came: whether it will be in a block is not known yet. Do not repeat it;"
    " you will be told.",
    "pending": "It was sent, and is not in a block yet. Do not repeat it; you will be told.",
    "rejected": "Not sent: a person rejected it.",
    "expired": "Not sent: nobody approved it in time.",
    "replaced": "It was not carried out: another transaction of this wallet has its nonce.",
    "abandoned": "It was never seen in a block, and is not looked for any more.",
}
_ASKED = "Not sent yet: it waits for a person's approval, since it may cost up to {total} wei. You will be told."


class Masks(Protocol):
    """Takes secrets out of data; `base.redact.Redactor` is one."""

    def data(self, data: Any) -> Any:
        """The data without them."""


class TxPerformer:
    """One agent's hand on one wallet. Any number of them, in any number of processes, may share the wallet.

    Args:
        home: the state directory; the wallet's ledger is under `wallets` there.
        redact: knows the runner's other secrets.
        agent_id: whose transactions these are: what `settle` and `pending` give.
    """

    def __init__(self, settings: TxSettings, home: str, redact: Masks | None = None, *, agent_id: str = "") -> None:
        self._settings = settings
        self._home = home
        self._agent = agent_id
        self._redact = redact
        self._own = Redactor(settings.secrets())
        self._rpc = Rpc(settings.rpc_url, settings.timeout_seconds, self._own)
        self._opening = asyncio.Lock()
        self._opened: Wallet | None = None
        self._ledgers: dict[int, Ledger] = {}
        self._handed: list[tuple[int, int, str]] = []

    async def perform(self, action: Mapping[str, Any], community: Mapping[str, Any]) -> TxResult:
        """Do what an action with `"action": "tx"` asks for, in a community of the agent's context."""
        self._received()
        # What is sent is public for ever.
        if self._clean(action) is not action:
            return outcome.refused(NOT_FOR_OTHERS)
        try:
            planned = await asyncio.to_thread(plan, action, community, self._settings)
            wallet = await self._wallet()
            await simulation.check_chain(self._rpc, planned.chain_id)
            if planned.function.is_view:
                return self._clean(outcome.called(planned, await simulation.view(self._rpc, planned, wallet.address)))
            return self._clean(await self._transact(planned, wallet))
        except Refused as error:
            return self._clean(outcome.refused(reverts.why(error, ())))
        except (Refusal, RpcFault, Fault) as error:
            return self._clean(outcome.refused(str(error)))

    async def settle(self) -> list[Settled]:
        """What became known since: ends of transactions that were open, and what became of approved ones, which are
        sent here."""
        self._received()
        told = []
        for chain_id in await self._chains():
            wallet = await self._wallet()
            ledger = self._ledger(wallet, chain_id)
            try:
                await self._bring_up_to_date(wallet, ledger, chain_id)
            except (Refusal, RpcFault, Fault) as error:
                logger.warning("open transactions could not be looked up: %s", self._clean(str(error)))
            for row in await asyncio.to_thread(ledger.untold, self._agent):
                result = self._clean(self._told(row, chain_id))
                told.append(Settled(f"{chain_id}-{row.id}", self._clean(row.plan.action), result))
        return told

    def pending(self) -> list[dict[str, Any]]:
        """What waits for a person, oldest first: `id`, `action`, `to`, `function`, `value`, `createdAt` (ms)."""
        found = []
        for chain_id, ledger in self._open_ledgers():
            for row in ledger.rows(self._agent, "awaiting"):
                what = {"to": row.plan.to, "function": row.plan.function.signature, "value": str(row.plan.value)}
                entry = {"id": f"{chain_id}-{row.id}", "action": row.plan.action, **what, "createdAt": row.created}
                found.append(self._clean(entry))
        return found

    def decide(self, id: str, approve: bool) -> None:
        """A person's decision about one that is `pending`. An approved one is sent by the next `settle`.

        Raises:
            UnknownCall: nothing of that id waits.
        """
        for chain_id, ledger in self._open_ledgers():
            for row in ledger.rows(self._agent, "awaiting"):
                if id == f"{chain_id}-{row.id}" and ledger.decide(row.id, approve):
                    return
        raise UnknownCall(f"No transaction `{id[:40]}` waits for approval.")

    async def close(self) -> None:
        """Let go of the node and of the ledgers. May be called again."""
        self._received()
        await self._rpc.close()
        while self._ledgers:
            self._ledgers.popitem()[1].close()

    async def _transact(self, planned: Plan, wallet: Wallet) -> TxResult:
        quote = await simulation.simulate(self._rpc, planned, wallet.address, self._settings.caps)
        caps.check_one(self._settings.caps, planned.value, quote.fee)
        if self._settings.dry_run:
            return outcome.tried(planned, quote.shown())
        ledger = await asyncio.to_thread(self._ledger, wallet, planned.chain_id)
        limit, total = self._settings.approval_above, planned.value + quote.fee
        if limit is not None and total > limit:
            asked = await asyncio.to_thread(ledger.ask, self._agent, planned, quote.fee)
            return outcome.waits(planned, f"{planned.chain_id}-{asked}", _ASKED.format(total=total))
        sender = Sender(self._rpc, wallet, ledger, self._settings)
        sent = await sender.send(self._agent, planned, quote)
        return self._told(await sender.follow(sent), planned.chain_id)

    async def _bring_up_to_date(self, wallet: Wallet, ledger: Ledger, chain_id: int) -> None:
        await asyncio.to_thread(ledger.expire, ledger.clock() - APPROVAL_MS)
        rows = await asyncio.to_thread(ledger.rows, self._agent, *OPEN, "approved", limit=MOST_LOOKS)
        if not rows:
            return
        await simulation.check_chain(self._rpc, chain_id)
        sender = Sender(self._rpc, wallet, ledger, self._settings)
        for row in rows:
            if row.state == "approved":
                await self._send_approved(sender, wallet, ledger, row)
            else:
                await sender.look(row)

    async def _send_approved(self, sender: Sender, wallet: Wallet, ledger: Ledger, row: Row) -> None:
        """It is tried again before: the world may have changed while a person thought about it."""
        try:
            quote = await simulation.simulate(self._rpc, row.plan, wallet.address, self._settings.caps)
            caps.check_one(self._settings.caps, row.plan.value, quote.fee)
            await sender.follow(await sender.send(self._agent, row.plan, quote, row.id))
        except Refusal as error:
            await asyncio.to_thread(ledger.move, row.id, ("approved",), "refused", str(error))

    def _told(self, row: Row, chain_id: int) -> TxResult:
        """What is to be said about a row; it counts as received at the next call."""
        self._handed.append((chain_id, row.id, row.state))
        hash = row.hash or ""
        if row.receipt is not None and row.state == "mined":
            return outcome.mined(row.plan, hash, row.receipt)
        if row.receipt is not None and row.state == "reverted":
            return outcome.reverted(row.plan, hash, row.receipt, row.problem)
        text = _WORDS.get(row.state) or row.problem
        if row.state in ("refused", "rejected", "expired"):
            return outcome.refused(text)
        return outcome.open_(row.plan, hash, row.state, text)

    def _received(self) -> None:
        handed, self._handed = self._handed, []
        for chain_id, ledger in self._ledgers.items():
            rows = [(row, state) for chain, row, state in handed if chain == chain_id]
            if rows:
                ledger.tell(rows)

    async def _wallet(self) -> Wallet:
        async with self._opening:
            if self._opened is None:
                self._opened = await asyncio.to_thread(Wallet, self._settings.private_key)
            return self._opened

    async def _chains(self) -> list[int]:
        """The chains that there is a ledger for. Without any, nothing is imported."""
        has_any = bool(self._settings.private_key) and await asyncio.to_thread(os.path.isdir, self._folder)
        return self._kept_chains(await self._wallet()) if has_any else []

    def _open_ledgers(self) -> list[tuple[int, Ledger]]:
        if not self._settings.private_key:
            return []
        wallet = self._opened = self._opened or Wallet(self._settings.private_key)
        return [(chain_id, self._ledger(wallet, chain_id)) for chain_id in self._kept_chains(wallet)]

    def _kept_chains(self, wallet: Wallet) -> list[int]:
        chains = dict.fromkeys(self._settings.chains.values())
        return [chain_id for chain_id in chains if os.path.exists(self._path(wallet, chain_id))]

    def _ledger(self, wallet: Wallet, chain_id: int) -> Ledger:
        if chain_id not in self._ledgers:
            self._ledgers[chain_id] = Ledger(self._path(wallet, chain_id))
        return self._ledgers[chain_id]

    @property
    def _folder(self) -> str:
        return os.path.join(self._home, "wallets")

    def _path(self, wallet: Wallet, chain_id: int) -> str:
        return os.path.join(self._folder, f"{chain_id}-{wallet.address.lower()}.db")

    def _clean(self, data: _T) -> _T:
        masked: _T = self._own.data(data if self._redact is None else self._redact.data(data))
        return masked
