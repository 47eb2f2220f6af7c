"""The patterns of guardrails: compiled within limits, and looked for within others.

A pattern is a regular expression from somebody who may mean harm. Compiled it takes some hundred times its length, and
on a message it can take longer than the universe lasts.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

#: Characters of a pattern.
MAX_PATTERN = 4096
#: Patterns of a guardrail.
MAX_PATTERNS = 10_000
#: How often all counted repetitions of a pattern, multiplied, may repeat. The engine spells counts out, with a quarter
#: of a kilobyte for each.
MAX_REPEATS = 10_000
#: Characters and repetitions of all patterns of one agent together. The worst of them take 0.4 KiB each, and no frame
#: may cost more than 64 MiB.
MAX_WEIGHT = 100_000
#: What a pattern weighs beside its characters.
_EACH = 4

#: Seconds that one pattern may be looked for. It fills up to half a gigabyte of memory per second on the way.
PATTERN_SECONDS = 0.25
#: Threads for the patterns of all sessions. They are for nothing else, so that nobody who waits for a file, a list of
#: models or an embedding waits for a pattern.
THREADS = 2

_COUNTS = re.compile(r"\{(\d*),?(\d*)\}")
#: `(?R)`, `(?1)`, `(?&name)`, `(?P>name)`: how a pattern calls itself, which fills memory in no time.
_RECURSION = re.compile(r"(?<!\\)(?:\\\\)*\(\?(?:R|\d|&|P>)")


class PatternError(Exception):
    """A pattern is none, or too much. The text says which, and why."""


def pattern_threads() -> ThreadPoolExecutor:
    """The threads of a server."""
    return ThreadPoolExecutor(THREADS, "patterns")


class Aside:
    """What takes a session long with its patterns: in a thread, one thing at a time.

    So each session has at most one thing in the queue of the threads. Whoever asks for much waits for their own, and
    among sessions it goes round.
    """

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._turn = asyncio.Lock()

    @property
    def busy(self) -> bool:
        """Whether it does something."""
        return self._turn.locked()

    async def do(self, work: Callable[[], T]) -> T:
        """Do it when it is its turn. Who is cancelled waits no longer; what has begun is done all the same."""
        await self._turn.acquire()
        try:
            doing = asyncio.get_running_loop().run_in_executor(self._threads, work)
        except BaseException:
            self._turn.release()
            raise
        doing.add_done_callback(self._done)
        await asyncio.wait({doing})
        return doing.result()

    def _done(self, doing: asyncio.Future[Any]) -> None:
        self._turn.release()
        if not doing.cancelled():
            # If it failed, and nobody waits for it any more, there is nobody to tell.
            doing.exception()


class PatternBook:
    """The patterns of one agent. What several nodes look for is there once, for as long as one of them does."""

    def __init__(self, aside: Aside | None = None) -> None:
        self.aside = aside if aside is not None else Aside(pattern_threads())
        """For what takes long."""
        self._kept: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._weights: dict[str, int] = {}

    def compile(self, lines: Sequence[str]) -> list[Any]:
        """The patterns of some lines.

        Raises:
            PatternError: one is none, or all of the agent's are too much.
        """
        check_size(lines)
        self._weights = {line: self._weights[line] for line in list(self._kept)}
        weight = sum(self._weights.values())
        patterns = []
        for number, line in enumerate(lines):
            found = self._kept.get(line)
            if found is None:
                self._weights[line] = _weight(line)
                weight += self._weights[line]
                if weight > MAX_WEIGHT:
                    raise _wrong(number, line, "all patterns of the agent together are too much")
                found = self._kept[line] = _compiled(number, line)
            patterns.append(found)
        return patterns


def check_size(lines: Sequence[str]) -> None:
    """Look at patterns without compiling them.

    Raises:
        PatternError: they are too much.
    """
    if len(lines) > MAX_PATTERNS:
        raise PatternError(f"more than {MAX_PATTERNS} patterns")
    for number, line in enumerate(lines):
        if len(line) > MAX_PATTERN:
            raise PatternError(f"pattern {number} has more than {MAX_PATTERN} characters")
        if _repeats(line) > MAX_REPEATS:
            raise _wrong(number, line, "too many repetitions")


def first(patterns: Sequence[Any], text: str, start: int, seconds: float, *, beside: bool) -> int | None:
    """The first pattern, from one on, that is found. `beside`: in a thread, while others run.

    Raises:
        TimeoutError: it took too long; holds the number of the pattern at which the time was over.
    """
    end = monotonic() + seconds
    for number in range(start, len(patterns)):
        left = min(end - monotonic(), PATTERN_SECONDS)
        try:
            if left <= 0:
                raise TimeoutError
            if patterns[number].search(text, concurrent=beside, timeout=left):
                return number
        except TimeoutError:
            raise TimeoutError(number) from None
    return None


def _compiled(number: int, line: str) -> Any:
    import regex

    try:
        if _RECURSION.search(line):
            raise ValueError("patterns within themselves are not for guardrails")
        # Kept by whoever uses it, and by nobody else.
        return regex.compile(line, regex.IGNORECASE | regex.VERSION0, cache_pattern=False)
    except (regex.error, RecursionError, OverflowError, ValueError, KeyError) as error:
        raise _wrong(number, line, str(error)) from None


def _weight(line: str) -> int:
    repeats = _repeats(line)
    return _EACH + len(line) + (repeats if repeats > 1 else 0)


def _repeats(line: str) -> int:
    """How often the counts of a pattern repeat, multiplied, as if all of them were within each other."""
    repeats = 1
    for least, most in _COUNTS.findall(line):
        repeats *= max(1, *(int(count[:9] or "1") for count in (least, most)))
        if repeats > MAX_REPEATS:
            break
    return repeats


def _wrong(number: int, line: str, problem: str) -> PatternError:
    return PatternError(f"pattern {number} (`{line[:80]}`): {problem}")
