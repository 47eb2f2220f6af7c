"""What may be spent: by one transaction, and by all of the last 24 hours. Pure."""

from __future__ import annotations

from trunkline.base.values import Value
from trunkline.runner.chain.abi import Refusal
from trunkline.runner.chain.settings import Caps

#: Any 24 hours, not a calendar's day: at midnight nobody may spend twice.
DAY_MS = 24 * 60 * 60 * 1000


class Spent(Value):
    """Wei that is gone, or may be gone: of transactions whose end is not known, all that they could cost."""

    value: int = 0
    fee: int = 0


def check_one(caps: Caps, value: int, fee: int) -> None:
    """Raises `Refusal` if one transaction costs too much."""
    _check("value", value, caps.value, "for one transaction", "valueWei")
    _check("fee", fee, caps.fee, "for one transaction", "feeWei")


def check_day(caps: Caps, spent: Spent, value: int, fee: int) -> None:
    """Raises `Refusal` if it would be too much together with what was spent."""
    # What moves no money is not stopped by what others moved.
    if value:
        _check("value", spent.value + value, caps.day_value, "for 24 hours, with what was sent before", "dayValueWei")
    _check("fee", spent.fee + fee, caps.day_fee, "for 24 hours, with what was sent before", "dayFeeWei")


def _check(what: str, wanted: int, most: int, when: str, setting: str) -> None:
    if wanted > most:
        raise Refusal(
            f"Not sent: the {what} of {wanted} wei is more than the {most} wei that are allowed {when}"
            f" (`execution.caps.{setting}`)."
        )
