"""The line above the prompt: the model, how full its window is, what was spent, what runs in the background."""

from __future__ import annotations

from trunkline.base.printable import printable_line
from trunkline.base.values import Value

#: A window that is so full is worth a look, and one that is so full leaves hardly room for an answer. Long before the
#: second, the coding agent summarises what was said.
FILLING, NEARLY_FULL = 0.7, 0.9
#: A model's name that is longer is cut.
LONGEST_MODEL = 40

_BETWEEN = " · "
#: Which parts go first where there is no room for all.
_LEAST_FIRST = ("sandbox", "effort", "background", "model", "spent", "context")


class Status(Value):
    """What is known; nothing is said about the rest."""

    model: str = ""
    effort: str = ""
    context: tuple[int, int] | None = None
    """How many tokens of the window are used, and how many there are."""
    spent: str = ""
    background: int = 0
    """Commands that run there."""
    sandbox: bool | None = None

    def parts(self) -> dict[str, tuple[str, str]]:
        """Each part with its style, in the order in which they are shown."""
        found = {
            "model": ("status", printable_line(self.model)[:LONGEST_MODEL]),
            "effort": ("status", f"effort {self.effort}" if self.effort else ""),
            "context": self._context(),
            "spent": ("status", self.spent),
            "background": ("status.busy", f"{self.background} in the background" if self.background else ""),
            # That there is one, the prompt says.
            "sandbox": ("status", "sandbox off" if self.sandbox is False else ""),
        }
        return {name: part for name, part in found.items() if part[1]}

    def line(self, columns: int) -> list[tuple[str, str]]:
        """The parts that fit, each with its style; nothing if there is nothing to say."""
        parts = self.parts()
        for name in _LEAST_FIRST:
            if sum(len(text) + len(_BETWEEN) for _, text in parts.values()) - len(_BETWEEN) < columns:
                break
            parts.pop(name, None)
        shown: list[tuple[str, str]] = []
        for style, text in parts.values():
            shown += [("status", _BETWEEN)] * bool(shown) + [(style, text)]
        return shown

    def _context(self) -> tuple[str, str]:
        if self.context is None or self.context[1] <= 0:
            return "status", ""
        share = self.context[0] / self.context[1]
        style = "status" if share < FILLING else "status.filling" if share < NEARLY_FULL else "status.full"
        return style, f"context {min(share, 9.99):.0%}"
