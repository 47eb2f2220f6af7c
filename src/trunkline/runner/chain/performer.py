"""Carries out an agent's `tx`: what a runner uses.

    performer = TxPerformer(settings, FileBooks(home), redactor, agent_id="c...")
    for settled in await performer.settle():      # before a cycle: what became known since the last one
        ...                                       # keep it for the agent
    performer.received()
    outcome = await performer.perform(action, community)
    ...                                           # keep it for the agent
    performer.received()
    await performer.close()

- A `tx` is checked, tried, and held against the caps before anything is signed; a view is called and nothing more.
- Nothing here raises for what an agent, a contract or a node does: that is an outcome with an error's text. Secrets are
  masked in all of it. `LeaseLost` is raised where somebody else acts for the agent.
- What was returned is told again by a later `settle`, in the same process or another one, unless the caller said
  `received`. So neither a crash nor a full disk keeps it from the agent.
- While a transaction is on its way, `in_flight` says what is known of it; also after `perform` was cancelled.
- The event loop never waits for a ledger: that is what threads are for.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from trunkline.base.redact import Redactor
from trunkline.core.faults import ConfigError, Fault, UnknownCall
from trunkline.runner.chain import caps, outcome, reverts, simulation
from trunkline.runner.chain.abi import Refusal
from trunkline.runner.chain.book import Books
from trunkline.runner.chain.jsonrpc import ChainError, RpcRefused
from trunkline.runner.chain.ledger import OPEN, Ledger, TransactionRow
from trunkline.runner.chain.outcome import SettledTransaction, TxResult
from trunkline.runner.chain.planning import CallPlan, plan
from trunkline.runner.chain.rpc import Rpc
from trunkline.runner.chain.sending import Sender
from trunkline.runner.chain.settings import TxSettings
from trunkline.runner.chain.wallet import SpendingWallet
from trunkline.runner.holding import Check, LeaseLost, unshared

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
    "unknown": "It was sent, and whether it will be in a block is not known yet. Do not repeat it; you will be told.",
    "pending": "It was sent, and is not in a block yet. Do not repeat it; you will be told.",
    "rejected": "Not sent: a person rejected it.",
    "expired": "Not sent: it was not approved in time.",
    "replaced": "It was not carried out: another transaction of this wallet has its nonce.",
    "abandoned": "It was never seen in a block, and is no longer looked for.",
}
_ASKED = "Not sent yet: it waits for a person's approval, since it may cost up to {total} wei. You will be told."


class Masks(Protocol):
    """Takes secrets out of data; `base.redact.Redactor` is one."""

    def data(self, data: Any) -> Any:
        """The data without them."""


class TxPerformer:
    """One agent's hand on one wallet. Any number of them, in any number of processes, may share the wallet.

    Args:
        books: where the wallet's ledgers are.
        redact: knows the runner's other secrets.
        agent_id: whose transactions these are: what `settle` and `pending` give.
        check: awaited right before anything is sent.
    """

    def __init__(
        self,
        settings: TxSettings,
        books: Books,
        redact: Masks | None = None,
        *,
        agent_id: str = "",
        check: Check = unshared,
    ) -> None:
        self._settings = settings
        self._books = books
        self._check = check
        self._agent = agent_id
        self.sent = 0
        """How many transactions went out: nodes have them, or may have."""
        self._redact = redact
        self._own = Redactor(settings.secrets())
        self._rpc = Rpc(settings.rpc_url, settings.timeout_seconds, self._own)
        self._opening = asyncio.Lock()
        self._opened: SpendingWallet | None = None
        # Held by threads only: while the ledgers are opened or closed, or a person looks at them.
        self._shelf = threading.RLock()
        self._ledgers: dict[int, Ledger] = {}
        self._is_closed = False
        self._handed: list[tuple[Ledger, int, str]] = []
        self._noting: set[asyncio.Task[None]] = set()
        self._in_flight: TxResult | None = None

    @property
    def in_flight(self) -> TxResult | None:
        """What is to be reported of the last `perform` if it ends now: that of a transaction which is being sent, or
        whose receipt is awaited, with its hash. None: nothing was sent, or `perform` has returned.

        It stays there when `perform` is cancelled. What becomes of the transaction is told by a later `settle`.
        """
        return self._in_flight

    async def perform(self, action: Mapping[str, Any], community: Mapping[str, Any]) -> TxResult:
        """Do what an action with `"action": "tx"` asks for, in a community of the agent's context."""
        self._handed, self._in_flight = [], None
        done = await self._performed(action, community)
        self._in_flight = None
        return done

    async def settle(self) -> list[SettledTransaction]:
        """What became known since: ends of transactions that were open, and what became of approved ones, which are
        sent here. Oldest first; if it is much, the rest comes with the next call."""
        self._handed = []
        await self._noted()
        handed: list[tuple[Ledger, int, str]] = []
        told = []
        for chain_id in await self._chains():
            wallet = await self._wallet()
            ledger = await asyncio.to_thread(self._ledger, wallet, chain_id)
            try:
                await self._bring_up_to_date(wallet, ledger, chain_id)
            except LeaseLost:
                raise
            except (ChainError, Fault) as error:
                logger.warning("open transactions could not be looked up: %s", self._clean(str(error)))
            for row in await asyncio.to_thread(ledger.untold, self._agent):
                handed.append((ledger, row.id, row.state))
                told.append(
                    SettledTransaction(f"{chain_id}-{row.id}", self._clean(row.plan.action), self._clean(_said(row)))
                )
        self._handed = handed
        return told

    def received(self) -> None:
        """The caller has stored what the last `perform` or `settle` returned: it need not be told again.

        Does not wait: the ledger is written beside the event loop, on which this must be called.
        """
        handed, self._handed = self._handed, []
        if handed:
            noting = asyncio.create_task(asyncio.to_thread(self._note, handed))
            self._noting.add(noting)
            noting.add_done_callback(self._noting.discard)

    def pending(self) -> list[dict[str, Any]]:
        """What waits for a person, oldest first: `id`, `action`, `chainId`, `to`, `function`, `value`, `fee`, `data`
        (what the contract gets), `createdAt` (ms), and `shown`, which is all of that for people.

        May wait for other processes: use a thread. Nothing, once the performer is closed.
        """
        found = []
        with self._shelf:
            for chain_id, ledger in self._kept_ledgers():
                for row in ledger.rows(self._agent, "awaiting"):
                    entry = {"id": f"{chain_id}-{row.id}", "action": row.plan.action}
                    what = outcome.asked(row.plan, ledger.fee(row.id))
                    found.append(self._clean({**entry, **what, "createdAt": row.created}))
        return found

    def decide(self, id: str, approve: bool) -> None:
        """A person's decision about one that is `pending`. An approved one is sent by the next `settle`.

        May wait for other processes: use a thread.

        Raises:
            UnknownCall: nothing of that id waits.
        """
        with self._shelf:
            for chain_id, ledger in self._kept_ledgers():
                for row in ledger.rows(self._agent, "awaiting"):
                    if id == f"{chain_id}-{row.id}" and ledger.decide(row.id, approve):
                        return
        raise UnknownCall(f"No transaction `{id[:40]}` waits for approval.")

    async def close(self) -> None:
        """Let go of the node and of the ledgers. May be called again; nothing else may be called after it."""
        await self._noted()
        await self._rpc.close()
        await asyncio.to_thread(self._close_ledgers)

    async def _performed(self, action: Mapping[str, Any], community: Mapping[str, Any]) -> TxResult:
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
        except LeaseLost:
            # Who acts for the agent now finds out what became of it.
            raise
        except RpcRefused as error:
            return self._clean(outcome.refused(reverts.why(error, ())))
        except (ChainError, Fault) as error:
            # A ledger that fails after the transaction was sent does not make it unsent.
            return self._in_flight or self._clean(outcome.refused(str(error)))

    async def _transact(self, planned: CallPlan, wallet: SpendingWallet) -> TxResult:
        quote = await simulation.simulate(self._rpc, planned, wallet.address, self._settings.caps)
        caps.check_one(self._settings.caps, planned.value, quote.fee)
        if self._settings.dry_run:
            return outcome.tried(planned, quote.shown())
        ledger = await asyncio.to_thread(self._ledger, wallet, planned.chain_id)
        limit, total = self._settings.approval_above, planned.value + quote.fee
        if limit is not None and total > limit:
            asked = await asyncio.to_thread(ledger.ask, self._agent, planned, quote.fee)
            return outcome.waits(planned, f"{planned.chain_id}-{asked}", _ASKED.format(total=total))
        sender = Sender(self._rpc, wallet, ledger, self._settings, self._watch, self._check)
        row = await self._send(sender, planned, quote)
        self._handed.append((ledger, row.id, row.state))
        return _said(row)

    async def _send(
        self, sender: Sender, plan: CallPlan, quote: simulation.Quote, row: TransactionRow | None = None
    ) -> TransactionRow:
        sent = await sender.send(self._agent, plan, quote, row)
        self.sent += sent.state != "refused"
        return await sender.follow(sent)

    def _watch(self, row: TransactionRow) -> None:
        self._in_flight = self._clean(_said(row))

    async def _bring_up_to_date(self, wallet: SpendingWallet, ledger: Ledger, chain_id: int) -> None:
        await asyncio.to_thread(ledger.expire, ledger.clock() - APPROVAL_MS)
        rows = await asyncio.to_thread(ledger.rows, self._agent, *OPEN, "approved", limit=MOST_LOOKS)
        if not rows:
            return
        await simulation.check_chain(self._rpc, chain_id)
        sender = Sender(self._rpc, wallet, ledger, self._settings, check=self._check)
        for row in rows:
            if row.state == "approved":
                await self._send_approved(sender, wallet, ledger, row)
            else:
                await sender.look(row)

    async def _send_approved(self, sender: Sender, wallet: SpendingWallet, ledger: Ledger, row: TransactionRow) -> None:
        """It is tried again before: the world may have changed while a person thought about it. It costs no more than
        what they were shown."""
        try:
            quote = await simulation.simulate(self._rpc, row.plan, wallet.address, self._settings.caps)
            quote = quote.within(await asyncio.to_thread(ledger.fee, row.id))
            caps.check_one(self._settings.caps, row.plan.value, quote.fee)
            await self._send(sender, row.plan, quote, row)
        except Refusal as error:
            await asyncio.to_thread(ledger.move, row.id, ("approved",), "refused", str(error))

    def _note(self, handed: list[tuple[Ledger, int, str]]) -> None:
        for ledger in {ledger for ledger, _, _ in handed}:
            try:
                ledger.tell([(row, state) for kept_in, row, state in handed if kept_in is ledger])
            except Fault as error:
                logger.warning("transactions will be told again: %s", self._clean(str(error)))

    async def _noted(self) -> None:
        """Wait until all that was received is written down."""
        if self._noting:
            await asyncio.wait(self._noting)

    async def _wallet(self) -> SpendingWallet:
        async with self._opening:
            if self._opened is None:
                self._opened = await asyncio.to_thread(SpendingWallet, self._settings.private_key)
            return self._opened

    async def _chains(self) -> list[int]:
        """The chains that there is a ledger for. Without any, nothing is imported."""
        has_any = bool(self._settings.private_key) and await asyncio.to_thread(self._books.has_any)
        return await asyncio.to_thread(self._kept_chains, await self._wallet()) if has_any else []

    def _kept_ledgers(self) -> list[tuple[int, Ledger]]:
        if self._is_closed or not self._settings.private_key:
            return []
        wallet = self._opened = self._opened or SpendingWallet(self._settings.private_key)
        return [(chain_id, self._ledger(wallet, chain_id)) for chain_id in self._kept_chains(wallet)]

    def _kept_chains(self, wallet: SpendingWallet) -> list[int]:
        chains = dict.fromkeys(self._settings.chains.values())
        return [chain_id for chain_id in chains if self._books.has(chain_id, wallet.address)]

    def _ledger(self, wallet: SpendingWallet, chain_id: int) -> Ledger:
        with self._shelf:
            if self._is_closed:
                raise ConfigError("The performer is closed.")
            if chain_id not in self._ledgers:
                self._ledgers[chain_id] = Ledger(self._books.open(chain_id, wallet.address))
            return self._ledgers[chain_id]

    def _close_ledgers(self) -> None:
        with self._shelf:
            self._is_closed = True
            while self._ledgers:
                self._ledgers.popitem()[1].close()

    def _clean(self, data: _T) -> _T:
        masked: _T = self._own.data(data if self._redact is None else self._redact.data(data))
        return masked


def _said(row: TransactionRow) -> TxResult:
    """What is to be said about a transaction."""
    hash = row.hash or ""
    if row.receipt is not None and row.state == "mined":
        return outcome.mined(row.plan, hash, row.receipt)
    if row.receipt is not None and row.state == "reverted":
        return outcome.reverted(row.plan, hash, row.receipt, row.problem)
    # One that is being sent may have arrived.
    state = "unknown" if row.state == "signed" else row.state
    text = _WORDS.get(state) or row.problem
    if state in ("refused", "rejected", "expired"):
        return outcome.refused(text)
    return outcome.open_(row.plan, hash, state, text)
