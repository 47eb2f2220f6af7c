"""Which sign under which message means what. A message holds it itself; this only saves asking for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from trunkline.chat.matrix.content import same_sign
from trunkline.chat.platform import Button

#: Messages that are remembered. What is forgotten is asked for again.
MOST_REMEMBERED = 500


class Signs:
    """The newest messages, what their signs mean, and which events put them there."""

    def __init__(self) -> None:
        self._meanings: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._events: dict[str, dict[str, str]] = {}

    def know(self, message: str, meanings: Mapping[str, str]) -> None:
        """What the signs under a message mean, none included."""
        self._meanings[message] = dict(meanings)
        self._meanings.move_to_end(message)
        while len(self._meanings) > MOST_REMEMBERED:
            forgotten, _ = self._meanings.popitem(last=False)
            self._events.pop(forgotten, None)

    def meanings(self, message: str) -> dict[str, str] | None:
        """What they mean; None if that is not known here."""
        return self._meanings.get(message)

    def put(self, message: str, sign: str, event: str) -> None:
        """An event put a sign under a message."""
        if message in self._meanings:
            self._events.setdefault(message, {})[same_sign(sign)] = event

    def missing(self, message: str, buttons: Sequence[Button]) -> list[str]:
        """The signs that are to be put there."""
        there = self._events.get(message, {})
        return [button.label for button in buttons if same_sign(button.label) not in there]

    def take_superfluous(self, message: str, buttons: Sequence[Button]) -> list[str]:
        """The events whose signs are to go; they count as gone."""
        wanted = {same_sign(button.label) for button in buttons}
        there = self._events.get(message, {})
        return [there.pop(sign) for sign in list(there) if sign not in wanted]
