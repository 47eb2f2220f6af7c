"""Fuzzes the codec of the Tryll wire with mutated frames.

    python -m tests.fuzz.tryll_codec [--json] [--runs N] [--seconds S] [--seed X]

With `--json` it is the JSON form that is fuzzed, with texts, some of which are JSON with other values.

Frames of all kinds are the seeds, as we write them and as others do. Our own mutator changes bytes; half of the time
this one goes first, and changes what a FlatBuffer is made of: offsets, lengths and vtables. An input that breaks a
promise of `tryll_target` is a finding: it is written to a file, and a command that feeds it again is printed.

Exit codes: 0 when nothing was found, 1 when something was, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from struct import pack_into, unpack_from

from tests.fuzz import tryll_json_target, tryll_target
from tests.fuzz.mutation import Mutator, fuzz
from tests.wires.tryll import hostile
from tests.wires.tryll.codec.test_codec import FOREIGN
from tests.wires.tryll.samples import ALL
from trunkline.wires.tryll.codec import encode
from trunkline.wires.tryll.codec.writer import write

EXIT_FOUND = 1

ROOT = Path(__file__).resolve().parent.parent.parent
MODULE = "tests.fuzz.tryll_codec"

FOR_EVER_SECONDS = 10.0**9
NO_END_OF_RUNS = 2**62
#: So that somebody who waits for a million inputs sees that there is progress.
PROGRESS_SECONDS = 30
#: Numbers that stand for something: nothing, the least, the widths, the limits, signs.
NUMBERS = (0, 1, 2, 3, 4, 8, 12, 16, 250, 255, 256, 65535, 2**20, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1)

TOKENS = (b"\0", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x04\0\0\0", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\xc3")


def seeds() -> list[bytes]:
    """A byte that says how to cut the stream, and a payload."""
    found = [make(message) for message in ALL for make in (encode, write)]
    found += [bytes.fromhex(text)[4:] for text in FOREIGN]
    found += [hostile.same_string(20, 20), hostile.event_of_one_text(20, 3), hostile.event_of_one_text(20, 20)]
    return [bytes([len(payload) & 255]) + payload for payload in found]


class FrameMutator(Mutator):
    """Also changes numbers where a FlatBuffer has them."""

    def __init__(self, begin: list[bytes], seed: int) -> None:
        super().__init__(begin, TOKENS, seed)
        self._dice = random.Random(seed)

    def next(self) -> bytes:
        """One more input."""
        if self._dice.random() < 0.5:
            return super().next()
        data = bytearray(self._choose())
        for _ in range(self._dice.randint(1, 4)):
            self._number(data)
        return bytes(data)

    def _number(self, data: bytearray) -> None:
        """Change an offset, a length or an entry of a vtable: to something special, or by a little."""
        form, width = self._dice.choice((("<I", 4), ("<I", 4), ("<H", 2), ("<B", 1)))
        places = (len(data) - 1) // width
        if places < 1:
            return
        at = 1 + width * self._dice.randrange(places)
        old = unpack_from(form, data, at)[0]
        way = self._dice.random()
        if way < 0.4:
            new = self._dice.choice(NUMBERS)
        elif way < 0.8:
            new = old + self._dice.choice((-16, -8, -4, -2, -1, 1, 2, 4, 8, 16))
        elif way < 0.9:
            # What leads somewhere leads somewhere else, that exists.
            new = self._dice.randrange(len(data))
        else:
            # What leads back, as to a vtable, leads to about the beginning.
            new = at - 1 + self._dice.randint(-8, 8)
        pack_into(form, data, at, new % (1 << 8 * width))


def main(arguments: list[str] | None = None) -> int:
    """Fuzz as the command line says."""
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description="Fuzz the codec of the Tryll wire.")
    add = parser.add_argument
    add("--json", action="store_true", help="fuzz the JSON form")
    add("--runs", type=int, metavar="N", help="how many inputs (default: no end, unless --seconds is given)")
    add("--seconds", type=float, metavar="S", help="how long (default: 60 s, unless --runs is given)")
    add("--seed", type=int, metavar="X", help="makes a run repeatable (default: by the clock)")
    add("--findings", type=Path, default=ROOT / ".cache" / "fuzz", metavar="DIR", help="where findings are written")
    add("--reproduce", type=Path, metavar="FILE", help="feed one input that was found earlier")
    options = parser.parse_args(arguments)
    if options.reproduce is not None:
        return _reproduce(options)
    if options.runs is None and options.seconds is None:
        options.seconds = 60.0
    options.seed = time.time_ns() % 2**31 if options.seed is None else options.seed
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    executions = findings = 0
    started = time.monotonic()
    next_telling = started + PROGRESS_SECONDS

    target = _target(options)

    def one(data: bytes) -> frozenset[str]:
        nonlocal executions
        executions += 1
        try:
            return target(data)
        except Exception:
            _report(options, data)
            raise

    def tell(count: int) -> None:
        nonlocal next_telling
        if time.monotonic() >= next_telling:
            next_telling += PROGRESS_SECONDS
            print(f"{count} inputs so far", file=sys.stderr, flush=True)

    begin = tryll_json_target.seeds() if options.json else seeds()
    mutator = tryll_json_target.TextMutator(begin, options.seed) if options.json else FrameMutator(begin, options.seed)
    try:
        runs, seconds = options.runs or NO_END_OF_RUNS, options.seconds or FOR_EVER_SECONDS
        fuzz(one, mutator, begin, runs, seconds, tell)
    except KeyboardInterrupt:
        pass
    except Exception:
        # It has been reported.
        findings = 1
    taken = time.monotonic() - started
    print(
        f"seed={options.seed} executions={executions} seconds={taken:.1f}"
        f" per_second={executions / max(taken, 1e-9):.0f} findings={findings}",
        flush=True,
    )
    return EXIT_FOUND if findings else 0


def _target(options: argparse.Namespace) -> Callable[[bytes], frozenset[str]]:
    return tryll_json_target.check if options.json else tryll_target.check


def _report(options: argparse.Namespace, data: bytes) -> None:
    """Keep the input that raised the exception which is being handled, and tell of both."""
    options.findings.mkdir(parents=True, exist_ok=True)
    path = options.findings / f"tryll-{hashlib.sha256(data).hexdigest()[:16]}"
    path.write_bytes(data)
    traceback.print_exc()
    print(f"finding: {path}\nreproduce: python -m {MODULE}{' --json' * options.json} --reproduce {path}", flush=True)


def _reproduce(options: argparse.Namespace) -> int:
    try:
        print(f"no finding: {sorted(_target(options)(options.reproduce.read_bytes()))}")
    except Exception:
        traceback.print_exc()
        return EXIT_FOUND
    return 0


if __name__ == "__main__":
    sys.exit(main())
