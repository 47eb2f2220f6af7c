"""A graph as an SVG picture, and a turn through it.

    picture = draw(graph, title="npc.yaml")
    picture = draw(graph, turn=recorded.load("turn.json"))
    picture = draw(graph, page=False)          # for a page that has a background and a title of its own

The text is one XML document that refers to nothing outside of it and runs nothing. Names and texts of the graph are
somebody else's: they appear as they are, and do nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import fsum

from trunkline.agents.graph.drawing import words
from trunkline.agents.graph.drawing.cards import (
    EXIT_HEIGHT,
    LINE_HEIGHT,
    NAME_HEIGHT,
    PADDING,
    TYPE_HEIGHT,
    Card,
    card,
    milliseconds,
)
from trunkline.agents.graph.drawing.layout import Box, BoxPosition, Edge, Layout, Point, Route, arrange
from trunkline.agents.graph.drawing.recorded import Recorded, RecordedNode
from trunkline.agents.graph.drawing.style import FAMILIES, stylesheet
from trunkline.agents.graph.params import exits_of
from trunkline.core.faults import ConfigError
from trunkline.core.graph.description import GraphDescription

#: Around everything.
_MARGIN = 28.0
_TITLE_HEIGHT, _ABOUT_HEIGHT = 24.0, 19.0
_TITLE_SIZE, _ABOUT_SIZE = 17.0, 12.5
#: The least room for the words above the picture, and how many lines one of them may have.
_LEAST_WIDTH, _MAX_ABOUT = 420.0, 3
_RADIUS = 9.0
#: Of the corners of lines that lead back.
_BEND = 9.0
#: The arrow's point: its length, and half its width.
_TIP_LENGTH, _TIP_HALF = 8.0, 4.5
_BADGE = 10.0
#: Numbers in the badge of a node that ran often.
_MAX_NUMBERS = 4

_PILL_HEIGHT = 24.0
_START, _END = "message", "END"
_PILL = Box(66.0, _PILL_HEIGHT, {})


def draw(
    graph: GraphDescription, *, title: str = "", about: str = "", turn: Recorded | None = None, page: bool = True
) -> str:
    """The picture of a graph that was checked, with a line `about` it; and of a turn, if there is one. `page`: with a
    background, and with what was said in the turn.

    Raises:
        ConfigError: the turn ran a node that the graph does not have.
    """
    return "\n".join(_Picture(graph, title, about, turn, page).lines()) + "\n"


# Boxes have names of three sorts, and none can be taken for another.
def _node_key(name: str) -> str:
    return f"n{name}"


def _end_key(name: str) -> str:
    return f"e{name}"


_START_KEY = "s"


class _Picture:
    def __init__(self, graph: GraphDescription, title: str, about: str, turn: Recorded | None, page: bool) -> None:
        self._turn = turn
        self._page = page
        steps = _steps(graph, turn)
        params = {node.name: node.params for node in graph.nodes if node.params is not None}
        self._cards: dict[str, Card] = {
            node.name: card(node, params[node.name], steps.get(node.name, ()))
            for node in graph.nodes
            if node.name in params
        }
        exits = {name: exits_of(each) for name, each in params.items()}
        shapes: dict[str, Box] = {_START_KEY: _PILL}
        shapes |= {_node_key(name): each.shape for name, each in self._cards.items()}
        edges = [Edge(_START_KEY, "", _node_key(graph.start_node))]
        for name, to in exits.items():
            if "" in to.values():
                shapes[_end_key(name)] = _PILL
            edges += [
                Edge(_node_key(name), exit_name, _node_key(target) if target else _end_key(name))
                for exit_name, target in to.items()
            ]
        self._layout: Layout = arrange(shapes, edges, _START_KEY)
        self._taken = {(_node_key(name), step.exit) for name, each in steps.items() for _, step in each}
        if steps:
            self._taken.add((_START_KEY, ""))
        self._failed = turn.steps[-1].name if turn is not None and turn.error and turn.steps else None
        self._reached = _reached(graph.start_node, exits)
        self._title = words.plain(title)
        self._about = [words.plain(about)] if about else []
        self._captions = list(self._caption())

    # The whole.

    def lines(self) -> Iterator[str]:
        layout = self._layout
        top = _MARGIN + fsum(height for height, _, _ in self._captions) + (14.0 if self._captions else 0.0)
        width = round(max(layout.width, _LEAST_WIDTH if self._captions else 0.0) + 2 * _MARGIN)
        height = round(top + layout.height + _MARGIN)
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">'
        )
        yield f"<title>{words.escaped(self._title or 'A graph')}</title>"
        yield f"<style>{stylesheet()}</style>"
        if self._page:
            yield f'<rect class="page" width="{width}" height="{height}" rx="12"/>'
        at = _MARGIN
        for line_height, kind, text in self._captions:
            at += line_height
            yield _text(_MARGIN, at - 6, kind, text)
        left = (width - layout.width) / 2
        yield f'<g transform="translate({left:.1f} {top:.1f})">'
        yield from self._edges()
        for number, (name, each) in enumerate(self._cards.items()):
            yield from self._node(number, name, each, layout.places[_node_key(name)])
        yield from self._pill(_START_KEY, _START)
        for name in self._cards:
            yield from self._pill(_end_key(name), _END)
        yield "</g>"
        yield "</svg>"

    def _caption(self) -> Iterator[tuple[float, str, str]]:
        """The words above: height, class and text of each line."""
        room = max(self._layout.width, _LEAST_WIDTH)
        if self._title:
            yield _TITLE_HEIGHT, "title", words.shortened(self._title, _TITLE_SIZE, room, bold=True)
        told = [("about", each) for each in self._about]
        if (turn := self._turn) is not None and self._page:
            if turn.message:
                told.append(("about", f"\u201c{words.plain(turn.message)}\u201d"))
            if turn.answer:
                told.append(("about", f"\u2192 \u201c{words.plain(turn.answer)}\u201d"))
            tokens = f", {turn.tokens} tokens" if turn.tokens else ""
            told.append(("about", f"{words.plain(turn.status) or 'A turn'}, {milliseconds(turn.wall_ms)}{tokens}"))
            if turn.error:
                told.append(("bad", words.plain(turn.error)))
        for kind, text in told:
            for line in words.wrapped(text, _ABOUT_SIZE, room, _MAX_ABOUT):
                yield _ABOUT_HEIGHT, kind, line

    # Lines.

    def _edges(self) -> Iterator[str]:
        # Those that were taken lie on top.
        for route in sorted(self._layout.routes, key=self._was_taken):
            taken = self._was_taken(route)
            kind = " taken" if taken else " unused" if self._turn is not None else ""
            path = _angled(route.points) if route.back else _curved(route.points)
            yield f'<path class="edge{kind}" d="{path}"/>'
            x, y = route.points[-1]
            tip = f"M{x:.1f} {y:.1f}l{-_TIP_HALF} {-_TIP_LENGTH}h{2 * _TIP_HALF}z"
            yield f'<path class="tip{kind}" d="{tip}"/>'

    def _was_taken(self, route: Route) -> bool:
        return (route.edge.source, route.edge.exit) in self._taken

    # Boxes.

    def _pill(self, key: str, text: str) -> Iterator[str]:
        place = self._layout.places.get(key)
        if place is None:
            return
        reached = any(
            self._was_taken(route) for route in self._layout.routes if key in (route.edge.source, route.edge.target)
        )
        kind = ' class="unused"' if self._turn is not None and not reached else ""
        yield f"<g{kind}>"
        yield _rect("pill", place.x, place.y, _PILL.width, _PILL_HEIGHT, _PILL_HEIGHT / 2)
        yield _text(place.x + _PILL.width / 2, place.y + 16, "pill-text", text)
        yield "</g>"

    def _node(self, number: int, name: str, each: Card, place: BoxPosition) -> Iterator[str]:
        kinds = ["node"]
        if each.runs:
            kinds.append("ran")
            if name == self._failed:
                kinds.append("failed")
        elif self._turn is not None:
            kinds.append("unused")
        if name not in self._reached:
            kinds.append("unreached")
        family = FAMILIES.get(each.type, "other")
        shape = each.shape
        yield f'<g class="{" ".join(kinds)}">'
        yield f"<title>{words.escaped(f'{each.full_name} ({each.type})')}</title>"
        yield _rect("box", place.x, place.y, shape.width, shape.height, _RADIUS)
        # A viewer's font may be wider than any that was thought of.
        yield f'<clipPath id="c{number}">{_rect("", place.x, place.y, shape.width, shape.height, _RADIUS)}</clipPath>'
        yield f'<g clip-path="url(#c{number})">'
        yield _rect(family, place.x, place.y + PADDING, 4.0, NAME_HEIGHT + TYPE_HEIGHT - 4, 2.0)
        left, at = place.x + PADDING, place.y + PADDING + NAME_HEIGHT - 5
        yield _text(left, at, "name", each.name)
        if each.time:
            yield _text(place.x + shape.width - PADDING, at, "time", each.time)
        at += TYPE_HEIGHT
        yield _text(left, at, f"type {family}", each.type)
        for line in each.lines:
            at += LINE_HEIGHT
            yield _text(left, at, "done" if line.done else "value", line.text, line.key)
        yield from self._exits(_node_key(name), each, place)
        yield "</g>"
        yield from _badge(each, place)
        yield "</g>"

    def _exits(self, key: str, each: Card, place: BoxPosition) -> Iterator[str]:
        bottom = place.y + each.shape.height
        top = bottom - EXIT_HEIGHT
        yield f'<path class="rule" d="M{place.x:.1f} {top:.1f}h{each.shape.width:.1f}"/>'
        for name, shown in each.exits:
            left = place.exits[name]
            if left > place.x + 1:
                yield f'<path class="rule" d="M{left:.1f} {top:.1f}v{EXIT_HEIGHT:.1f}"/>'
            taken = " taken" if (key, name) in self._taken else ""
            yield _text(left + each.shape.exits[name] / 2, bottom - 7, f"exit{taken}", shown)


def _steps(graph: GraphDescription, turn: Recorded | None) -> Mapping[str, list[tuple[int, RecordedNode]]]:
    names = {node.name for node in graph.nodes}
    found: dict[str, list[tuple[int, RecordedNode]]] = {}
    for number, step in enumerate(turn.steps if turn is not None else (), 1):
        if step.name not in names:
            raise ConfigError(
                f"The turn ran the node `{step.name}`, which is not in this graph.", hint="Was it another graph's?"
            )
        found.setdefault(step.name, []).append((number, step))
    return found


def _reached(start: str, exits: Mapping[str, Mapping[str, str]]) -> set[str]:
    seen, waiting = set[str](), [start]
    while waiting:
        name = waiting.pop()
        if name and name not in seen:
            seen.add(name)
            waiting += exits[name].values()
    return seen


def _badge(each: Card, place: BoxPosition) -> Iterator[str]:
    """When the node ran, on its upper left corner."""
    if not each.runs:
        return
    shown = [str(number) for number in each.runs[:_MAX_NUMBERS]]
    text = ", ".join(shown) + ("\u2026" if len(each.runs) > _MAX_NUMBERS else "")
    width = max(2 * _BADGE, words.width(text, 11.0, bold=True) + 10)
    left = place.x - _BADGE
    yield _rect("badge", left, place.y - _BADGE, width, 2 * _BADGE, _BADGE)
    yield _text(left + width / 2, place.y + 4, "badge-text", text)


def _rect(kind: str, x: float, y: float, width: float, height: float, radius: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:.1f}"/>'


def _text(x: float, y: float, kind: str, text: str, key: str = "") -> str:
    before = f'<tspan class="key">{words.escaped(key)}  </tspan>' if key else ""
    # Isolated: what is written from right to left stays in its place, and turns nothing else around.
    inside = words.escaped(text if text.isascii() else f"\u2068{text}\u2069")
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{before}{inside}</text>'


def _curved(points: tuple[Point, ...]) -> str:
    """Through all points, always leaving and arriving vertically."""
    (x, y), *rest = points
    path = f"M{x:.1f} {y:.1f}"
    for number, (to_x, to_y) in enumerate(rest, 1):
        # The arrow's tip is drawn by itself.
        end = to_y - (_TIP_LENGTH - 1 if number == len(rest) else 0)
        if abs(to_x - x) < 0.5:
            path += f"L{to_x:.1f} {end:.1f}"
        else:
            middle = (y + end) / 2
            path += f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {end:.1f}"
        x, y = to_x, to_y
    return path


def _angled(points: tuple[Point, ...]) -> str:
    """Through all points, with round corners."""
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (ax, ay), (bx, by), (cx, cy) in zip(points, points[1:], points[2:], strict=False):
        before = min(_BEND, max(abs(bx - ax), abs(by - ay)) / 2)
        after = min(_BEND, max(abs(cx - bx), abs(cy - by)) / 2)
        path += f"L{_towards(bx, ax, before):.1f} {_towards(by, ay, before):.1f}"
        path += f"Q{bx:.1f} {by:.1f} {_towards(bx, cx, after):.1f} {_towards(by, cy, after):.1f}"
    x, y = points[-1]
    return f"{path}L{x:.1f} {y - _TIP_LENGTH + 1:.1f}"


def _towards(start: float, end: float, distance: float) -> float:
    return start + max(-distance, min(distance, end - start))
