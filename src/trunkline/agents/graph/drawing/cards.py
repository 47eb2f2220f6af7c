"""What the box of a node says: its name, its type, the parameters that matter, and what it did in a turn."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Any

from trunkline.agents.graph.drawing import words
from trunkline.agents.graph.drawing.layout import Box
from trunkline.agents.graph.drawing.recorded import RecordedNode, decision
from trunkline.agents.graph.params import rules_of
from trunkline.base.values import Value
from trunkline.core.graph.description import NodeDescription, NodeParams
from trunkline.core.graph.ordinals import CannedResponseSelectionStrategy, DirectorStrategy, Placement

NAME_SIZE, TYPE_SIZE, LINE_SIZE, EXIT_SIZE = 14.0, 11.0, 11.5, 11.0
NAME_HEIGHT, TYPE_HEIGHT, LINE_HEIGHT, EXIT_HEIGHT = 20.0, 17.0, 16.0, 22.0
PADDING = 12.0
#: Of what is inside of a box.
_LEAST, _MOST = 96.0, 250.0
#: Lines about parameters, and of one long text.
_MAX_LINES, _MAX_WRAPPED = 5, 2
#: Beside the name of an exit.
_EXIT_PADDING = 18.0
#: Between the name and the time that the node took.
_TIME_GAP = 16.0

#: How something is done, and not what.
_MINOR = frozenset(("notify_client", "stream", "diagnostic_topk", "history_turns", "generate_on_no_tool"))
#: Told even if they are as they always are: they decide.
_DECISIVE = frozenset(("top_k", "threshold", "margin", "max_lines"))
_NAMES = {
    "placement": Placement.names(),
    "selection_strategy": CannedResponseSelectionStrategy.names(),
    "strategy": DirectorStrategy.names(),
}


class CardLine(Value):
    """One line below the type: a key, which may be empty, and what is said of it."""

    key: str
    text: str
    done: bool = False
    """Whether it is about the turn."""


class Card(Value):
    """A box, all texts shortened to what fits."""

    name: str
    full_name: str
    type: str
    lines: tuple[CardLine, ...]
    exits: tuple[tuple[str, str], ...]
    """Exits by name, and how the name is shown."""
    time: str
    runs: tuple[int, ...]
    """When the node ran: numbers from 1."""
    shape: Box


def card(node: NodeDescription, params: NodeParams, steps: Sequence[tuple[int, RecordedNode]] = ()) -> Card:
    """The card of a node, and of its steps in a turn with their numbers."""
    time = milliseconds(fsum(step.ms for _, step in steps)) if steps else ""
    time_width = words.width(time, LINE_SIZE) + _TIME_GAP if time else 0.0
    full_name = words.plain(node.name)
    name = words.shortened(full_name, NAME_SIZE, _MOST - time_width, bold=True)
    rules = rules_of(params)
    lines = [*_parameters(params), *_done(steps)]
    exits = tuple((exit_name, words.plain(exit_name)) for exit_name in rules.exits)
    slots = {exit_name: words.width(shown, EXIT_SIZE) + _EXIT_PADDING for exit_name, shown in exits}
    inside = max(
        words.width(name, NAME_SIZE, bold=True) + time_width,
        words.width(rules.type, TYPE_SIZE, bold=True),
        *(_line_width(line) for line in lines),
        _LEAST,
    )
    width = max(min(inside, _MOST) + 2 * PADDING, fsum(slots.values()))
    # The exits share what room there is.
    spare = (width - fsum(slots.values())) / len(slots) if slots else 0.0
    slots = {exit_name: slot + spare for exit_name, slot in slots.items()}
    height = PADDING + NAME_HEIGHT + TYPE_HEIGHT + LINE_HEIGHT * len(lines) + PADDING / 2 + EXIT_HEIGHT
    runs = tuple(number for number, _ in steps)
    return Card(name, full_name, rules.type, tuple(lines), exits, time, runs, Box(width, height, slots))


def _line_width(line: CardLine) -> float:
    return words.width(f"{line.key}  {line.text}" if line.key else line.text, LINE_SIZE)


def milliseconds(ms: float) -> str:
    """A time as people read it."""
    if ms >= 1000:
        return f"{ms / 1000:.1f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms" if ms >= 0.1 else "< 0.1 ms"


# Parameters.


def _parameters(params: NodeParams) -> list[CardLine]:
    lines: list[CardLine] = []
    numbers: list[str] = []
    for field in params.__fields__:
        value = getattr(params, field)
        if field.endswith("_exit") or field in _MINOR:
            continue
        if value == params.__defaults__[field] and field not in _DECISIVE:
            continue
        if isinstance(value, bool | int | float) and field not in _NAMES:
            numbers.append(f"{field} {value:g}" if not isinstance(value, bool) else field)
        elif value:
            lines += _lines(field, _shown(field, value))
    if numbers:
        lines.append(_line("", " \u00b7 ".join(numbers)))
    if len(lines) > _MAX_LINES:
        lines = [*lines[: _MAX_LINES - 1], _line("", "\u2026")]
    return lines


def _shown(field: str, value: Any) -> str:
    if field in _NAMES:
        return _NAMES[field].get(value, str(value)).lower()
    if isinstance(value, tuple):
        return ", ".join(getattr(each, "name", f"\u201c{each}\u201d") for each in value[:20])
    if isinstance(value, str):
        return value
    fields = {name: getattr(value, name) for name in getattr(value, "__fields__", ())}
    # What has a form of its own is named; its text would be too long.
    return ", ".join(
        f"{name} {each:g}" if isinstance(each, int | float) else name for name, each in fields.items() if _is_said(each)
    )


def _is_said(value: Any) -> bool:
    return isinstance(value, int | float) or bool(value)


def _lines(key: str, text: str) -> list[CardLine]:
    text = words.plain(text)
    room = _MOST - words.width(f"{key}  ", LINE_SIZE)
    if words.width(text, LINE_SIZE) <= room:
        return [CardLine(key, text)]
    first, *rest = words.wrapped(text, LINE_SIZE, room, 2)
    if not rest:
        return [CardLine(key, first)]
    # The second line has the whole width.
    taken = text[len(first) :].lstrip()
    return [
        CardLine(key, first),
        *(CardLine("", each) for each in words.wrapped(taken, LINE_SIZE, _MOST, _MAX_WRAPPED - 1)),
    ]


def _line(key: str, text: str) -> CardLine:
    return CardLine(key, words.shortened(text, LINE_SIZE, _MOST))


# What was done.


def _done(steps: Sequence[tuple[int, RecordedNode]]) -> list[CardLine]:
    if not steps:
        return []
    _, last = steps[-1]
    told = words.plain(decision(last))
    return [CardLine("", each, True) for each in words.wrapped(told, LINE_SIZE, _MOST, _MAX_WRAPPED)]
