"""Boxes that do not overlap, lines that go where they should, and pictures that are made in time."""

from __future__ import annotations

import random
from itertools import combinations
from time import process_time

import pytest

from trunkline.agents.graph.drawing.layers import layered
from trunkline.agents.graph.drawing.layout import Box, Edge, Layout, arrange


def crowd(count: int, seed: int, *, back: float = 0.1) -> tuple[dict[str, Box], list[Edge]]:
    """Boxes of many sizes with up to two exits each, some of which lead back or nowhere near."""
    dice = random.Random(seed)
    shapes = {}
    edges = []
    for number in range(count):
        exits = ["a", "b"][: dice.randint(1, 2)]
        width = dice.choice((80.0, 140.0, 260.0))
        shapes[str(number)] = Box(width, dice.choice((40.0, 90.0, 150.0)), {name: width / len(exits) for name in exits})
        for name in exits:
            ahead = dice.randrange(number, min(count, number + 6))
            target = dice.randrange(number + 1) if dice.random() < back else ahead
            if dice.random() < 0.9:
                edges.append(Edge(str(number), name, str(target)))
    return shapes, edges


def assert_sound(shapes: dict[str, Box], layout: Layout) -> None:
    boxes = {
        name: (place.x, place.y, place.x + shapes[name].width, place.y + shapes[name].height)
        for name, place in layout.places.items()
    }
    assert set(boxes) == set(shapes)
    for one, other in combinations(boxes.values(), 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1], (one, other)
    for left, top, right, bottom in boxes.values():
        assert left >= -0.1
        assert right <= layout.width + 0.1
        assert top >= -0.1
        assert bottom <= layout.height + 0.1
    for name, place in layout.places.items():
        for exit_name, x in place.exits.items():
            assert place.x - 0.1 <= x <= place.x + shapes[name].width - shapes[name].exits[exit_name] + 0.1
    for route in layout.routes:
        source, target = boxes[route.edge.source], boxes[route.edge.target]
        (x, y), (to_x, to_y) = route.points[0], route.points[-1]
        assert source[0] <= x <= source[2]
        assert y == source[3]
        assert target[0] <= to_x <= target[2]
        assert to_y == target[1]
        assert route.back == (target[1] <= source[1])
        # Pieces that go straight up or down touch no box.
        for (ax, ay), (bx, by) in zip(route.points[1:], route.points[2:], strict=False):
            if ax == bx:
                for left, top, right, bottom in boxes.values():
                    assert not (left < ax < right and min(ay, by) < bottom - 0.1 and max(ay, by) > top + 0.1)


@pytest.mark.parametrize("seed", range(12))
def test_boxes_do_not_overlap_and_lines_go_down_or_round_the_side(seed: int) -> None:
    shapes, edges = crowd(30, seed)
    layout = arrange(shapes, edges, "0")
    assert_sound(shapes, layout)
    assert [route.edge for route in layout.routes] == edges


def test_one_box_two_boxes_and_a_box_that_leads_to_itself() -> None:
    shape = Box(100.0, 50.0, {"a": 50.0, "b": 50.0})
    for edges in ([], [Edge("0", "a", "0")], [Edge("0", "a", "1"), Edge("0", "b", "1"), Edge("1", "a", "0")]):
        shapes = {"0": shape, "1": shape} if len(edges) > 1 else {"0": shape}
        assert_sound(shapes, arrange(shapes, edges, "0"))


def test_a_long_line_is_straight_where_there_is_room() -> None:
    shapes = {str(number): Box(100.0, 50.0, {"a": 50.0, "b": 50.0}) for number in range(8)}
    edges = [Edge(str(number), "a", str(number + 1)) for number in range(7)] + [Edge("0", "b", "7")]
    layout = arrange(shapes, edges, "0")
    assert_sound(shapes, layout)
    (long,) = (route for route in layout.routes if route.edge.exit == "b")
    assert len({round(x, 3) for x, _ in long.points[2:-1]}) == 1


def test_edges_to_one_target_share_their_way() -> None:
    found = layered(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (1, 5)], [0])
    assert found.paths[5][2:] == found.paths[6][1:]
    assert found.back == (False,) * 7


def test_few_edges_cross() -> None:
    # Two chains that were written down crosswise.
    found = layered(6, [(0, 1), (0, 2), (1, 4), (2, 3), (3, 5), (4, 5)], [0])
    first, second = found.layers[1], found.layers[2]
    assert [{1: 4, 2: 3}[vertex] for vertex in first] == list(second)


def test_what_nothing_leads_to_stands_right_above_what_it_leads_to() -> None:
    found = layered(6, [(0, 1), (1, 2), (2, 3), (4, 3), (4, 5)], [0])
    ranks = {vertex: rank for rank, layer in enumerate(found.layers) for vertex in layer}
    assert (ranks[4], ranks[5]) == (2, 3)


@pytest.mark.slow
def test_the_largest_graph_that_there_can_be_is_drawn_in_time() -> None:
    shapes = {str(number): Box(200.0, 90.0, {"a": 90.0, "b": 90.0}) for number in range(256)}
    chain = [Edge(str(number), "a", str(number + 1)) for number in range(255)]
    dice = random.Random(1)
    began = process_time()
    arrange(shapes, [*chain, *(Edge(str(number), "b", str(dice.randrange(256))) for number in range(256))], "0")
    assert process_time() - began < 8
