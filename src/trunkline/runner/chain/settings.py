"""What the transactions of one runner may use and spend, read from the member `execution` of its configuration.

    {"rpcUrl": "https://...", "privateKey": "0x...", "dryRun": false, "receiptSec": 60,
     "chains": {"Sepolia": 11155111},
     "caps": {"valueWei": "...", "feeWei": "...", "gas": 2000000, "dayValueWei": "...", "dayFeeWei": "..."},
     "approval": {"aboveWei": "..."}}

Amounts are whole numbers, or decimal strings. The private key and whatever the node's address holds of a key are
secrets: `TxSettings.secrets` lists their spellings, and no `repr` or error shows them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from trunkline.base.redact import MASK
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.runner import slips

#: What an agent is told that asks for a transaction where none can be made.
MISSING = "Execution wallet or Alchemy key missing."

#: The chains that contracts may name. Others come from the configuration.
SEPOLIA = "Sepolia"
CHAINS = {SEPOLIA: 11155111}

#: Where a key of this provider belongs, for configurations that hold nothing but the key.
ALCHEMY = "https://eth-sepolia.g.alchemy.com/v2/"

#: Unless the configuration says otherwise: long enough for a slow node.
TIMEOUT_SECONDS = 60.0

#: Longer waits are a mistake in the configuration: a receipt that comes later is found by a later cycle.
MOST_SECONDS = 3600.0

#: Parts of an address that say which chain is meant. All else that is this long may be a key.
_PLAIN_PARTS = frozenset(
    {"arbitrum", "ethereum", "goerli", "holesky", "hoodi", "jsonrpc", "mainnet", "optimism", "polygon", "public",
     "sepolia", "testnet"}
)  # fmt: skip
_FEWEST_CHARS_OF_A_KEY = 6

_KEY = re.compile(r"(?:0[xX])?([0-9a-fA-F]{64})")
_AMOUNT = re.compile(r"[0-9]{1,78}")


class Caps(Value):
    """The most that may be spent, in wei, by one transaction and by all of any 24 hours; and gas for one.

    The defaults are far above what a test needs, and far below what would hurt somebody with a test network's money.
    """

    value: int = 10**16
    fee: int = 10**16
    gas: int = 2_000_000
    day_value: int = 5 * 10**16
    day_fee: int = 5 * 10**16


class TxSettings(Value):
    """Everything that a `TxPerformer` needs to know."""

    rpc_url: str
    private_key: str
    chains: Mapping[str, int] = CHAINS
    """Chain ids by the names that contracts give."""
    timeout_seconds: float = TIMEOUT_SECONDS
    """For one whole exchange with the node."""
    receipt_seconds: float = TIMEOUT_SECONDS
    """How long a transaction is awaited after it was sent."""
    caps: Caps = Caps()
    approval_above: int | None = None
    """Transactions that may cost more than this, value and fee together, wait for a person. None: none do."""
    dry_run: bool = False
    """Do everything but sign and send."""

    def __repr__(self) -> str:
        return f"TxSettings(rpc_url={MASK!r}, private_key={MASK!r}, chains={dict(self.chains)!r}, caps={self.caps!r})"

    def secrets(self) -> tuple[str, ...]:
        """Everything that must not show up anywhere, in its usual spellings."""
        key = self.private_key.strip()
        found = [key]
        if match := _KEY.fullmatch(key):
            digits = match[1]
            found += [digits, digits.lower(), digits.upper(), str(int(digits, 16))]
        return tuple(dict.fromkeys(secret for secret in (*found, *_keys_in(self.rpc_url)) if secret))


def tx_settings(execution: Any, *, timeout_seconds: float = TIMEOUT_SECONDS) -> TxSettings | None:
    """The settings in a configuration's `execution`; None if it names neither a wallet nor a node.

    Raises:
        ConfigError: a member cannot be meant. The text names it and does not show secrets.
    """
    if execution is None:
        return None
    members = _object(execution, "execution")
    slips.refuse({"execution": members})
    url, key = _text(members, "rpcUrl"), _text(members, "privateKey")
    if not url and (alchemy := _text(members, "alchemyApiKey")):
        url = ALCHEMY + alchemy
    if not url and not key:
        return None
    if url and not _is_address(url):
        raise ConfigError("`execution.rpcUrl` must be an address that begins with `http://` or `https://`.")
    if key and not _KEY.fullmatch(key):
        raise ConfigError("`execution.privateKey` must be 64 hexadecimal digits, with or without `0x`.")
    return TxSettings(
        url,
        key,
        _chains(members.get("chains")),
        timeout_seconds,
        _seconds(members.get("receiptSec"), timeout_seconds),
        _caps(members.get("caps")),
        _approval(members.get("approval")),
        _flag(members.get("dryRun"), "execution.dryRun"),
    )


def _chains(value: Any) -> Mapping[str, int]:
    if value is None:
        return CHAINS
    found = _object(value, "execution.chains")
    return CHAINS | {name: _amount(number, f"execution.chains.{name}") for name, number in found.items()}


def _caps(value: Any) -> Caps:
    names = {"valueWei": "value", "feeWei": "fee", "gas": "gas", "dayValueWei": "day_value", "dayFeeWei": "day_fee"}
    found = _object({} if value is None else value, "execution.caps")
    return Caps(**{names[name]: _amount(number, f"execution.caps.{name}") for name, number in found.items()})


def _approval(value: Any) -> int | None:
    above = _object({} if value is None else value, "execution.approval").get("aboveWei")
    return None if above is None else _amount(above, "execution.approval.aboveWei")


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"`{where}` must be an object.")
    return value


def _text(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"`execution.{name}` must be a string.")
    return (value or "").strip()


def _amount(value: Any, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and _AMOUNT.fullmatch(value):
        return int(value)
    raise ConfigError(f"`{where}` must be a whole number, or a string of decimal digits.")


def _seconds(value: Any, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST_SECONDS:
        return float(value)
    raise ConfigError(f"`execution.receiptSec` must be a number of seconds, at most {MOST_SECONDS:g}.")


def _flag(value: Any, where: str) -> bool:
    if value is None or isinstance(value, bool):
        return bool(value)
    raise ConfigError(f"`{where}` must be true or false.")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def _keys_in(url: str) -> tuple[str, ...]:
    """What in an address may be a key: credentials, long parts of its path, its query."""
    try:
        parts = urlsplit(url)
        credentials = [parts.username or "", parts.password or ""]
    except ValueError:
        return (url,)
    pieces = [piece for piece in parts.path.split("/") if len(piece) >= _FEWEST_CHARS_OF_A_KEY]
    pieces += [pair.partition("=")[2] or pair for pair in parts.query.split("&")]
    found = [piece for piece in pieces if piece.lower() not in _PLAIN_PARTS] + credentials
    return tuple(spelling for piece in found for spelling in (piece, unquote(piece)))
