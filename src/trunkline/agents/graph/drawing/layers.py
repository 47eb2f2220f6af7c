"""Which layer each vertex of a picture is in, and in which order the vertices of a layer stand.

The first step of the usual way to draw a directed graph in layers: edges that lead back are put aside, every other edge
leads down; an edge that skips layers gets a vertex without extent in each of them. All edges to one target share those,
and so become one line before they arrive, which is easier to follow than a bundle. Then the layers are sorted, up and
down, until few edges cross.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from itertools import pairwise

from trunkline.base.values import Value

#: How often all layers are sorted. It helps little after the first few.
_SWEEPS = 12
#: Vertices beyond which crossings are not counted: that is a wall of boxes, however it is sorted.
_MANY = 6000

Link = tuple[int, int]
"""From a vertex to one in the next layer."""


class Layered(Value):
    """Vertices in layers. Those from the number of real ones on have no extent: edges pass through them."""

    layers: tuple[tuple[int, ...], ...]
    paths: tuple[tuple[int, ...], ...]
    """For each edge the vertices that it passes, both ends included; for one that leads back only its ends."""
    back: tuple[bool, ...]
    """For each edge whether it leads back."""


def layered(count: int, edges: Sequence[Link], roots: Iterable[int]) -> Layered:
    """Put vertices, which are numbers below `count`, into layers. Edges that lead back are found from the roots on."""
    roots = tuple(roots)
    back = _leading_back(count, edges, roots)
    forward = [edge for edge, is_back in zip(edges, back, strict=True) if not is_back]
    ranks = _ranks(count, forward, roots)
    layers: list[list[int]] = [[] for _ in range(max(ranks, default=0) + 1)]
    for vertex, rank in enumerate(ranks):
        layers[rank].append(vertex)
    shared: dict[Link, int] = {}
    paths = []
    for (source, target), is_back in zip(edges, back, strict=True):
        path = [source]
        for rank in range(ranks[source] + 1, ranks[target] if not is_back else 0):
            if (target, rank) not in shared:
                shared[target, rank] = count + len(shared)
                layers[rank].append(shared[target, rank])
            path.append(shared[target, rank])
        paths.append((*path, target))
    ordered = _ordered(layers, _links(paths, back))
    return Layered(tuple(map(tuple, ordered)), tuple(paths), tuple(back))


def _leading_back(count: int, edges: Sequence[Link], roots: Iterable[int]) -> list[bool]:
    """Whether each edge leads to a vertex that a walk from the roots is still inside of."""
    out: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for number, (source, target) in enumerate(edges):
        out[source].append((number, target))
    back = [False] * len(edges)
    # 1 while the walk is inside of a vertex, 2 when it is done with it.
    state = [0] * count
    for root in (*roots, *range(count)):
        if state[root]:
            continue
        state[root] = 1
        walk = [(root, iter(out[root]))]
        while walk:
            vertex, rest = walk[-1]
            for number, target in rest:
                if state[target] == 1:
                    back[number] = True
                elif not state[target]:
                    state[target] = 1
                    walk.append((target, iter(out[target])))
                    break
            else:
                state[vertex] = 2
                walk.pop()
    return back


def _ranks(count: int, edges: Sequence[Link], roots: Iterable[int]) -> list[int]:
    """The length of the longest way to each vertex."""
    into = [0] * count
    out: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        out[source].append(target)
        into[target] += 1
    ranks = [0] * count
    waiting = [vertex for vertex in range(count) if not into[vertex]]
    while waiting:
        vertex = waiting.pop()
        for target in out[vertex]:
            ranks[target] = max(ranks[target], ranks[vertex] + 1)
            into[target] -= 1
            if not into[target]:
                waiting.append(target)
    return _tightened(ranks, out, set(roots))


def _tightened(ranks: list[int], out: Sequence[Sequence[int]], roots: set[int]) -> list[int]:
    """Move what no edge leads to right above what it leads to itself, and the ends below it along."""
    sources: dict[int, set[int]] = {}
    for source, targets in enumerate(out):
        for target in targets:
            sources.setdefault(target, set()).add(source)
    alone = {target for target, found in sources.items() if len(found) == 1 and not out[target]}
    for vertex in sorted(range(len(ranks)), key=ranks.__getitem__, reverse=True):
        followed = [ranks[target] for target in out[vertex] if target not in alone]
        if vertex not in sources and vertex not in roots and followed:
            ranks[vertex] = min(followed) - 1
            for target in out[vertex]:
                if target in alone:
                    ranks[target] = ranks[vertex] + 1
    return ranks


def _links(paths: Sequence[Sequence[int]], back: Sequence[bool]) -> set[Link]:
    return {link for path, is_back in zip(paths, back, strict=True) if not is_back for link in pairwise(path)}


# The order within layers.


def _ordered(layers: list[list[int]], links: set[Link]) -> list[list[int]]:
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for source, target in links:
        below.setdefault(source, []).append(target)
        above.setdefault(target, []).append(source)
    many = sum(map(len, layers)) > _MANY
    best, fewest = layers, _crossings(layers, below) if not many else 0
    for sweep in range(_SWEEPS if not many else 2):
        layers = [list(layer) for layer in layers]
        down = not sweep % 2
        order = range(1, len(layers)) if down else range(len(layers) - 2, -1, -1)
        for rank in order:
            fixed = layers[rank - 1 if down else rank + 1]
            _sort(layers[rank], fixed, above if down else below)
        crossings = _crossings(layers, below) if not many else -sweep
        if crossings < fewest:
            best, fewest = layers, crossings
        if not fewest and not many:
            break
    return best


def _sort(layer: list[int], fixed: Sequence[int], neighbours: dict[int, list[int]]) -> None:
    """By the middle of their neighbours. Those without any stay where they are."""
    place = {vertex: number for number, vertex in enumerate(fixed)}
    means = {
        vertex: sum(place[each] for each in near) / len(near) for vertex in layer if (near := neighbours.get(vertex))
    }
    sorted_ones = iter(sorted(means, key=means.__getitem__))
    layer[:] = [next(sorted_ones) if vertex in means else vertex for vertex in layer]


def _crossings(layers: Sequence[Sequence[int]], below: dict[int, list[int]]) -> int:
    total = 0
    for upper, lower in pairwise(layers):
        place = {vertex: number for number, vertex in enumerate(lower)}
        seen: list[int] = []
        for vertex in upper:
            ends = sorted(place[target] for target in below.get(vertex, ()))
            # An edge crosses those that began further left and end further right.
            total += sum(len(seen) - _after(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _after(seen: Sequence[int], end: int) -> int:
    return bisect_left(seen, end + 1)
