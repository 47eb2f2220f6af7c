"""The chain itself: blocks and accounts in memory, each transaction in a block of its own as soon as it comes.

Everything here is synchronous and belongs to one thread at a time. What is not allowed raises an `EvmError`, with the
code and the words that other nodes use. Nothing is kept when the process ends.

The library would lift Python's limit for recursion, so that contracts can call each other a thousand deep. That is not
let happen, for the sake of the rest of the process: contracts that do so are refused.
"""

from __future__ import annotations

import time
from typing import Any, cast

from trunkline.base import recursion
from trunkline.demo.chain import accounts, shapes
from trunkline.demo.chain.shapes import Mined

with recursion.kept():
    from eth import constants as evm
    from eth.abc import BlockHeaderAPI, ComputationAPI, SignedTransactionAPI, StateAPI
    from eth.chains.base import MiningChain
    from eth.db.atomic import AtomicDB
    from eth.exceptions import HeaderNotFound, PyEVMError, Revert
    from eth.vm.forks.shanghai import ShanghaiVM
    from eth.vm.spoof import SpoofTransaction
    from eth_account import Account
    from eth_utils.address import to_canonical_address, to_checksum_address
    from eth_utils.exceptions import ValidationError
    from rlp.exceptions import RLPException  # type: ignore[import-untyped]  # it has no annotations

#: Large enough for any contract; small enough that an endless one ends within seconds. All that is asked for at once,
#: in a batch, has as much together: one thread works for everybody.
BLOCK_GAS = 10_000_000

#: What a call that changes nothing may use: far more than reading takes, and about a second of an endless one.
CALL_GAS = 2_000_000

#: What goes to whoever makes the block, where nobody says otherwise.
TIP_WEI = 10**9

#: An estimate is at most so much more than what is needed.
ESTIMATE_GAS = 1000

#: Transactions that wait for an earlier one of their sender. Whoever sends more of them has made a mistake.
MOST_QUEUED = 256
MOST_QUEUED_GAS = 5 * BLOCK_GAS

SEPOLIA = 11155111

#: The code of nodes for limits of theirs.
LIMIT = -32005


class EvmError(Exception):
    """An answer that is an error, as nodes give it. `data`: what a contract said, in hexadecimal digits."""

    def __init__(self, code: int, message: str, data: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def _too_deep() -> EvmError:
    return EvmError(-32000, "the contracts call each other too deep for this chain")


def _spent() -> EvmError:
    asked = f"a batch of calls may use at most {BLOCK_GAS} gas in total"
    return EvmError(LIMIT, f"limit exceeded: {asked}; ask for less at once")


class Evm:
    """One chain. It begins with the accounts of `accounts`, and no contract."""

    def __init__(self, chain_id: int = SEPOLIA) -> None:
        rules: type[Any] = MiningChain.configure(
            "EmbeddedChain", vm_configuration=((evm.GENESIS_BLOCK_NUMBER, ShanghaiVM),), chain_id=chain_id
        )
        genesis = {"difficulty": 0, "gas_limit": BLOCK_GAS, "timestamp": int(time.time()) - 1, "extra_data": b""}
        owners = [Account.from_key(accounts.private_key(number)).address for number in range(accounts.ACCOUNTS)]
        rich = {"balance": accounts.FUNDS_WEI, "nonce": 0, "code": b"", "storage": {}}
        state = {to_canonical_address(owner): rich for owner in owners}
        self.chain_id = chain_id
        self._chain: Any = rules.from_genesis(AtomicDB(), genesis, state)
        self._mined: dict[bytes, Mined] = {}
        self._blocks: dict[int, bytes] = {}
        self._queued: dict[tuple[bytes, int], SignedTransactionAPI] = {}
        self._left = BLOCK_GAS

    def begin(self) -> None:
        """Something new is asked for: it has the gas of a block."""
        self._left = BLOCK_GAS

    @property
    def head(self) -> BlockHeaderAPI:
        """The header of the last block."""
        head: BlockHeaderAPI = self._chain.get_canonical_head()
        return head

    @property
    def next_base_fee(self) -> int:
        """What a unit of gas costs at least in the next block."""
        return int(self._chain.header.base_fee_per_gas)

    def header(self, number: int) -> BlockHeaderAPI | None:
        """The header of a block; None if there is none yet."""
        try:
            found: BlockHeaderAPI = self._chain.get_canonical_block_header_by_number(number)
        except HeaderNotFound:
            return None
        return found

    def header_by_hash(self, hash: bytes) -> BlockHeaderAPI | None:
        """The header of the block with that hash; None if there is none."""
        try:
            found: BlockHeaderAPI = self._chain.get_block_header_by_hash(hash)
        except (HeaderNotFound, ValidationError):
            return None
        return found

    def state(self, header: BlockHeaderAPI) -> StateAPI:
        """The accounts after a block."""
        found: StateAPI = self._chain.get_vm(header).state
        return found

    def mined(self, hash: bytes) -> Mined | None:
        """A transaction in a block."""
        return self._mined.get(hash)

    def mined_in(self, number: int) -> Mined | None:
        """The transaction of a block; the first block has none."""
        hash = self._blocks.get(number)
        return None if hash is None else self._mined[hash]

    def queued(self, hash: bytes) -> SignedTransactionAPI | None:
        """A transaction that waits for an earlier one of its sender."""
        return next((one for one in self._queued.values() if one.hash == hash), None)

    def call(self, message: dict[str, Any], header: BlockHeaderAPI) -> bytes:
        """What a call would return, on the state after a block."""
        bounded = message | {"gas": min(message["gas"] or CALL_GAS, CALL_GAS)}
        with self._chain.get_vm(header).in_costless_state() as state:
            computation = self._run(state, self._spoofed(state, bounded))
        _raise_failed(computation)
        return bytes(computation.output)

    def estimate(self, message: dict[str, Any], header: BlockHeaderAPI) -> int:
        """The gas that a transaction needs."""
        with self._chain.get_vm(header).in_costless_state() as state:
            spoofed = self._spoofed(state, message)
            tried = self._run(state, spoofed)
            _raise_failed(tried)
            # What it used, before anything is given back, is enough; unless it looks at what it has left.
            used = int(spoofed.gas - tried.get_gas_remaining())
            if not self._run(state, self._spoofed(state, message | {"gas": used})).is_error:
                return used
            return self._searched(state, message, used, int(spoofed.gas))

    def _searched(self, state: StateAPI, message: dict[str, Any], fails: int, works: int) -> int:
        """Gas that is enough, between what is not and what is, for a contract that looks at what it has left."""
        while works - fails > ESTIMATE_GAS:
            tried = (fails + works) // 2
            if self._run(state, self._spoofed(state, message | {"gas": tried})).is_error:
                fails = tried
            else:
                works = tried
        return works

    def send(self, raw: bytes) -> bytes:
        """Take a signed transaction and put it into a block, or into the queue if an earlier one is missing.

        Returns:
            Its hash.
        """
        transaction = self._decoded(raw)
        hash: bytes = transaction.hash
        if hash in self._mined or self.queued(hash) is not None:
            raise EvmError(-32000, "already known")
        expected = self.state(self.head).get_nonce(transaction.sender)
        if transaction.nonce < expected:
            raise EvmError(-32000, f"nonce too low: next nonce {expected}, tx nonce {transaction.nonce}")
        self._check(transaction)
        if transaction.gas > self._left:
            raise _spent()
        if transaction.nonce > expected:
            self._queue(transaction)
            return hash
        self._mine(transaction)
        while (waiting := self._queued.pop((transaction.sender, expected := expected + 1), None)) is not None:
            try:
                self._mine(waiting)
            except EvmError:
                # It cannot be paid any more. Like other nodes, we forget it.
                break
        return hash

    def deploy(self, bytecode: str) -> str:
        """Put a contract on the chain, and give its address."""
        self.begin()
        account: Any = Account.from_key(accounts.private_key(0))
        nonce = self.state(self.head).get_nonce(to_canonical_address(account.address))
        fields = {"type": 2, "chainId": self.chain_id, "nonce": nonce, "to": b"", "value": 0, "data": bytecode}
        price = {"maxFeePerGas": 2 * self.next_base_fee + TIP_WEI, "maxPriorityFeePerGas": TIP_WEI}
        signed = account.sign_transaction({**fields, **price, "gas": BLOCK_GAS // 2})
        mined = self._mined[self.send(bytes(signed.raw_transaction))]
        if not mined.status or mined.contract is None:
            raise EvmError(-32000, "the contract could not be deployed")
        address: str = to_checksum_address(mined.contract)
        return address

    def _decoded(self, raw: bytes) -> SignedTransactionAPI:
        try:
            transaction: Any = self._chain.get_vm().get_transaction_builder().decode(raw)
            transaction.validate()
            transaction.check_signature_validity()
        # The library answers bytes that are no transaction with whatever comes first.
        except (RLPException, PyEVMError, ValidationError, ValueError, TypeError, IndexError, AttributeError) as error:
            raise EvmError(-32000, f"invalid transaction: {type(error).__name__}") from None
        if transaction.chain_id is None:
            raise EvmError(-32000, "only replay-protected (EIP-155) transactions allowed over RPC")
        if transaction.chain_id != self.chain_id:
            raise EvmError(-32000, f"invalid chain id for signer: have {transaction.chain_id} want {self.chain_id}")
        found: SignedTransactionAPI = transaction
        return found

    def _check(self, transaction: SignedTransactionAPI) -> None:
        price = shapes.most_for_gas(transaction)
        cost = transaction.value + transaction.gas * price
        balance = self.state(self.head).get_balance(transaction.sender)
        if transaction.gas > BLOCK_GAS:
            raise EvmError(-32000, "exceeds block gas limit")
        if transaction.gas < transaction.intrinsic_gas:
            raise EvmError(-32000, "intrinsic gas too low")
        if balance < cost:
            text = f"insufficient funds for gas * price + value: balance {balance}, tx cost {cost}"
            raise EvmError(-32000, text)
        if price < self.next_base_fee:
            text = f"max fee per gas less than block base fee: maxFeePerGas: {price}, baseFee: {self.next_base_fee}"
            raise EvmError(-32000, text)

    def _queue(self, transaction: SignedTransactionAPI) -> None:
        place = (transaction.sender, transaction.nonce)
        if place in self._queued:
            raise EvmError(-32000, "replacement transaction underpriced")
        # When the missing one comes, all of them are run at once.
        waiting = sum(one.gas for one in self._queued.values())
        if len(self._queued) >= MOST_QUEUED or waiting + transaction.gas > MOST_QUEUED_GAS:
            raise EvmError(-32000, "txpool is full")
        self._queued[place] = transaction

    def _mine(self, transaction: SignedTransactionAPI) -> None:
        chain = self._chain
        chain.set_header_timestamp(max(self.head.timestamp + 1, int(time.time())))
        price = shapes.paid_for_gas(transaction, self.next_base_fee)
        before = chain.header
        try:
            _, receipt, computation = chain.apply_transaction(transaction)
        except ValidationError as error:
            chain.header = before
            raise EvmError(-32000, str(error)) from None
        except RecursionError:
            chain.header = before
            raise _too_deep() from None
        self._left -= int(transaction.gas - computation.get_gas_remaining())
        block = chain.mine_block()
        contract = None if transaction.to else bytes(computation.msg.storage_address)
        mined = Mined(transaction, receipt, block.header, price, not computation.is_error, contract)
        self._mined[transaction.hash] = mined
        self._blocks[block.header.block_number] = transaction.hash

    def _spoofed(self, state: StateAPI, message: dict[str, Any]) -> SignedTransactionAPI:
        if self._left <= 0:
            raise _spent()
        sender = message["from"]
        unsigned = self._chain.create_unsigned_transaction(
            nonce=state.get_nonce(sender),
            gas_price=0,
            gas=min(message["gas"] or BLOCK_GAS, self._left),
            to=message["to"],
            value=message["value"],
            data=message["data"],
        )
        # It has all that is asked of a transaction, and forwards the rest.
        return cast(SignedTransactionAPI, SpoofTransaction(unsigned, from_=sender))

    def _run(self, state: StateAPI, message: SignedTransactionAPI) -> ComputationAPI:
        snapshot = state.snapshot()
        try:
            computation = state.costless_execute_transaction(message)
            self._left -= int(message.gas - computation.get_gas_remaining())
            if self._left <= 0 and computation.is_error:
                # With all that is left it did not come to an end.
                raise _spent() if message.gas < BLOCK_GAS else _failure(computation)
            return computation
        except ValidationError as error:
            text = str(error)
            funds = "insufficient funds for gas * price + value"
            raise EvmError(-32000, funds if "funds" in text or "balance" in text else text) from None
        except RecursionError:
            raise _too_deep() from None
        finally:
            state.revert(snapshot)


def _raise_failed(computation: ComputationAPI) -> None:
    if computation.is_error:
        raise _failure(computation)


def _failure(computation: ComputationAPI) -> EvmError:
    if isinstance(computation.error, Revert):
        output = bytes(computation.output)
        return EvmError(3, shapes.revert_text(output), f"0x{output.hex()}")
    return EvmError(-32000, f"{type(computation.error).__name__}: {computation.error}"[:200])
