"""Where everything in a picture of a graph stands: boxes in layers from top to bottom, and lines between them.

Lines leave a box at its lower edge, each exit at a place of its own, and arrive in the middle of an upper edge. Those
that lead back go round the right side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import fsum, inf

from trunkline.agents.graph.drawing.layers import Layered, layered
from trunkline.base.values import Value

#: Between boxes of a layer; less beside a line that passes.
GAP = 34.0
LINE_GAP = 20.0
#: Between layers: room for lines to curve.
LAYER_GAP = 52.0
#: Between lines that go round the side, or that run below each other.
LANE = 14.0
#: Sweeps over all layers in which boxes are drawn to what they are connected with.
_SWEEPS = 24
#: How much harder a line that passes a layer is pulled straight than a box.
_STRAIGHT = 6.0

Point = tuple[float, float]


class Box(Value):
    """A box: its size, and how wide the place of each exit is, which together are no wider than the box."""

    width: float
    height: float
    exits: Mapping[str, float]


class Edge(Value):
    """From an exit of one box to another box."""

    source: str
    exit: str
    target: str


class BoxPosition(Value):
    """The upper left corner of a box, and where each of its exits is: its left end."""

    x: float
    y: float
    exits: Mapping[str, float]


class Route(Value):
    """The line of an edge: corners, which are joined by curves; those of one that leads `back` are right angles."""

    edge: Edge
    points: tuple[Point, ...]
    back: bool


class Layout(Value):
    """A picture that begins at 0, 0."""

    places: Mapping[str, BoxPosition]
    routes: tuple[Route, ...]
    width: float
    height: float


def arrange(shapes: Mapping[str, Box], edges: Sequence[Edge], start: str) -> Layout:
    """Find a place for every box and a way for every edge."""
    names = list(shapes)
    number = {name: index for index, name in enumerate(names)}
    ends = [(number[edge.source], number[edge.target]) for edge in edges]
    return _Arrangement(shapes, names, edges, layered(len(names), ends, [number[start]])).layout()


class _Arrangement:
    def __init__(self, shapes: Mapping[str, Box], names: list[str], edges: Sequence[Edge], found: Layered) -> None:
        self._names = names
        self._edges = edges
        self._found = found
        self._layers = found.layers
        self._shapes = [shapes[name] for name in names]
        self._rank = {vertex: rank for rank, layer in enumerate(found.layers) for vertex in layer}
        self._order = {vertex: place for layer in found.layers for place, vertex in enumerate(layer)}
        # For each real vertex: where its exits begin, from its left edge.
        self._exits = [self._exit_offsets(vertex) for vertex in range(len(names))]
        self._x = self._columns()

    def _width(self, vertex: int) -> float:
        return self._shapes[vertex].width if vertex < len(self._names) else 0.0

    def _exit_offsets(self, vertex: int) -> dict[str, float]:
        """Exits stand in the order of what they lead to: so their lines do not cross. Those that lead back are last."""
        targets: dict[str, tuple[int, float]] = {}
        for edge, path, back in zip(self._edges, self._found.paths, self._found.back, strict=True):
            if edge.source == self._names[vertex]:
                targets[edge.exit] = (1, -self._rank[path[-1]]) if back else (0, self._order[path[1]])
        widths = self._shapes[vertex].exits
        order = sorted(widths, key=lambda name: targets.get(name, (0, 0.0)))
        at = (self._shapes[vertex].width - fsum(widths.values())) / 2
        offsets = {}
        for name in order:
            offsets[name] = at
            at += widths[name]
        return offsets

    def _exit_middle(self, vertex: int, exit_name: str) -> float:
        """From the middle of the box to that of an exit."""
        if vertex >= len(self._names) or exit_name not in self._exits[vertex]:
            return 0.0
        shape = self._shapes[vertex]
        return self._exits[vertex][exit_name] + shape.exits[exit_name] / 2 - shape.width / 2

    # Columns: the middle of each vertex.

    def _columns(self) -> dict[int, float]:
        pulls = self._pulls()
        x: dict[int, float] = {}
        for layer in self._layers:
            at = 0.0
            for place, vertex in enumerate(layer):
                at += self._distance(layer, place)
                x[vertex] = at
        for sweep in range(_SWEEPS):
            down = not sweep % 2
            for layer in self._layers if down else reversed(self._layers):
                self._settle(layer, x, [pulls[not down], pulls[down]] if sweep > 1 else [pulls[not down]])
        for chain in self._chains():
            self._straighten(chain, x)
        return x

    def _chains(self) -> list[list[int]]:
        """The vertices of each line that passes layers, from top to bottom."""
        real = len(self._names)
        chains: dict[int, dict[int, None]] = {}
        for path in self._found.paths:
            chains.setdefault(path[-1], {}).update(dict.fromkeys(vertex for vertex in path if vertex >= real))
        return [sorted(chain, key=self._rank.__getitem__) for chain in chains.values() if len(chain) > 1]

    def _straighten(self, chain: Sequence[int], x: dict[int, float]) -> None:
        """Put the pieces of a line below each other, as far as there is room beside everything else."""
        run: list[int] = []
        least, most = -inf, inf
        for vertex in chain:
            low, high = self._room(vertex, x)
            if max(least, low) > min(most, high):
                _align(run, x, least, most)
                run, least, most = [], -inf, inf
            run.append(vertex)
            least, most = max(least, low), min(most, high)
        _align(run, x, least, most)

    def _room(self, vertex: int, x: Mapping[int, float]) -> tuple[float, float]:
        """How far a vertex can move to the left and to the right while its neighbours stay."""
        layer, place = self._layers[self._rank[vertex]], self._order[vertex]
        low = x[layer[place - 1]] + self._distance(layer, place) if place else -inf
        last = place == len(layer) - 1
        return low, x[layer[place + 1]] - self._distance(layer, place + 1) if not last else inf

    def _pulls(self) -> tuple[dict[int, list[tuple[int, float, float]]], ...]:
        """What draws each vertex, from above and from below: to which one, how far beside it, how strongly."""
        above: dict[int, list[tuple[int, float, float]]] = {}
        below: dict[int, list[tuple[int, float, float]]] = {}
        real = len(self._names)
        for edge, path, back in zip(self._edges, self._found.paths, self._found.back, strict=True):
            if back:
                continue
            for upper, lower in pairwise(path):
                beside = self._exit_middle(upper, edge.exit)
                strength = _STRAIGHT if upper >= real and lower >= real else 1.0
                above.setdefault(lower, []).append((upper, beside, strength))
                below.setdefault(upper, []).append((lower, -beside, strength))
        return above, below

    def _distance(self, layer: Sequence[int], place: int) -> float:
        """Between the middles of a vertex and the one before it."""
        if not place:
            return 0.0
        left, right = layer[place - 1], layer[place]
        gap = GAP if max(left, right) < len(self._names) else LINE_GAP
        return (self._width(left) + self._width(right)) / 2 + gap

    def _settle(
        self, layer: Sequence[int], x: dict[int, float], pulls: Sequence[Mapping[int, list[tuple[int, float, float]]]]
    ) -> None:
        """Move the vertices of a layer to where they are drawn, as near as the order and the gaps allow.

        Without the gaps that is a sequence which must not fall: where two of them would, they share their mean.
        """
        blocks: list[list[float]] = []  # the sum of wishes, their weight, and how many vertices
        offset = 0.0
        offsets = []
        for place, vertex in enumerate(layer):
            offset += self._distance(layer, place)
            offsets.append(offset)
            near = [each for side in pulls for each in side.get(vertex, ())]
            weight = fsum(strength for _, _, strength in near)
            wish = (
                fsum((x[other] + beside) * strength for other, beside, strength in near) / weight if near else x[vertex]
            )
            # One that nothing draws stays, and gives way.
            weight = weight or 0.01
            blocks.append([(wish - offset) * weight, weight, 1])
            while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
                last = blocks.pop()
                blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
        positions = iter(layer)
        at = iter(offsets)
        for total, weight, count in blocks:
            for _ in range(int(count)):
                x[next(positions)] = total / weight + next(at)

    # Rows, and the lines.

    def layout(self) -> Layout:
        x = self._x
        left = min(x[vertex] - self._width(vertex) / 2 for vertex in x)
        x = {vertex: at - left for vertex, at in x.items()}
        back = [number for number, is_back in enumerate(self._found.back) if is_back]
        runs = self._runs(back)
        tops: list[float] = []
        bottoms: list[float] = []
        at = 0.0
        for rank, layer in enumerate(self._layers):
            # Above the first layer there is room for runs alone.
            at += LANE * runs.get(rank, 0) + (LAYER_GAP if rank else 0.0)
            tops.append(at)
            at += max((self._shapes[vertex].height for vertex in layer if vertex < len(self._names)), default=0.0)
            bottoms.append(at)
        height = at + (LANE * runs[len(tops)] if runs.get(len(tops)) else 0.0)
        places = {}
        for vertex, name in enumerate(self._names):
            corner = x[vertex] - self._width(vertex) / 2
            exits = {exit_name: corner + offset for exit_name, offset in self._exits[vertex].items()}
            places[name] = BoxPosition(corner, tops[self._rank[vertex]], exits)
        routes: dict[int, Route] = {}
        for number, path in enumerate(self._found.paths):
            if not self._found.back[number]:
                routes[number] = Route(self._edges[number], self._down(number, path, x, tops, bottoms), False)
        lanes = [max(x[vertex] + self._width(vertex) / 2 for vertex in layer) for layer in self._layers]
        used: dict[int, int] = {}
        for number in sorted(back, key=self._span):
            routes[number] = Route(self._edges[number], self._round(number, x, tops, bottoms, lanes, used), True)
        width = max(lanes)
        return Layout(places, tuple(routes[number] for number in range(len(routes))), width, height)

    def _span(self, number: int) -> int:
        source, target = self._found.paths[number]
        return self._rank[source] - self._rank[target]

    def _runs(self, back: Sequence[int]) -> dict[int, int]:
        """How many lines run along the gap above each layer; each line back does so twice."""
        runs: dict[int, int] = {}
        for number in back:
            source, target = self._found.paths[number]
            for gap in (self._rank[source] + 1, self._rank[target]):
                runs[gap] = runs.get(gap, 0) + 1
        return runs

    def _down(
        self, number: int, path: Sequence[int], x: Mapping[int, float], tops: Sequence[float], bottoms: Sequence[float]
    ) -> tuple[Point, ...]:
        source = path[0]
        at = x[source] + self._exit_middle(source, self._edges[number].exit)
        rank = self._rank[source]
        points = [(at, tops[rank] + self._shapes[source].height), (at, bottoms[rank])]
        for vertex in path[1:-1]:
            points += [(x[vertex], tops[self._rank[vertex]]), (x[vertex], bottoms[self._rank[vertex]])]
        return (*points, (x[path[-1]], tops[self._rank[path[-1]]]))

    def _round(
        self,
        number: int,
        x: Mapping[int, float],
        tops: Sequence[float],
        bottoms: Sequence[float],
        lanes: list[float],
        used: dict[int, int],
    ) -> tuple[Point, ...]:
        """Down, to the right of all that is in the way, up, and to the target from above."""
        source, target = self._found.paths[number]
        low, high = self._rank[source], self._rank[target]
        lane = max(lanes[high : low + 1]) + LANE + LINE_GAP / 2
        for rank in range(high, low + 1):
            lanes[rank] = lane
        down, up = (used.get(gap, 0) for gap in (low + 1, high))
        used[low + 1] = down + 1
        used[high] = used.get(high, 0) + 1
        up = used[high]
        at = x[source] + self._exit_middle(source, self._edges[number].exit)
        beneath = bottoms[low] + LANE * (down + 1)
        above = tops[high] - LANE * (up + 0.5)
        into = x[target] + min(self._width(target) / 2 - 12, 10.0 * up)
        start = tops[low] + self._shapes[source].height
        return (at, start), (at, beneath), (lane, beneath), (lane, above), (into, above), (into, tops[high])


def _align(run: Sequence[int], x: dict[int, float], least: float, most: float) -> None:
    """Give all of them the same place: in the middle of those that they have, within the limits."""
    if run:
        middle = fsum(x[vertex] for vertex in run) / len(run)
        for vertex in run:
            x[vertex] = min(max(middle, least), most)
