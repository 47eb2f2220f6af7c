"""What a model said, as the actions that it decided on.

1. Strictly: the whole output is JSON; else those parts of it that `decided_parts` finds: one to a line, the items of a
   list, or several fenced blocks. Blocks that are marked as JSON decide before those without a mark, and those before
   lines. All actions of the same rank count, in their order, what is repeated word for word once. An empty array says
   that nothing is to be done of what stands before it.
2. Mended: a part that looks like a decision goes through `json-repair`, which knows trailing commas, raw line feeds,
   comments, other quotes and missing brackets. It makes JSON out of almost anything, so it is only asked about a text
   that has an `action` member, and what comes back must have one.
3. An action that was cut off in the middle of a word or a number is dropped: half an amount is another amount.

Nothing here takes longer than in proportion to the output, up to named limits. No IO.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.base.extras import adding
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.runner import decided_parts
from trunkline.runner.decided_parts import CLOSED, OPEN, Candidate, span

#: Characters of an output that are looked at: many times the longest posts that a network takes.
MAX_OUTPUT = 1024 * 1024
#: The library that mends takes time in proportion to characters times quotes, in the worst case: about a second here.
MAX_MENDING_WORK = 20_000_000
#: And it takes long for nesting that no decision has.
MAX_MENDED_DEPTH = 40

_ACTION_MEMBER = re.compile(r"[\"'\u2018-\u201d]?\baction[\"'\u2018-\u201d]?\s*:")
_STRUCTURE = re.compile(r"\\.|[\"\[\]{}]", re.DOTALL)
#: A text that ends so was not cut in the middle of a value.
_COMPLETE_END = re.compile(r"[\]}\",:\[{]\s*\Z")


class NoDecision(Exception):
    """There is none in the output. The text says why, to people and to the model."""


class DecisionElements(Value):
    """The elements of a decision, in order: whatever JSON they are."""

    elements: tuple[Any, ...]
    cut: bool = False
    """One more followed, and was cut off."""
    left_out: int = 0
    """How many more actions stand where they do not count."""


def read(output: str) -> DecisionElements:
    """The decision in a model's output.

    Raises:
        NoDecision: there is none.
        ConfigError: one that needs to be mended, and the library for it is not installed.
    """
    if len(output) > MAX_OUTPUT:
        raise NoDecision(f"The LLM output has more than {MAX_OUTPUT} characters.")
    said = output.strip().removeprefix("\ufeff")
    if not said:
        raise NoDecision("Empty LLM output")
    text = decided_parts.without_thoughts(said)
    if not text:
        raise NoDecision("The LLM output has nothing in it but thoughts")
    for candidate in dict.fromkeys((said, text)):
        if (found := _parsed(candidate)) is not None:
            return _decision(found.value)
    parts = decided_parts.parts(text)
    mender = _Mender()
    read = [_read(part, mender) for part in parts.found]
    decided = _together([each for each in read if each is not None])
    if decided is None and parts.doubtful is not None:
        decided = _mended(parts.doubtful, mender)
    if decided is not None:
        return decided
    for part in parts.found:
        if part.whole and (value := _parsed(part.text)) is not None:
            return _decision(value.value)
    if parts.within_prose:
        raise NoDecision("The JSON in the LLM output is within a sentence. Put it on a line of its own")
    if parts.found or (parts.doubtful is not None and _ACTION_MEMBER.search(text)):
        raise NoDecision("Failed to extract valid JSON from LLM output")
    raise NoDecision("No JSON object/array found in LLM output")


def action_types(decision: DecisionElements) -> list[str]:
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


class _Read(Value):
    """What a part says: a decision, or why one that seems to be none is none."""

    part: Candidate
    said: DecisionElements | NoDecision


def _read(part: Candidate, mender: _Mender) -> _Read | None:
    """What a part says; None if it has no action, and is no empty array either."""
    found = _parsed(part.text) if part.whole else None
    if found is not None:
        return _Read(part, _decision(found.value)) if found.value == [] or _acts(found.value) else None
    try:
        mended = _mended(part, mender)
    except NoDecision as problem:
        return _Read(part, problem)
    return _Read(part, mended) if mended is not None else None


def _mended(part: Candidate, mender: _Mender) -> DecisionElements | None:
    return mender.mended(part.text) if _ACTION_MEMBER.search(part.text) else None


def _together(read: Sequence[_Read]) -> DecisionElements | None:
    """What counts of all that was read, as one decision; None if there is nothing.

    Raises:
        NoDecision: there is nothing but what was cut off.
    """
    if not read:
        return None
    # What an empty array takes back is gone, wherever it stands. The array itself decides where it stands.
    nothing = max((place for place, each in enumerate(read) if each.said == DecisionElements(())), default=0)
    read = read[nothing:]
    rank = max(each.part.rank for each in read)
    said = [each.said for each in read if each.part.rank == rank]
    decisions = [each for each in said if isinstance(each, DecisionElements)]
    if not decisions:
        raise next(each for each in said if isinstance(each, NoDecision))
    elements: list[Any] = []
    known: set[bytes] = set()
    for each in decisions:
        # A model that thinks aloud repeats its decision; within one array, it means each.
        elements += [element for element in each.elements if jsontext.dumps(element) not in known]
        known.update(map(jsontext.dumps, each.elements))
    others = [each.said for each in read if each.part.rank != rank and isinstance(each.said, DecisionElements)]
    left_out = {jsontext.dumps(element) for each in others for element in each.elements} - known
    cut = any(each.cut for each in decisions) or len(decisions) < len(said)
    return DecisionElements(tuple(elements), cut, len(left_out))


def _decision(value: Any, cut: bool = False) -> DecisionElements:
    if isinstance(value, list):
        return DecisionElements(tuple(value), cut)
    if isinstance(value, dict):
        return DecisionElements((value,), cut)
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

    def mended(self, text: str) -> DecisionElements | None:
        """The decision in a text that begins with a bracket; None if there is none after all.

        Raises:
            NoDecision: it was cut off, or is too much to be mended.
        """
        found = span(text, 0)
        if found.end is not None:
            return self._repaired(text[: found.end], cut=False)
        rest = text.rstrip()
        if rest[-1] in CLOSED or (not found.in_string and _COMPLETE_END.search(rest)):
            return self._repaired(rest, cut=False)
        if text[0] == "[" and found.last_element is not None:
            return self._repaired(f"{text[: found.last_element]}]", cut=True)
        raise NoDecision("The LLM output was cut off in the middle of an action")

    def _repaired(self, text: str, *, cut: bool) -> DecisionElements | None:
        self._work -= len(text) * max(1, text.count('"') + text.count("\\"))
        if self._work < 0 or _depth(text, strings=False) > MAX_MENDED_DEPTH:
            raise NoDecision("The LLM output is not valid JSON, and too large or too deep to be repaired")
        try:
            from json_repair import repair_json
        except ImportError:
            problem = "The LLM output is not valid JSON, and `json_repair`, which could repair it, is not installed."
            raise ConfigError(problem, hint=adding("runner")) from None
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
        elif not in_string and mark in OPEN:
            depth += 1
            deepest = max(deepest, depth)
        elif not in_string and mark in CLOSED:
            depth -= 1
    return deepest
