"""Signing a transaction, sending it once, and finding out what became of it.

- The signed bytes are on the disk before they are sent. They are sent once. Where the answer is lost, the chain is
  asked for their hash; they are not sent again, and nothing is signed in their place.
- A nonce is used again only if no node has the transaction that held it. Then at most one of the two can ever be in a
  block: the chain sees to that.
- A transaction gets another nonce only if it was seen that somebody else's is in a block with the one it had. That a
  node says so, or has never heard of the transaction, is not enough: nodes lag behind each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from trunkline.runner.chain import caps, receipts, reverts, simulation
from trunkline.runner.chain.abi import Refusal
from trunkline.runner.chain.jsonrpc import ChainError, RpcFault, RpcRefused, Unanswered, quantity
from trunkline.runner.chain.ledger import OPEN, Ledger, TransactionRow
from trunkline.runner.chain.outcome import Receipt
from trunkline.runner.chain.planning import CallPlan
from trunkline.runner.chain.rpc import Rpc
from trunkline.runner.chain.settings import TxSettings
from trunkline.runner.chain.simulation import Quote
from trunkline.runner.chain.wallet import Signed, SpendingWallet
from trunkline.runner.holding import Check, unshared

#: How often a nonce may turn out to be somebody else's: another program with the same key is sending, too.
NONCE_ATTEMPTS = 8

#: How many of our own transactions are looked up before a nonce is taken; more than wait at once.
MOST_CLAIMS = 64

#: When to look for a transaction whose answer was lost: at once, and soon after. What turns up later is settled later.
LOOKS_SECONDS = (0.0, 0.2, 0.5, 1.0)

#: What a row may take beyond the limit of its exchange: a thread that has to wait.
SLACK_SECONDS = 5.0

#: Nodes behind one address do not know everything at the same moment: only after this long is a transaction that none
#: of them has, and whose nonce is used, taken for replaced.
REPLACED_MS = 60_000

#: Nobody keeps a waiting transaction for longer.
ABANDONED_MS = 7 * caps.DAY_MS

#: What nodes say of a transaction that they have.
_HAVE = ("already known", "already imported", "known transaction", "alreadyknown")
#: And of a nonce that somebody else used or uses.
_NONCE = ("nonce too low", "nonce is too low", "nonce has already been used", "replacement transaction", "oldnonce")

NOT_SENT = "Not sent: "
OTHERS_ARE_FASTER = f"{NOT_SENT}another program uses this wallet's nonces as fast as we do. Try again later."


class Sender:
    """Sends for one wallet on one chain. Several may share a ledger."""

    def __init__(
        self,
        rpc: Rpc,
        wallet: SpendingWallet,
        ledger: Ledger,
        settings: TxSettings,
        watch: Callable[[TransactionRow], None] | None = None,
        check: Check = unshared,
    ) -> None:
        """`watch` gets each row just before it is sent, and whenever its state changes; `check` is awaited before."""
        self._watch = watch or (lambda row: None)
        self._check = check
        self._rpc = rpc
        self._wallet = wallet
        self._ledger = ledger
        self._settings = settings

    async def send(self, agent: str, plan: CallPlan, quote: Quote, row: TransactionRow | None = None) -> TransactionRow:
        """Sign it and send it.

        Args:
            row: the one that was approved; None: a new one.

        Returns:
            The row: `pending` if a node has it, `refused` if no node took it, else `unknown`.

        Raises:
            Refusal: nothing was signed: too much was spent, or somebody else takes care of the approved one.
            RpcFault: nothing was signed: the node could not be asked.
            LeaseLost: nothing was sent: others act for the agent now.
        """
        sending, raw = await self._signed(agent, plan, quote, row)
        for _ in range(NONCE_ATTEMPTS):
            sending = await self._sent(sending, raw, plan)
            if sending.state != "signed":
                return sending
            try:
                sending, raw = await self._signed(agent, plan, quote, sending)
            except ChainError as error:
                return await self._moved(sending, "refused", _not_sent(error, plan))
        return await self._moved(sending, "refused", OTHERS_ARE_FASTER)

    async def follow(self, row: TransactionRow) -> TransactionRow:
        """Wait for the receipt of one that a node has, for as long as the settings say."""
        if row.hash is None or row.state != "pending":
            return row
        found = await receipts.awaited(self._rpc, row.hash, self._settings.receipt_seconds)
        return await self._finished(row, found) if found is not None else row

    async def look(self, row: TransactionRow) -> TransactionRow:
        """Find out where an open transaction stands.

        Raises:
            RpcFault: the node does not say.
        """
        if row.hash is None or row.nonce is None or await asyncio.to_thread(self._ledger.is_being_sent, row):
            return row
        # First the count: a transaction that gets into a block in between is then found by its receipt.
        used = quantity(await self._rpc.call("eth_getTransactionCount", self._wallet.address, "latest"), "count")
        if (found := await receipts.receipt(self._rpc, row.hash)) is not None:
            return await self._finished(row, found)
        if await receipts.is_known(self._rpc, row.hash):
            return await self._moved(row, "pending")
        age = self._ledger.clock() - row.reserved
        if await asyncio.to_thread(self._ledger.has_successor, row) or (used > row.nonce and age > REPLACED_MS):
            return await self._moved(row, "replaced")
        return await self._moved(row, "abandoned" if age > ABANDONED_MS else "unknown", row.problem)

    async def _finished(self, row: TransactionRow, receipt: Receipt) -> TransactionRow:
        reason = ""
        if not receipt.status:
            reason = await self._reason(row, receipt)
        price = receipt.gas_price
        fee = receipt.gas_used * price if price is not None else await asyncio.to_thread(self._ledger.fee, row.id)
        await asyncio.to_thread(self._ledger.finish, row.id, receipt, fee, reason)
        return await asyncio.to_thread(self._ledger.row, row.id)

    async def _reason(self, row: TransactionRow, receipt: Receipt) -> str:
        found = await simulation.replay(self._rpc, row.plan, self._wallet.address, receipt.block_number, row.gas)
        if found:
            return found
        out_of_gas = row.gas is not None and receipt.gas_used >= row.gas
        return f"{reverts.REVERTED}: it ran out of gas" if out_of_gas else f"{reverts.REVERTED} (no reason is known)"

    async def _floor(self) -> tuple[int, list[int]]:
        """The first nonce that the chain would take, and our rows from there on that no node has."""
        counted = await self._rpc.call("eth_getTransactionCount", self._wallet.address, "pending")
        floor = quantity(counted, "eth_getTransactionCount")
        claims = await asyncio.to_thread(self._ledger.claims, floor, MOST_CLAIMS)
        known = await asyncio.gather(*(receipts.is_known(self._rpc, row.hash or "") for row in claims))
        return floor, [row.id for row, has in zip(claims, known, strict=True) if not has]

    async def _signed(
        self, agent: str, plan: CallPlan, quote: Quote, row: TransactionRow | None
    ) -> tuple[TransactionRow, bytes]:
        floor, free = await self._floor()
        reserved = await asyncio.to_thread(self._reserve, agent, plan, quote, row, floor, free)
        if reserved is None:
            raise Refusal(f"{NOT_SENT}another process takes care of it.")
        return reserved

    async def _sent(self, row: TransactionRow, raw: bytes, plan: CallPlan) -> TransactionRow:
        """Send it, once. It is `signed` as before if another transaction is in a block with its nonce."""
        await self._check()
        self._watch(row)
        try:
            await self._rpc.call("eth_sendRawTransaction", f"0x{raw.hex()}")
        except RpcRefused as error:
            return await self._doubted(row, error, plan)
        except Unanswered as error:
            if not error.sent:
                return await self._moved(row, "refused", _not_sent(error, plan))
            unknown = await self._moved(row, "unknown", str(error))
            return await self._moved(unknown, "pending") if await self._turns_up(row) else unknown
        return await self._moved(row, "pending")

    async def _doubted(self, row: TransactionRow, error: RpcRefused, plan: CallPlan) -> TransactionRow:
        """A node refused it. Whoever stands between us and the node may have sent it twice: then it is the second
        answer that we got."""
        try:
            if _says(error, _HAVE) or await receipts.is_known(self._rpc, row.hash or ""):
                return await self._moved(row, "pending")
            if not _says(error, _NONCE):
                return await self._moved(row, "refused", _not_sent(error, plan))
            holder = await receipts.holder(self._rpc, self._wallet.address, row.nonce or 0)
        except RpcFault as fault:
            return await self._moved(row, "unknown", str(fault))
        if holder is None:
            return await self._moved(row, "unknown", str(error))
        return await self._moved(row, "pending") if holder == row.hash else row

    def _reserve(
        self, agent: str, plan: CallPlan, quote: Quote, row: TransactionRow | None, floor: int, free: list[int]
    ) -> tuple[TransactionRow, bytes] | None:
        limits = self._settings.caps
        return self._ledger.reserve(
            agent,
            plan,
            (quote.gas, quote.fee),
            row=row,
            floor=floor,
            free=free,
            seconds=self._settings.timeout_seconds + SLACK_SECONDS,
            allow=lambda spent: caps.check_day(limits, spent, plan.value, quote.fee),
            sign=self._signer(plan, quote),
        )

    def _signer(self, plan: CallPlan, quote: Quote) -> Callable[[int], Signed]:
        def sign(nonce: int) -> Signed:
            fixed = {"chainId": plan.chain_id, "nonce": nonce, "to": plan.to, "value": plan.value, "data": plan.data}
            return self._wallet.sign(fixed | quote.fields())

        return sign

    async def _turns_up(self, row: TransactionRow) -> bool:
        """Whether the node has it, or gets it soon. A node that does not say has not."""
        for seconds in LOOKS_SECONDS:
            await asyncio.sleep(seconds)
            with suppress(RpcFault):
                if await receipts.is_known(self._rpc, row.hash or ""):
                    return True
        return False

    async def _moved(self, row: TransactionRow, to: str, problem: str = "") -> TransactionRow:
        if row.state != to:
            await asyncio.to_thread(self._ledger.move, row.id, OPEN, to, problem)
        moved = await asyncio.to_thread(self._ledger.row, row.id)
        self._watch(moved)
        return moved


def _not_sent(error: Exception, plan: CallPlan) -> str:
    why = reverts.why(error, plan.errors) if isinstance(error, RpcRefused) else str(error)
    return why if why.startswith(NOT_SENT) else f"{NOT_SENT}{why}"


def _says(error: RpcRefused, words: tuple[str, ...]) -> bool:
    said = str(error).lower()
    return any(word in said for word in words)
