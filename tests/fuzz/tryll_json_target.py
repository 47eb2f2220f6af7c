"""What must hold for the JSON form of the Tryll wire, whatever text it is fed."""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any

from tests.fuzz.mutation import Mutator
from tests.fuzz.tryll_target import Finding
from tests.wires.tryll.samples import ALL
from trunkline.base.printable import printable_line
from trunkline.wires.tryll.codec import Malformed, UnknownKind, Unsendable, decode, encode, json_form

#: A fault repeats a name or two, in part, and lists the names that it expected.
LONGEST_FAULT = 300

TOKENS = (
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"null", b"true", b"-1", b"1e999", b"1.0",
    b"NaN", b"18446744073709551616",
    b"\\ud800", b"\\u0000", b"\xff", b'"type":', b'"request_id":', b'"params":{', b'"pcm":"AAA"', b'"AAAA"', b"[[[[[[",
    b'{"type":"GenerateParams"}', b'"stt_engine":"Mock"', b'"', b"\\",
)  # fmt: skip

#: What a field may not be able to hold.
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 255, 256, 2**31, 2**32, 2**53 + 1, 2**64 - 1, 2**64, 1.0, 2.0**53, 0.15, 1e40, 1e300, "", "7",
    "18446744073709551615",
    "\ud800", "\ud83d\ude00", "\0", "AAAA", "AAA=", "Mock", "RoundRobin", "x" * 300, [], [None], {},
    {"type": "GenerateParams"}, {"type": "SpeakParams", "speed": 2}, {"type": "None"}, [{}], [[]],
)  # fmt: skip


def seeds() -> list[bytes]:
    """All messages, in order and with what others write differently."""
    found = [json_form.encode(message) for message in ALL]
    found += [re.sub(rb":([0-9])(?=[,}])", rb":\1.0", text) for text in found]
    return found


class TextMutator(Mutator):
    """Half of the time changes a value somewhere in a message, and what comes of that is JSON still."""

    def __init__(self, begin: list[bytes], seed: int) -> None:
        super().__init__(begin, TOKENS, seed)
        self._begin = begin
        self._dice = random.Random(seed)

    def next(self) -> bytes:
        """One more input."""
        if self._dice.random() < 0.5:
            return super().next()
        message = json.loads(self._dice.choice(self._begin))
        for _ in range(self._dice.randint(1, 3)):
            self._change(message)
        return json.dumps(message).encode()

    def _change(self, place: Any) -> None:
        """Put something else somewhere in an object or a list."""
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                return
            key = self._dice.choice(keys)
            inner = place[key]
            if not isinstance(inner, dict | list) or self._dice.random() < 0.3:
                break
            place = inner
        if isinstance(place, dict) and self._dice.random() < 0.1:
            place[self._dice.choice(("type", "nothing", "\x1b\n" * 40))] = place.pop(key)
        else:
            place[key] = copy.deepcopy(self._dice.choice(VALUES))


def check(data: bytes) -> frozenset[str]:
    """Feed one input to the codec.

    Returns:
        What kind of outcome there was: inputs that bring a new one are worth keeping.

    Raises:
        Finding: a promise was broken. Any other exception is a finding as well.
    """
    try:
        message = json_form.decode(data)
    except (Malformed, UnknownKind) as error:
        told = str(error)
        _expect(len(told) <= LONGEST_FAULT, f"a long fault: {told}")
        _expect(told == printable_line(told), f"a fault that a terminal would obey: {told!a}")
        _expect(0 <= error.request_id < 1 << 64, f"the request id {error.request_id}")
        return frozenset([type(error).__name__, told.rpartition("` ")[2][:40]])
    try:
        framed = decode(encode(message))
    except Unsendable:
        _expect(len(data) > 1 << 16, f"{message!r} fits into no frame")
        return frozenset([type(message).__name__])
    _expect(repr(framed) == repr(message), f"{message!r} is another message in a frame: {framed!r}")
    again = json_form.decode(json_form.encode(message))
    _expect(repr(again) == repr(message), f"{message!r} does not come back")
    return frozenset([type(message).__name__, str(len(repr(message)) // 16)])


def _expect(holds: bool, complaint: str) -> None:
    if not holds:
        raise Finding(complaint)
