"""What a model said, as the actions that it decided on.

1. Strictly: the whole output is JSON; else its parts are, each between matching brackets: one to a line, the items of
   a numbered list, or several fenced blocks. All that have an action count, in their order, what is repeated word for
   word once. Where a fenced block has one, what stands outside of fences is talk about it.
2. Mended: a part that looks like a decision goes through `json-repair`, which knows trailing commas, raw line feeds,
   comments, other quotes and missing brackets. It makes JSON out of almost anything, so it is only asked about a text
   that has an `action` member, and what comes back must have one.
3. An action that was cut off in the middle of a word or a number is dropped: half an amount is another amount.

Nothing here takes longer than in proportion to the output, up to named limits. No IO.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.base.extras import install_hint
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError

#: Characters of an output that are looked at: many times the longest posts that a network takes.
MAX_OUTPUT = 1024 * 1024
#: The library that mends takes time in proportion to characters times quotes, in the worst case: about a second here.
MAX_MENDING_WORK = 20_000_000
#: And it takes long for nesting that no decision has.
MAX_MENDED_DEPTH = 40

#: What ends the thinking of models that think aloud.
_THOUGHT_END = "</think>"
_FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)
_FENCED_WHOLE = re.compile(r"\A```\w*\s*(.*?)\s*(?:```)?\Z", re.DOTALL)
#: Where JSON may begin, and where something that can be mended may.
_BEGINNING = re.compile(r"\{\s*[\"}]|\[\s*[\[{\]\"]")
#: (Quotes that a word processor makes of straight ones are among them.)
_LAX_BEGINNING = re.compile(r"\{\s*[\"'\u201c\u2018}\w/#]|\[\s*[\[{\]\"/#]")
_ACTION_MEMBER = re.compile(r"[\"'\u2018-\u201d]?\baction[\"'\u2018-\u201d]?\s*:")
_STRUCTURE = re.compile(r"\\.|[\"\[\]{}]", re.DOTALL)
_OPEN, _CLOSED = frozenset("[{"), frozenset("]}")
#: A text that ends so was not cut in the middle of a value.
_COMPLETE_END = re.compile(r"[\]}\",:\[{]\s*\Z")


class NoDecision(Exception):
    """There is none in the output. The text says why, to people and to the model."""


class Decision(Value):
    """The elements of a decision, in order: whatever JSON they are."""

    elements: tuple[Any, ...]
    cut: bool = False
    """One more followed, and was cut off."""


class _Span(Value):
    """What matches from one bracket on."""

    end: int | None
    """Behind the bracket that closes the first one; None: there is none."""
    in_string: bool
    last_element: int | None
    """Behind the last complete array or object right within the first one."""


def read(output: str) -> Decision:
    """The decision in a model's output.

    Raises:
        NoDecision: there is none.
        ConfigError: one that needs to be mended, and the library for it is not installed.
    """
    if len(output) > MAX_OUTPUT:
        raise NoDecision(f"The LLM output has more than {MAX_OUTPUT} characters.")
    said = output.strip().removeprefix("\ufeff")
    text = said.rpartition(_THOUGHT_END)[2].strip()
    if not text:
        raise NoDecision("Empty LLM output")
    for candidate in (said, text, _FENCED_WHOLE.sub(r"\1", text)):
        if (found := _parsed(candidate)) is not None:
            return _decision(found.value)
    mender = _Mender()
    fenced = [match[1].strip() for match in _FENCE.finditer(text)]
    seen: list[Any] = []
    for blocks in (fenced, [text]):
        decided = _together([part for block in blocks for part in _parts(block, mender, seen)])
        if decided is not None:
            return decided
    for block in (*fenced, text):
        match = _LAX_BEGINNING.search(block)
        if match is not None and _ACTION_MEMBER.search(block, match.start()):
            mended = mender.mended(block, match.start())
            if mended is not None:
                return mended
            break
    if seen:
        return _decision(seen[0])
    if _LAX_BEGINNING.search(text) and _ACTION_MEMBER.search(text):
        raise NoDecision("Failed to extract valid JSON from LLM output")
    raise NoDecision("No JSON object/array found in LLM output")


def action_types(decision: Decision) -> list[str]:
    """The names of its actions, each once, in the order of their first appearance."""
    names = (element.get("action") for element in decision.elements if isinstance(element, dict))
    return list(dict.fromkeys(name.strip() for name in names if isinstance(name, str) and name.strip()))


# Strictly


class _Parsed(Value):
    value: Any


def _parsed(text: str) -> _Parsed | None:
    # Before the parser sees it: how deep that one dares to go is not the same in every process.
    if text.count("[") + text.count("{") > jsontext.MAX_DEPTH and _depth(text, strings=True) > jsontext.MAX_DEPTH:
        return None
    try:
        return _Parsed(jsontext.loads(text.encode("utf-8", "surrogatepass")))
    except ValueError:
        return None


def _parts(block: str, mender: _Mender, seen: list[Any]) -> Iterator[Decision | NoDecision]:
    """The parts of a text that have an action, in order, or why one that seems to has none.

    What is JSON and has no action is added to `seen`.
    """
    position = 0
    beginning = _LAX_BEGINNING
    while (match := beginning.search(block, position)) is not None:
        span = _span(block, match.start())
        if span.end is None and beginning is _LAX_BEGINNING:
            # It may be prose: what is JSON for sure is looked for from here on.
            beginning = _BEGINNING
            continue
        # What has no end goes on to the end of the text: nothing behind it is a decision of its own.
        position = len(block) if span.end is None else span.end
        part = block[match.start() : position]
        found = _parsed(part) if span.end is not None else None
        if found is not None and not _acts(found.value):
            seen.append(found.value)
        elif found is not None:
            yield _decision(found.value)
        elif _ACTION_MEMBER.search(part):
            try:
                mended = mender.mended(block, match.start())
            except NoDecision as problem:
                yield problem
            else:
                if mended is not None:
                    yield mended


def _together(parts: Sequence[Decision | NoDecision]) -> Decision | None:
    """All parts as one decision; None if there are none.

    Raises:
        NoDecision: there is nothing but what was cut off.
    """
    decisions = [part for part in parts if isinstance(part, Decision)]
    if not decisions:
        for problem in parts:
            if isinstance(problem, NoDecision):
                raise problem
        return None
    elements: list[Any] = []
    known: set[bytes] = set()
    for each in decisions:
        # A model that thinks aloud repeats its decision; within one array, it means each.
        elements += [element for element in each.elements if jsontext.dumps(element) not in known]
        known.update(map(jsontext.dumps, each.elements))
    return Decision(tuple(elements), any(each.cut for each in decisions) or len(decisions) < len(parts))


def _span(text: str, start: int) -> _Span:
    depth, in_string = 0, False
    last: int | None = None
    for match in _STRUCTURE.finditer(text, start):
        mark = match[0]
        if mark == '"':
            in_string = not in_string
        elif in_string or mark[0] == "\\":
            continue
        elif mark in _OPEN:
            depth += 1
        elif mark in _CLOSED:
            depth -= 1
            if depth == 1:
                last = match.end()
            if depth == 0:
                return _Span(match.end(), False, last)
    return _Span(None, in_string, last)


def _decision(value: Any, cut: bool = False) -> Decision:
    if isinstance(value, list):
        return Decision(tuple(value), cut)
    if isinstance(value, dict):
        return Decision((value,), cut)
    raise NoDecision("The LLM output is JSON, but neither an object nor an array")


def _acts(value: Any) -> bool:
    """Whether it has an action, well-formed or not."""
    elements = value if isinstance(value, list) else [value]
    return any(isinstance(element, dict) and "action" in element for element in elements)


# Mended


class _Mender:
    """Mends parts of one output, and no more than is worth the time."""

    def __init__(self) -> None:
        self._work = MAX_MENDING_WORK

    def mended(self, text: str, start: int) -> Decision | None:
        """The decision that begins there; None if there is none after all.

        Raises:
            NoDecision: it was cut off, or is too much to be mended.
        """
        span = _span(text, start)
        if span.end is not None:
            return self._repaired(text[start : span.end], cut=False)
        rest = text[start:].rstrip()
        if rest[-1] in _CLOSED or (not span.in_string and _COMPLETE_END.search(rest)):
            return self._repaired(rest, cut=False)
        if text[start] == "[" and span.last_element is not None:
            return self._repaired(f"{text[start : span.last_element]}]", cut=True)
        raise NoDecision("The LLM output was cut off in the middle of an action")

    def _repaired(self, text: str, *, cut: bool) -> Decision | None:
        self._work -= len(text) * max(1, text.count('"') + text.count("\\"))
        if self._work < 0 or _depth(text, strings=False) > MAX_MENDED_DEPTH:
            raise NoDecision("The LLM output is no valid JSON, and too large or too deep to be mended")
        try:
            from json_repair import repair_json
        except ImportError:
            hint = f"Install what mends it: {install_hint('runner')}"
            raise ConfigError("The LLM output is no valid JSON.", hint=hint) from None
        try:
            # What cannot be written as JSON again is none, whatever the library makes of it.
            value = jsontext.loads(jsontext.dumps(repair_json(text, return_objects=True)))
        except (ValueError, TypeError, RecursionError):
            return None
        return _decision(value, cut) if _acts(value) else None


def _depth(text: str, *, strings: bool) -> int:
    """How deep brackets stand in one another.

    Args:
        strings: those in strings do not count. Where quotes are not what they should be, all do.
    """
    deepest = depth = 0
    in_string = False
    for match in _STRUCTURE.finditer(text):
        mark = match[0]
        if mark == '"':
            in_string = strings and not in_string
        elif not in_string and mark in _OPEN:
            depth += 1
            deepest = max(deepest, depth)
        elif not in_string and mark in _CLOSED:
            depth -= 1
    return deepest
