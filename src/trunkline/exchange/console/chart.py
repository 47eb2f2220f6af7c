"""A chart of bars by day or week, stacked by who or what: numbers into places, for a drawing that a template makes.

Places are in hundredths of the drawing, so that it is as wide as there is room and its texts keep their size. Parts are
told apart by a pattern as well as by a colour: nobody must see colours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta

from trunkline.base.values import Value

#: Parts that have a colour and a pattern of their own; what is left over is one more.
MOST_PARTS = 5
#: What the rest is called.
OTHERS = "others"
#: The most days that have a bar each: of more, every week has one.
MOST_SINGLE_DAYS = 120
#: How wide a bar is, of the room that it has.
_BAR_SHARE = 0.74
#: Names of days below the bars, at most: more would touch on a phone.
_MOST_LABELS = 5
#: Lines of the scale.
_LINES = 4


class ChartPart(Value):
    """One kind of part in all bars. `number` chooses its colour and pattern, from 1 on."""

    name: str
    number: int
    total: float


class ChartBar(Value):
    """A part of a bar, with its place."""

    part: int
    x: str
    y: str
    width: str
    height: str
    title: str
    """What it means, in words."""


class ChartLine(Value):
    """A line of the scale, or a name below: where, and what it says."""

    at: str
    text: str
    anchor: str = "middle"


class DayChart(Value):
    """All of it. `y` values count from the top."""

    parts: tuple[ChartPart, ...]
    bars: tuple[ChartBar, ...]
    scale: tuple[ChartLine, ...]
    days: tuple[ChartLine, ...]


def day_chart(
    amounts: Mapping[tuple[str, str], float],
    first: date,
    last: date,
    told: Callable[[float], str],
    brief: Callable[[float], str],
) -> DayChart:
    """The chart of some days.

    Args:
        amounts: by day and name.
        first, last: days, all of which have room in it.
        told, brief: an amount in words, and as it stands beside the scale.
    """
    parts = _parts(amounts)
    numbers = {part.name: part.number for part in parts}
    count = (last - first).days + 1
    at_once = 1 if count <= MOST_SINGLE_DAYS else 7
    place_of = {(first + timedelta(each)).isoformat(): each // at_once for each in range(count)}
    days = [(first + timedelta(each)).isoformat() for each in range(0, count, at_once)]
    stacks: list[dict[int, float]] = [{} for _ in days]
    for (day, name), amount in amounts.items():
        if day in place_of and amount:
            stack, number = stacks[place_of[day]], numbers.get(name, numbers.get(OTHERS, 0))
            stack[number] = stack.get(number, 0) + amount
    top = nice_above(max(sum(stack.values()) for stack in stacks))
    names = {part.number: part.name for part in parts}
    step = 100 / len(days)
    bars = []
    for place, stack in enumerate(stacks):
        y, when = 100.0, days[place] if at_once == 1 else f"Week from {days[place]}"
        for number in sorted(stack):
            height = 100 * stack[number] / top
            y -= height
            bars.append(
                ChartBar(
                    number,
                    _share(place * step + step * (1 - _BAR_SHARE) / 2),
                    _share(y),
                    _share(step * _BAR_SHARE),
                    _share(height),
                    f"{when}, {names[number]}: {told(stack[number])}",
                )
            )
    return DayChart(parts, tuple(bars), tuple(_scale(top, brief)), tuple(_labels(days, step)))


def nice_above(most: float) -> float:
    """The end of a scale for amounts up to that one, with lines at round numbers."""
    if most <= 0:
        return float(_LINES)
    unit = 10.0 ** math.floor(math.log10(most))
    # The last one is for what comes of rounding.
    return next(steps for steps in (each * unit for each in (1, 1.2, 1.6, 2, 3, 4, 6, 8, 10, 20)) if steps >= most)


def _parts(amounts: Mapping[tuple[str, str], float]) -> tuple[ChartPart, ...]:
    totals: dict[str, float] = {}
    for (_, name), amount in amounts.items():
        totals[name] = totals.get(name, 0) + amount
    order = sorted(totals, key=lambda name: (-totals[name], name))
    # One that is left over alone is itself.
    most = MOST_PARTS if len(order) > MOST_PARTS + 1 else MOST_PARTS + 1
    found = [ChartPart(name, number, totals[name]) for number, name in enumerate(order[:most], 1)]
    if len(order) > most:
        found.append(ChartPart(OTHERS, most + 1, sum(totals[name] for name in order[most:])))
    return tuple(found)


def _scale(top: float, brief: Callable[[float], str]) -> Iterable[ChartLine]:
    for line in range(_LINES + 1):
        amount = top * line / _LINES
        yield ChartLine(_share(100 - 100 * line / _LINES), brief(amount))


def _labels(days: Sequence[str], step: float) -> Iterable[ChartLine]:
    every = -(-len(days) // _MOST_LABELS)
    for place in range(0, len(days), every):
        middle = (place + 0.5) * step
        anchor = "start" if middle < 4 else "end" if middle > 96 else "middle"
        at = 0.0 if anchor == "start" else 100.0 if anchor == "end" else middle
        yield ChartLine(_share(at), days[place][5:], anchor)


def _share(value: float) -> str:
    return f"{round(value, 3):g}%"
