"""Fuzzes the codec of the JSON stream.

    python -m tests.fuzz.jsonstream_codec [--runs N] [--seconds S] [--seed X]

With `atheris`, our own mutator begins and a fuzzer that is guided by coverage takes over; without it, ours does it all.
The target is the same. An input that breaks a promise, takes too long or needs too much memory is a finding: it is
written to a file, and a command that feeds it again is printed.

Exit codes: 0 when nothing was found, 1 when something was, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from tests.fuzz.corpus import SEEDS, TOKENS

EXIT_FOUND = 1

ROOT = Path(__file__).resolve().parent.parent.parent
MODULE = "tests.fuzz.jsonstream_codec"

#: An input of a few kilobytes takes a millisecond; one that takes this long would hang a host.
INPUT_SECONDS = 10
#: What one input may make a process grow to. The interpreter with its fuzzer needs about a tenth of it.
MEMORY_MIB = 1024
#: More than any run that somebody waits for.
FOR_EVER_SECONDS = 10.0**9
NO_END_OF_RUNS = 2**62

#: What libFuzzer makes is short: it loves long inputs, and they cost most of the time and find nothing that short ones
#: do not. Those that need length (deep nesting, long numbers) come from our own mutator.
MOST_BYTES = 400
#: Our own mutator's part of the inputs, and of the time, ahead of libFuzzer: it is four times as fast.
OWN_SHARE_OF_RUNS = 0.8
OWN_SHARE_OF_TIME = 0.25

#: So that somebody who waits for a million inputs sees that there is progress.
PROGRESS_SECONDS = 30

INSTRUMENTED = ["trunkline.wires.jsonstream", "trunkline.base", "tests.fuzz.planted"]


def main(arguments: list[str] | None = None) -> int:
    """Fuzz as the command line says."""
    options = _parse(arguments)
    if options.reproduce is not None:
        return _reproduce(options)
    if options.scratch is not None:
        _run_atheris(options)
    return _supervise(options) if options.engine == "atheris" else _run_own(options)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description="Fuzz the codec of the JSON stream.")
    add = parser.add_argument
    add("--runs", type=int, metavar="N", help="how many inputs (default: no end, unless --seconds is given)")
    add("--seconds", type=float, metavar="S", help="how long (default: 60 s, unless --runs is given)")
    add("--seed", type=int, metavar="X", help="makes a run of the own engine repeatable (default: by the clock)")
    add("--engine", choices=("atheris", "own"), help="default: atheris if it is installed")
    add("--findings", type=Path, default=ROOT / ".cache" / "fuzz", metavar="DIR", help="where findings are written")
    add("--reproduce", type=Path, metavar="FILE", help="feed one input that was found earlier")
    add("--plant", metavar="DEFECT", help="break the codec first, to see the fuzzer find it: see planted.py")
    add("--input-seconds", type=int, default=INPUT_SECONDS, metavar="S", help="how long one input may take")
    add("--own-share", type=float, default=OWN_SHARE_OF_RUNS, metavar="F", help="our own mutator's part of the runs")
    # Given by `_supervise` to the process that atheris runs in.
    add("--scratch", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.engine is None:
        options.engine = "atheris" if importlib.util.find_spec("atheris") else "own"
    if options.runs is None and options.seconds is None:
        options.seconds = 60.0
    # libFuzzer takes no more than 32 bits, and 0 as a wish for another one.
    options.seed = (time.time_ns() if options.seed is None else options.seed) % (2**31 - 1) + 1
    return options


def _target(options: argparse.Namespace) -> ModuleType:
    """The code under test, imported late: atheris changes it while it is imported."""
    from tests.fuzz import jsonstream_target

    if options.plant is not None:
        from tests.fuzz.planted import DEFECTS

        DEFECTS[options.plant]()
    return jsonstream_target


# The engines.


def _run_own(options: argparse.Namespace) -> int:
    from tests.fuzz.mutation import Mutator, fuzz

    target = _target(options)
    _limit_memory()
    executions = 0

    def one(data: bytes) -> frozenset[str]:
        nonlocal executions
        executions += 1
        try:
            return _timed(target, data, options.input_seconds)
        except Exception:
            _report(options, data)
            raise

    started = time.monotonic()
    mutator = Mutator(SEEDS, TOKENS, options.seed)
    findings = 0
    try:
        runs, seconds = options.runs or NO_END_OF_RUNS, options.seconds or FOR_EVER_SECONDS
        fuzz(one, mutator, SEEDS, runs, seconds, _Progress().tell)
    except KeyboardInterrupt:
        pass
    except Exception:
        # It has been reported.
        findings = 1
    _summarise(options, executions, started, findings)
    return EXIT_FOUND if findings else 0


def _timed(target: ModuleType, data: bytes, seconds: int) -> frozenset[str]:
    """Check one input; one that takes too long is a finding."""

    def too_slow(*_: object) -> NoReturn:
        raise target.Finding(f"one input takes more than {seconds} s")

    before = signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        found: frozenset[str] = target.check(data)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return found


def _limit_memory() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY_MIB * 1024 * 1024
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_AS, (limit if soft == resource.RLIM_INFINITY else min(soft, limit), hard))


def _run_atheris(options: argparse.Namespace) -> NoReturn:
    """In a process of its own, since libFuzzer ends the one that it runs in."""
    import atheris

    from tests.fuzz.mutation import Mutator, fuzz

    threading.Thread(target=_end_with_parent, daemon=True).start()
    with atheris.instrument_imports(include=INSTRUMENTED):
        target = _target(options)

    def one(check: Callable[[bytes], frozenset[str]], data: bytes) -> frozenset[str]:
        try:
            return check(data)
        except Exception:
            _report(options, data)
            # Past libFuzzer, which would tell it all once more.
            os._exit(EXIT_FOUND)

    timed = partial(one, lambda data: _timed(target, data, options.input_seconds))
    runs = NO_END_OF_RUNS if options.runs is None else max(1, round(options.runs * options.own_share))
    seconds = FOR_EVER_SECONDS if options.seconds is None else options.seconds * OWN_SHARE_OF_TIME
    progress = _Progress("Own {}")
    done = fuzz(timed, Mutator(SEEDS, TOKENS, options.seed), SEEDS, runs, seconds, progress.tell)
    progress.tell_now(done)
    if options.runs is not None:
        # None at all would be no end for libFuzzer.
        options.runs = max(1, options.runs - done)
    if options.seconds is not None:
        options.seconds -= seconds
    # From here on libFuzzer looks at the clock.
    atheris.Setup([MODULE, *_libfuzzer_options(options)], partial(one, target.check))
    atheris.Fuzz()
    raise AssertionError("libFuzzer ends the process")


def _end_with_parent() -> NoReturn:
    """Whatever becomes of the parent, its end of our standard input is closed then."""
    sys.stdin.buffer.read()
    os._exit(EXIT_FOUND)


def _libfuzzer_options(options: argparse.Namespace) -> list[str]:
    corpus, words = options.scratch / "corpus", options.scratch / "words"
    corpus.mkdir()
    for number, seed in enumerate(SEEDS):
        if len(seed) <= MOST_BYTES:
            (corpus / f"seed-{number:03}").write_bytes(seed)
    words.write_text("".join(f'"{_escaped(token)}"\n' for token in TOKENS))
    options.findings.mkdir(parents=True, exist_ok=True)
    found = [
        f"-dict={words}",
        f"-artifact_prefix={options.findings}/",
        f"-timeout={options.input_seconds}",
        f"-rss_limit_mb={MEMORY_MIB}",
        f"-max_len={MOST_BYTES}",
        f"-seed={options.seed}",
    ]
    if options.runs is not None:
        found.append(f"-runs={options.runs}")
    if options.seconds is not None:
        # Whole seconds only, and 0 would be no end.
        found.append(f"-max_total_time={max(1, round(options.seconds))}")
    return [*found, str(corpus)]


def _escaped(token: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in token)


_OWN_COUNT = re.compile(rb"^Own (\d+)")
_LIBFUZZER_COUNT = re.compile(rb"^(?:Done |#)(\d+)")
#: How libFuzzer names what it finds by itself: inputs that take too long or too much memory, and crashes of C code.
_LIBFUZZER_FOUND = re.compile(rb"Test unit written to (\S+)")
#: What is shown of its output when it ends badly.
_LAST_LINES = 40


def _supervise(options: argparse.Namespace) -> int:
    """Run atheris in a child; it ends with us, and we tell what it did."""
    command = [sys.executable, "-m", MODULE, "--engine", "atheris", *_passed_on(options)]
    started = time.monotonic()
    own = guided = findings = 0
    progress = _Progress()
    last: deque[bytes] = deque(maxlen=_LAST_LINES)
    with (
        tempfile.TemporaryDirectory(prefix="trunkline-fuzz-") as scratch,
        subprocess.Popen(
            [*command, "--scratch", scratch], cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE
        ) as child,
    ):
        assert child.stderr is not None
        try:
            for line in child.stderr:
                last.append(line)
                if count := _OWN_COUNT.match(line):
                    own = int(count[1])
                if count := _LIBFUZZER_COUNT.match(line):
                    guided = int(count[1])
                if found := _LIBFUZZER_FOUND.search(line):
                    findings = 1
                    _show(options, Path(os.fsdecode(found[1])))
                progress.tell(own + guided)
        except KeyboardInterrupt:
            child.terminate()
    if child.returncode:
        findings = 1
        sys.stderr.buffer.write(b"".join(last))
    _summarise(options, own + guided, started, findings)
    return EXIT_FOUND if findings else 0


def _passed_on(options: argparse.Namespace) -> list[str]:
    found = []
    for name in ("runs", "seconds", "seed", "plant", "findings", "input_seconds", "own_share"):
        value: Any = getattr(options, name)
        if value is not None:
            found += [f"--{name.replace('_', '-')}", str(value)]
    return found


# What is told.


class _Progress:
    """Says now and then, on standard error, how far it is."""

    def __init__(self, form: str = "{} inputs so far") -> None:
        self._form = form
        self._next = time.monotonic() + PROGRESS_SECONDS

    def tell(self, count: int) -> None:
        if time.monotonic() >= self._next:
            self._next += PROGRESS_SECONDS
            self.tell_now(count)

    def tell_now(self, count: int) -> None:
        print(self._form.format(count), file=sys.stderr, flush=True)


def _reproduce(options: argparse.Namespace) -> int:
    data = options.reproduce.read_bytes()
    target = _target(options)
    try:
        print(f"no finding: {sorted(target.check(data))}")
    except Exception:
        traceback.print_exc()
        return EXIT_FOUND
    return 0


def _report(options: argparse.Namespace, data: bytes) -> None:
    """Keep the input that raised the exception which is being handled, and tell of both."""
    options.findings.mkdir(parents=True, exist_ok=True)
    path = options.findings / f"finding-{hashlib.sha256(data).hexdigest()[:16]}"
    path.write_bytes(data)
    traceback.print_exc()
    _show(options, path)
    sys.stderr.flush()


def _show(options: argparse.Namespace, path: Path) -> None:
    again = ["python", "-m", MODULE, "--reproduce", str(path)]
    if options.plant is not None:
        again += ["--plant", options.plant]
    print(f"finding: {path}\nreproduce: {shlex.join(again)}", flush=True)


def _summarise(options: argparse.Namespace, executions: int, started: float, findings: int) -> None:
    seconds = time.monotonic() - started
    print(
        f"engine={options.engine} seed={options.seed} executions={executions} seconds={seconds:.1f}"
        f" per_second={executions / max(seconds, 1e-9):.0f} findings={findings}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
