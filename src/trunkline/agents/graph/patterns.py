"""The patterns of guardrails: compiled within limits, and looked for within others.

A pattern is a regular expression from somebody who may mean harm. Compiled it takes some hundred times its length, and
on a message it can take longer than the universe lasts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from sys import getsizeof
from threading import Event, Lock
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from trunkline.agents.graph.errors import GraphTextError
from trunkline.agents.graph.pattern_parts import count_parts, unfit

T = TypeVar("T")

#: Characters of a pattern.
MAX_PATTERN = 4096
#: Patterns of a guardrail.
MAX_PATTERNS = 10_000
#: Parts of a pattern once its repetitions are spelled out, as the engine does it: a quarter of a kilobyte for each.
MAX_PARTS = 10_000
#: Bytes that all patterns of a session may take: some 12,000 of 30 characters. No frame may cost more than 64 MiB.
MAX_BYTES = 64 * 1024 * 1024

#: Patterns that are compiled at once, their characters, and the parts that those become: some milliseconds. More are a
#: thread's work.
QUICK_PATTERNS = 32
QUICK_CHARACTERS = 1024
QUICK_PARTS = MAX_PARTS

#: Seconds that one pattern may be looked for. It fills up to half a gigabyte of memory per second on the way.
PATTERN_SECONDS = 0.25
#: Threads for the patterns of all sessions. They are for nothing else, so that nobody who waits for a file, a list of
#: models or an embedding waits for a pattern.
THREADS = 2

#: Whether whoever asked for something does not wait for it any more.
Left = Callable[[], bool]


class PatternError(GraphTextError):
    """A pattern is none, or too much. The text says which, and why."""


def pattern_threads() -> ThreadPoolExecutor:
    """The threads of a server."""
    return ThreadPoolExecutor(THREADS, "patterns")


class PatternThread:
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

    async def do(self, work: Callable[[Left], T]) -> T:
        """Do it when it is its turn. Who is cancelled waits no longer: then it is not begun, or told that they left."""
        await self._turn.acquire()
        left = Event()
        # A thread lets go of what it has done when it gets to it. What an agent had is to be gone with the agent.
        todo, done = [work], list[T]()
        del work
        try:
            begun = self._threads.submit(lambda: done.append(todo.pop()(left.is_set)))
        except BaseException:
            self._turn.release()
            raise
        doing = asyncio.wrap_future(begun)
        doing.add_done_callback(self._done)
        try:
            await asyncio.wait({doing})
        except BaseException:
            left.set()
            begun.cancel()
            raise
        doing.result()
        return done.pop()

    def _done(self, doing: asyncio.Future[Any]) -> None:
        self._turn.release()
        if not doing.cancelled():
            # If it failed, and nobody waits for it any more, there is nobody to tell.
            doing.exception()


class Patterns(list[Any]):
    """Those of some lines, in their order. Unlike a `list` it can be referred to weakly."""


def nobody_left() -> bool:
    """They wait."""
    return False


class PatternBook:
    """The patterns of one session: each is there once, whichever agents look for it, for as long as one of them does.

    For any thread: a few patterns are compiled by the event loop, while a thread is busy with many.
    """

    def __init__(self, aside: PatternThread | None = None) -> None:
        self.aside = aside if aside is not None else PatternThread(pattern_threads())
        """For what takes long."""
        self._lists: WeakValueDictionary[tuple[str, ...], Patterns] = WeakValueDictionary()
        self._kept: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._sizes: dict[str, int] = {}
        self._taken = 0
        self._lock = Lock()

    def compile(self, lines: Sequence[str], left: Left = nobody_left) -> Patterns:
        """The patterns of some lines.

        Raises:
            PatternError: one is none, or all of the session's are too much.
        """
        key = tuple(lines)
        if (known := self._lists.get(key)) is not None:
            return known
        check_size(key)
        found = Patterns()
        for number, line in enumerate(key):
            if left():
                raise PatternError("nobody is waiting for them")
            kept = self._kept.get(line)
            found.append(kept if kept is not None else self._keep(number, line, _compiled(number, line)))
        with self._lock:
            return self._lists.setdefault(key, found)

    def _keep(self, number: int, line: str, pattern: Any) -> Any:
        size = _size(line, pattern)
        with self._lock:
            if self._taken + size > MAX_BYTES:
                self._sizes = {each: self._sizes[each] for each in list(self._kept)}
                self._taken = sum(self._sizes.values())
            if self._taken + size > MAX_BYTES:
                raise _wrong(number, line, "all patterns of the session together are too much")
            kept = self._kept.setdefault(line, pattern)
            self._taken += size - self._sizes.get(line, 0)
            self._sizes[line] = size
        return kept


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
    if sum(map(len, lines)) <= QUICK_CHARACTERS:
        # Of more, it is seen when they are compiled: looking takes a quarter of a microsecond for each character.
        for number, line in enumerate(lines):
            _check(number, line)


def are_quick(lines: Sequence[str]) -> bool:
    """Whether the event loop can compile them."""
    return (
        len(lines) <= QUICK_PATTERNS
        and sum(map(len, lines)) <= QUICK_CHARACTERS
        and sum(map(count_parts, lines)) <= QUICK_PARTS
    )


def _check(number: int, line: str) -> None:
    if (problem := unfit(line)) is not None:
        raise _wrong(number, line, problem)
    if count_parts(line) > MAX_PARTS:
        raise _wrong(number, line, "too many repetitions")


def first(
    patterns: Sequence[Any], text: str, start: int, seconds: float, left: Left = nobody_left, *, beside: bool
) -> int | None:
    """The first pattern, from one on, that is found. `beside`: in a thread, while others run, until they `left`.

    Raises:
        TimeoutError: it took too long; holds the number of the pattern at which the time was over.
    """
    end = monotonic() + seconds
    for number in range(start, len(patterns)):
        time = min(end - monotonic(), PATTERN_SECONDS)
        try:
            if time <= 0 or left():
                raise TimeoutError
            if patterns[number].search(text, concurrent=beside, timeout=time):
                return number
        except TimeoutError:
            raise TimeoutError(number) from None
    return None


def _compiled(number: int, line: str) -> Any:
    import regex

    _check(number, line)
    try:
        # Kept by whoever uses it, and by nobody else.
        return regex.compile(line, regex.IGNORECASE | regex.VERSION0, cache_pattern=False)
    except (regex.error, RecursionError, OverflowError, ValueError, KeyError, MemoryError) as error:
        raise _wrong(number, line, str(error) or type(error).__name__) from None


def _size(line: str, pattern: Any) -> int:
    """The bytes that a pattern takes, as measured: what it says of itself, what its memory is rounded up to, and what
    it remembers of its text."""
    return 1024 + getsizeof(pattern) * 3 // 2 + 16 * len(line)


def _wrong(number: int, line: str, problem: str) -> PatternError:
    return PatternError(f"pattern {number} (`{line[:80]}`): {problem}")
