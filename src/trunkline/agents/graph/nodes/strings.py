"""The nodes that need no model: guardrails, canned responses, instructions."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Sequence
from time import monotonic
from typing import Any

from trunkline.agents.graph.dialog import Dialog
from trunkline.agents.graph.host import Host
from trunkline.agents.graph.nodes.base import Node
from trunkline.agents.graph.storages import KIND_NAMES, StringStorage
from trunkline.agents.graph.turn import Instruction as Told
from trunkline.agents.graph.turn import Turn, Whole
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import (
    CannedResponseParams,
    CannedResponseSelectionStrategy,
    HumanMessageGuardrailParams,
    InstructionParams,
    IntentToInstructionParams,
    StringStorageKind,
)

#: Characters of a pattern.
MAX_PATTERN = 4096
#: Patterns of a guardrail.
MAX_PATTERNS = 10_000
#: How often all counted repetitions of a pattern, multiplied, may repeat; and those of all patterns, added up. The
#: engine spells counts out, with a quarter of a kilobyte for each.
MAX_REPEATS = 10_000
MAX_ALL_REPEATS = 100_000
#: Patterns that are compiled at once, at a fifth of a millisecond each; more are a thread's work.
QUICK_PATTERNS = 32
#: Seconds that a guardrail may look at a message before it goes on in a thread.
QUICK_SECONDS = 0.005
#: Seconds that it may look for one pattern, and for all of them. A pattern can take longer than the universe lasts, and
#: fills up to half a gigabyte of memory per second on the way.
PATTERN_SECONDS = 0.25
MATCH_SECONDS = 2.0

_COUNTS = re.compile(r"\{(\d*),?(\d*)\}")
#: `(?R)`, `(?1)`, `(?&name)`, `(?P>name)`: how a pattern calls itself, which fills memory in no time.
_RECURSION = re.compile(r"(?<!\\)(?:\\\\)*\(\?(?:R|\d|&|P>)")


class Guardrail(Node[HumanMessageGuardrailParams]):
    """Each string is a pattern (a regular expression, case ignored) that is looked for anywhere in the message."""

    _patterns: Sequence[Any] = ()

    def check(self) -> None:
        self._check_size(self.params.inline_strings, 3003)

    async def open(self, host: Host, default_model: str) -> None:
        self._patterns = await self._load(self.params, host, 3003)

    async def change(self, params: HumanMessageGuardrailParams, host: Host) -> None:
        self._patterns = await self._load(params, host, 3007)
        self.params = params

    async def _load(self, params: HumanMessageGuardrailParams, host: Host, code: int) -> Sequence[Any]:
        lines = _lines(params, host, "guardrail")
        if len(lines) <= QUICK_PATTERNS:
            return self.compile(lines, code)
        return await asyncio.to_thread(self.compile, lines, code)

    def _check_size(self, lines: Sequence[str], code: int) -> None:
        if len(lines) > MAX_PATTERNS:
            raise self.wrong(f"more than {MAX_PATTERNS} patterns", code)
        repeats = 0
        for number, line in enumerate(lines):
            if len(line) > MAX_PATTERN:
                raise self.wrong(f"pattern {number} has more than {MAX_PATTERN} characters", code)
            found = _repeats(line)
            repeats += found if found > 1 else 0
            if found > MAX_REPEATS or repeats > MAX_ALL_REPEATS:
                raise self.wrong(f"pattern {number} (`{line[:80]}`): too many repetitions", code)

    def compile(self, lines: Sequence[str], code: int) -> Sequence[Any]:
        """The patterns of some lines.

        Raises:
            TryllError: `code`, one is none, or they are too much.
        """
        import regex

        self._check_size(lines, code)
        patterns = []
        for number, line in enumerate(lines):
            try:
                if _RECURSION.search(line):
                    raise ValueError("patterns within themselves are not for guardrails")
                patterns.append(regex.compile(line, regex.IGNORECASE | regex.VERSION0))
            except (regex.error, RecursionError, OverflowError, ValueError, KeyError) as error:
                raise self.wrong(f"pattern {number} (`{line[:80]}`): {error}", code) from None
        return patterns

    async def run(self, turn: Turn, dialog: Dialog) -> str:
        try:
            found = _first(self._patterns, turn.text, 0, QUICK_SECONDS)
        except TimeoutError as late:
            try:
                found = await asyncio.to_thread(_first, self._patterns, turn.text, late.args[0], MATCH_SECONDS)
            except TimeoutError as error:
                raise self.wrong(f"pattern {error.args[0]} takes too long", 4002) from None
        if turn.data is not None:
            turn.data["pattern"] = "" if found is None else str(found)
        return "not_triggered" if found is None else "triggered"


def _repeats(line: str) -> int:
    """How often the counts of a pattern repeat, multiplied, as if all of them were within each other."""
    repeats = 1
    for least, most in _COUNTS.findall(line):
        repeats *= max(1, *(int(count[:9] or "1") for count in (least, most)))
        if repeats > MAX_REPEATS:
            break
    return repeats


def _first(patterns: Sequence[Any], text: str, start: int, seconds: float) -> int | None:
    """The first pattern, from one on, that is found. `TimeoutError` holds the one at which the time was over."""
    end = monotonic() + seconds
    for number in range(start, len(patterns)):
        left = min(end - monotonic(), PATTERN_SECONDS)
        try:
            if left <= 0:
                raise TimeoutError
            if patterns[number].search(text, concurrent=seconds > QUICK_SECONDS, timeout=left):
                return number
        except TimeoutError:
            raise TimeoutError(number) from None
    return None


def _lines(params: HumanMessageGuardrailParams | CannedResponseParams, host: Host, purpose: str) -> Sequence[str]:
    """A storage, else what the node itself holds, else what the host has."""
    if params.string_storage:
        return host.strings(params.string_storage).lines
    return params.inline_strings or host.default_lines(purpose)


class CannedResponse(Node[CannedResponseParams]):
    """One of its lines is the answer."""

    _lines: Sequence[str] = ()
    _next = 0

    async def open(self, host: Host, default_model: str) -> None:
        self._lines = _lines(self.params, host, "canned")

    async def change(self, params: CannedResponseParams, host: Host) -> None:
        if (params.string_storage or "") != (self.params.string_storage or ""):
            self._lines = _lines(params, host, "canned")
            self._next = 0
        self.params = params

    async def run(self, turn: Turn, dialog: Dialog) -> str:
        line = self._choose()
        turn.written.append(line)
        turn.events.append(Whole(line, not self.exits["default"]))
        return "default"

    def _choose(self) -> str:
        if not self._lines:
            return ""
        if self.params.selection_strategy == CannedResponseSelectionStrategy.FIRST:
            return self._lines[0]
        if self.params.selection_strategy == CannedResponseSelectionStrategy.RANDOM:
            return random.choice(self._lines)  # noqa: S311  # nothing depends on it
        line = self._lines[self._next % len(self._lines)]
        self._next += 1
        return line


class Instruction(Node[InstructionParams]):
    """Adds a text that the templates of later nodes can show."""

    async def run(self, turn: Turn, dialog: Dialog) -> str:
        turn.instructions.append(Told(self.params.instruction_name or self.name, self.params.instruction or ""))
        return "default"


class IntentToInstruction(Node[IntentToInstructionParams]):
    """Adds the text that a map holds for the intent of the turn. Without an intent or a text it adds nothing."""

    _map: StringStorage | None = None

    def check(self) -> None:
        keys, strings = self.params.inline_keys, self.params.inline_strings
        if len(keys) != len(strings):
            raise self.wrong(f"{len(keys)} `inline_keys` for {len(strings)} `inline_strings`")
        if len(set(keys)) != len(keys):
            raise self.wrong("one of the `inline_keys` is there twice")
        if not self.params.string_storage and not keys:
            raise self.wrong("neither a `string_storage` nor `inline_keys`")

    async def open(self, host: Host, default_model: str) -> None:
        self._map = self._load(self.params, host)

    async def change(self, params: IntentToInstructionParams, host: Host) -> None:
        if not params.string_storage and not params.inline_keys:
            raise self.wrong("neither a `string_storage` nor `inline_keys`", 3007)
        self._map = self._load(params, host)
        self.params = params

    def _load(self, params: IntentToInstructionParams, host: Host) -> StringStorage:
        if not params.string_storage:
            return StringStorage(self.name, StringStorageKind.MAP, params.inline_strings, params.inline_keys)
        found = host.strings(params.string_storage)
        if found.kind != StringStorageKind.MAP:
            raise TryllError(
                3011, f"The node `{self.name}` needs a Map; `{params.string_storage}` is a {KIND_NAMES[found.kind]}."
            )
        return found

    async def run(self, turn: Turn, dialog: Dialog) -> str:
        text = self._map.find_first(turn.intent) if self._map is not None and turn.intent is not None else None
        name = self.params.instruction_name or self.name
        if text is not None:
            turn.instructions.append(Told(name, text))
        if turn.data is not None:
            turn.data |= {
                "string_storage": self.params.string_storage or "",
                "instruction_name": name,
                "intent": turn.intent or "",
                "found": "true" if text is not None else "false",
                "result_text": text or "",
            }
        return "default"
