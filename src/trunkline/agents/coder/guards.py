"""Notices when a model goes in circles, so that a turn ends before the money does."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.agents.coder.words import TOOL_DENIED
from trunkline.base import jsontext
from trunkline.models.messages import ToolResultBlock, ToolUse

#: The same calls with the same failures, one round after the other.
SAME_FAILURES = 3
#: Rounds in a row in which every call failed, whatever it was.
FAILED_ROUNDS = 8
#: Rounds in a row in which every call was denied. That is no failure of the model's: it may ask for something else.
DENIED_ROUNDS = 30
#: Rounds in a row in which no call could be understood.
MALFORMED_ROUNDS = 3
#: The same calls with the same results, although they succeed: more often than anybody polls in a row.
SAME_ROUNDS = 10


class Guards:
    """Watches the rounds of one turn."""

    def __init__(self) -> None:
        self._last: tuple[object, ...] = ()
        self._same = 0
        self._failed = self._denied = 0
        self._malformed = 0

    def saw(self, calls: Sequence[ToolUse], results: Sequence[ToolResultBlock]) -> str | None:
        """One round more; gives the reason to end the turn, if there is one."""
        this = tuple(
            (call.name, jsontext.dumps(call.input), call.raw, result.text)
            for call, result in zip(calls, results, strict=True)
        )
        self._same = self._same + 1 if this == self._last else 1
        self._last = this
        denied = all(_is_denial(result) for result in results)
        self._denied = self._denied + 1 if denied else 0
        failed = all(result.is_error for result in results) and not any(map(_is_denial, results))
        self._failed = self._failed + 1 if failed else 0
        self._malformed = self._malformed + 1 if all(call.input is None for call in calls) else 0
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(call.name for call in calls))
        if self._malformed >= MALFORMED_ROUNDS:
            return f"The model called {names} {self._malformed} times with arguments that are not a JSON object."
        if failed and self._same >= SAME_FAILURES:
            return f"The model repeated the same failing call of {names} {self._same} times."
        if self._failed >= FAILED_ROUNDS:
            return f"Every tool call of the last {self._failed} rounds failed."
        if self._denied >= DENIED_ROUNDS:
            return f"Every tool call of the last {self._denied} rounds was denied."
        if self._same >= SAME_ROUNDS:
            return f"The model repeated the same call of {names} {self._same} times, with the same result."
        return None


def _is_denial(result: ToolResultBlock) -> bool:
    return result.is_error and result.text.startswith(TOOL_DENIED)
