"""What the kit writes by hand is read by trunkline's codec and by generated code alike."""

from __future__ import annotations

import pytest

from tests.wires.tryll import foreign
from trunkline.conform.tryll import raw
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import Malformed, decode


@pytest.mark.parametrize("text", [b"", b"abc", b"four", "Grüße".encode()])
@pytest.mark.parametrize("positions", [0, 40])
def test_good_sketches_are_messages(text: bytes, positions: int) -> None:
    wanted = m.SendMessageRequest(2**64 - 1, 7, text.decode())
    payload = raw.send(2**64 - 1, 7, text, positions=positions).data
    assert decode(payload) == wanted
    assert foreign.read(payload) == wanted


def test_a_vector_of_strings_is_one() -> None:
    wanted = m.CreateStringStorageRequest(5, "lines", ("one", "", "three"))
    payload = raw.strings(5, b"lines", (b"one", b"", b"three")).data
    assert decode(payload) == wanted
    assert foreign.read(payload) == wanted


def test_numbers_of_eight_bytes_lie_where_strict_readers_want_them() -> None:
    for positions in range(8):
        made = raw.send(1, 2, b"x", positions=positions)
        assert [made.places[position] % 8 for position in (0, 1)] == [0, 0]


def test_the_largest_frame_has_exactly_its_size() -> None:
    for size in (1000, raw.MAX_FRAME):
        payload = raw.send_of_size(3, 4, size)
        assert len(payload) == size
        assert isinstance(decode(payload), m.SendMessageRequest)


def test_aliases_are_one_text_again_and_again() -> None:
    found = decode(raw.aliased(6, 3, 5))
    assert found == m.CreateStringStorageRequest(6, "alias", ("xxxxx",) * 3)
    with pytest.raises(Malformed):
        decode(raw.aliased(6, 100_000, 600_000))
    assert len(raw.aliased(6, 100_000, 600_000)) <= raw.MAX_FRAME


def test_a_sketch_can_be_bent_at_each_of_its_parts() -> None:
    made = raw.send(1, 2, b"hello")
    assert decode(made.but(made.places[1], "Q", 9)) == m.SendMessageRequest(1, 9, "hello")
    assert decode(made.but(made.slot(1), "H", 0)) == m.SendMessageRequest(1, 0, "hello")
    with pytest.raises(Malformed):
        decode(made.but(made.targets[2], "I", 1000))
