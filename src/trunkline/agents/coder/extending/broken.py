"""Files that extend the agent and cannot be used: people are told, of each once, and not of all of many."""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.base.printable import printable_line
from trunkline.base.programs import as_typed

#: Files that are named in one notice.
MOST_NAMED = 3


class BrokenFiles:
    """Those of one kind, in the words of whoever reads of them: `Skills`."""

    def __init__(self, kind: str, advice: str = "") -> None:
        """`advice`: what to do about it."""
        self._kind = kind
        self._advice = advice
        self._told: Mapping[str, str] = {}

    def news(self, found: Mapping[str, str]) -> list[str]:
        """What to tell people of the files that cannot be used now, each with its problem."""
        news = [(file, problem) for file, problem in found.items() if self._told.get(file) != problem]
        self._told = found
        if not news:
            return []
        named = "; ".join(f"`{printable_line(file)}`: {problem}" for file, problem in news[:MOST_NAMED])
        more = f"; and {len(news) - MOST_NAMED} more" if len(news) > MOST_NAMED else ""
        advice = as_typed(self._advice)
        return [" ".join(filter(None, (f"{self._kind} that cannot be used: {named}{more}.", advice)))]
