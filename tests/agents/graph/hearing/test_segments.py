"""Speech has a beginning, an end, and pauses that do not matter."""

from __future__ import annotations

from trunkline.agents.graph.hearing.segments import SegmentEdge, Segmenter

WINDOW = 512
SECOND = 16000


def made(**options: float) -> Segmenter:
    numbers = {"min_silence": 8000, "pad": 4000, "longest": 15 * 16_000} | {
        key: int(value) for key, value in options.items()
    }
    return Segmenter(window=WINDOW, threshold=0.5, **numbers)


def walk(segmenter: Segmenter, *parts: tuple[float, float]) -> list[tuple[SegmentEdge, int, int]]:
    """Take so many seconds of each probability; gives each edge with the segment that it is about."""
    found = []
    for seconds, probability in parts:
        for _ in range(round(seconds * SECOND / WINDOW)):
            edge = segmenter.step(probability)
            if edge is not None:
                found.append((edge, segmenter.begin, segmenter.end))
            if edge is SegmentEdge.SPLIT:
                segmenter.go_on(segmenter.position)
    return found


def test_a_segment_is_speech_with_a_little_before_and_after() -> None:
    (opened, closed) = walk(made(), (1.024, 0.1), (2.048, 0.9), (1, 0.1))
    begin, end = 16384, 16384 + 32768
    assert opened[:2] == (SegmentEdge.OPENED, begin - 4000)
    assert closed == (SegmentEdge.CLOSED, begin - 4000, end + 4000)


def test_clicks_are_no_speech_and_short_pauses_no_end() -> None:
    segmenter = made()
    for _ in range(20):
        assert walk(segmenter, (0.064, 0.9), (0.064, 0.1)) == []
    edges = walk(segmenter, (0.5, 0.9), (0.4, 0.1), (0.5, 0.9), (0.5, 0.4), (0.5, 0.9), (0.6, 0.1))
    assert [edge for edge, _, _ in edges] == [SegmentEdge.OPENED, SegmentEdge.CLOSED]


def test_segments_do_not_overlap() -> None:
    edges = walk(made(min_silence=0, pad=16000), (0.2, 0.9), (0.1, 0.1), (0.2, 0.9), (0.1, 0.1))
    (_, _, _), (_, _, first_end), (_, second_begin, _), _ = edges
    assert second_begin == first_end


def test_the_end_is_settled_when_more_silence_does_not_move_it() -> None:
    segmenter = made()
    walk(segmenter, (1.024, 0.9), (0.128, 0.1))
    before = segmenter.settled
    walk(segmenter, (0.16, 0.1))
    assert (before, segmenter.settled) == (False, True)
    end = segmenter.end
    (closed,) = walk(segmenter, (0.5, 0.1))
    assert closed[2] == end


def test_long_speech_is_split_in_a_short_pause_or_anyway() -> None:
    edges = walk(made(), (5, 0.9), (0.2, 0.1), (7, 0.9), (0.2, 0.1), (16, 0.9), (1, 0.1))
    assert [edge for edge, _, _ in edges] == [
        SegmentEdge.OPENED,
        SegmentEdge.SPLIT,
        SegmentEdge.SPLIT,
        SegmentEdge.CLOSED,
    ]
    lengths = [(end - begin) / SECOND for edge, begin, end in edges if edge is not SegmentEdge.OPENED]
    assert 12.2 <= lengths[0] <= 12.4
    assert 15 <= lengths[1] <= 15.04
    assert [begin for _, begin, _ in edges[2:]] == [end for _, _, end in edges[1:3]]


def test_only_the_sound_of_the_segment_is_needed() -> None:
    segmenter = made(min_silence=2**32)
    walk(segmenter, (600, 0.1))
    assert segmenter.position - segmenter.needed < 6000
    # Also if the pause is never long enough.
    edges = walk(segmenter, (1, 0.9), (600, 0.1))
    assert edges[0][0] is SegmentEdge.OPENED
    assert {edge for edge, _, _ in edges[1:]} == {SegmentEdge.SPLIT}
    assert all(begin == end for _, begin, end in edges[2:])
    assert segmenter.position - segmenter.needed < 15 * SECOND
