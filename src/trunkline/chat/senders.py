"""Who may speak to the bridge, and how often. Decides, and says nothing: no clock, no network.

Everybody on the internet can write to a bot. So nobody is let in unless the owner named them; and what strangers can
make the bridge do is bounded: one short refusal to each in an hour, a few a minute to all of them together, and a
memory that does not grow with their number.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from enum import Enum
from typing import TypeVar

from trunkline.chat.settings import EVERYBODY

#: A stranger who tries again within this time is not answered again.
REFUSAL_SECONDS = 3600.0
#: All strangers together: whoever comes with a thousand accounts does not make us speak a thousand times.
REFUSALS_A_MINUTE = 10
#: Somebody who is too fast is told so as often as this, and not for each message.
SLOW_DOWN_SECONDS = 60.0
#: Commands such as `/stop` that one sender may give in a minute: nobody needs more, however urgent it is.
URGENT_A_MINUTE = 60
#: Somebody who presses what is not for them, or is over, is told so as often as this, and not for each press.
TOLD_SECONDS = 60.0
#: People that are remembered for the rules above. The one not heard of for the longest time is forgotten first.
MOST_REMEMBERED = 1000

_MINUTE = 60.0

T = TypeVar("T")


class SenderVerdict(Enum):
    """What becomes of a message."""

    TAKE = "take"
    REFUSE = "refuse"
    """Not let in, and to be told so."""
    SLOW_DOWN = "slow down"
    """Let in, but too fast; to be told so."""
    IGNORE = "ignore"


class Bucket:
    """Tokens that come back with time: so many at once, and so many a minute."""

    __slots__ = ("_at", "_rate", "_tokens")

    def __init__(self, a_minute: int, now: float) -> None:
        self._rate = a_minute
        self._tokens = float(a_minute)
        self._at = now

    def take(self, now: float) -> bool:
        """Take one, if there is one."""
        passed = max(0.0, now - self._at)
        self._tokens = min(float(self._rate), self._tokens + passed * self._rate / _MINUTE)
        self._at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


class Senders:
    """The rules for all senders of all platforms. A sender is `PLATFORM:ID`."""

    def __init__(
        self,
        allow: Collection[str],
        approvers: Collection[str] = (),
        *,
        rate: int = 20,
        unlimited: Collection[str] = (),
    ) -> None:
        """`unlimited` are those who may send as much as they like: whoever started the bridge, at its terminal."""
        self._allow = frozenset(allow)
        self._approvers = frozenset(approvers)
        self._unlimited = frozenset(unlimited)
        self._rate = rate
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()
        self._refused: OrderedDict[str, float] = OrderedDict()
        self._slowed: OrderedDict[str, float] = OrderedDict()
        self._urgent: OrderedDict[str, Bucket] = OrderedDict()
        self._told: OrderedDict[str, float] = OrderedDict()
        self._refusals: Bucket | None = None

    def allowed(self, sender: str) -> bool:
        """Whether the owner let them in."""
        return EVERYBODY in self._allow or sender in self._allow

    def may_approve(self, sender: str) -> bool:
        """Whether they may answer what an agent asks. Those who are not let in may not, whatever else is said."""
        listed = not self._approvers or EVERYBODY in self._approvers or sender in self._approvers
        return listed and self.allowed(sender)

    def unlimited(self, sender: str) -> bool:
        """Whether they may send as much as they like, and wait instead of being refused."""
        return sender in self._unlimited and self.allowed(sender)

    def judge(self, sender: str, now: float, *, urgent: bool = False) -> SenderVerdict:
        """What becomes of a message that came now. An urgent one is taken from somebody who is too fast, too."""
        if not self.allowed(sender):
            return SenderVerdict.REFUSE if self._refuse(sender, now) else SenderVerdict.IGNORE
        if sender in self._unlimited:
            return SenderVerdict.TAKE
        buckets, rate = (self._urgent, URGENT_A_MINUTE) if urgent else (self._buckets, self._rate)
        bucket = buckets.get(sender) or Bucket(rate, now)
        _remember(buckets, sender, bucket)
        if bucket.take(now):
            return SenderVerdict.TAKE
        return (
            SenderVerdict.SLOW_DOWN if _is_new(self._slowed, sender, now, SLOW_DOWN_SECONDS) else SenderVerdict.IGNORE
        )

    def may_be_told(self, sender: str, now: float) -> bool:
        """Whether somebody who pressed in vain is to hear of it, once in a while."""
        return _is_new(self._told, sender, now, TOLD_SECONDS)

    def _refuse(self, sender: str, now: float) -> bool:
        if self._refusals is None:
            self._refusals = Bucket(REFUSALS_A_MINUTE, now)
        last = self._refused.get(sender)
        if last is not None and now - last < REFUSAL_SECONDS:
            return False
        if not self._refusals.take(now):
            return False
        _remember(self._refused, sender, now)
        return True


def _is_new(told: OrderedDict[str, float], sender: str, now: float, seconds: float) -> bool:
    last = told.get(sender)
    if last is not None and now - last < seconds:
        return False
    _remember(told, sender, now)
    return True


def _remember(memory: OrderedDict[str, T], sender: str, what: T) -> None:
    memory[sender] = what
    memory.move_to_end(sender)
    while len(memory) > MOST_REMEMBERED:
        memory.popitem(last=False)
