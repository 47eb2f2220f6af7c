"""The nodes that need no model: guardrails, canned responses, instructions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

from trunkline.agents.graph.dialog import Dialog
from trunkline.agents.graph.host import Host
from trunkline.agents.graph.nodes.base import Node
from trunkline.agents.graph.patterns import Left, PatternBook, PatternError, are_quick, check_size, first, nobody_left
from trunkline.agents.graph.storages import KIND_NAMES, StringStorage
from trunkline.agents.graph.turn import GraphTurn, InstructionText
from trunkline.core.faults import AgentTimeout, BadParameter, GraphError, WrongStorage
from trunkline.core.graph.description import (
    CannedResponseParams,
    HumanMessageGuardrailParams,
    InstructionParams,
    IntentToInstructionParams,
)
from trunkline.core.graph.ordinals import CannedResponseSelectionStrategy, StringStorageKind

#: Seconds that a guardrail may look at a message before it goes on in a thread.
QUICK_SECONDS = 0.005
#: And if its session has something in a thread already: many turns at once are not to take that long one by one.
HURRIED_SECONDS = 0.0002
#: Seconds that it may look for all of its patterns.
MATCH_SECONDS = 2.0


class Guardrail(Node[HumanMessageGuardrailParams]):
    """Each string is a pattern (a regular expression, case ignored) that is looked for anywhere in the message."""

    _patterns: Sequence[Any] = ()
    _storage: StringStorage | None = None
    _book: PatternBook

    def check(self) -> None:
        try:
            check_size(self.params.inline_strings)
        except PatternError as error:
            raise self.wrong(str(error)) from None

    async def open(self, host: Host, default_model: str) -> None:
        self._book = host.patterns
        self._patterns = await self._load(self.params, host, GraphError)

    async def change(self, params: HumanMessageGuardrailParams, host: Host) -> None:
        self._patterns = await self._load(params, host, BadParameter)
        self.params = params

    async def _load(self, params: HumanMessageGuardrailParams, host: Host, kind: type[GraphError]) -> Sequence[Any]:
        storage, lines = await _lines(params, host)
        work = partial(self.compile, self._book, lines, kind)
        patterns = work() if are_quick(lines) else await self._book.aside.do(work)
        self._storage = storage
        return patterns

    def compile(
        self, book: PatternBook, lines: Sequence[str], kind: type[GraphError], left: Left = nobody_left
    ) -> Sequence[Any]:
        """The patterns of some lines, unless they `left`.

        Raises:
            GraphError: of that kind, one is none, or they are too much.
        """
        try:
            return book.compile(lines, left)
        except PatternError as error:
            raise self.wrong(str(error), kind) from None

    async def run(self, turn: GraphTurn, dialog: Dialog) -> str:
        try:
            quick = HURRIED_SECONDS if self._book.aside.busy else QUICK_SECONDS
            found = first(self._patterns, turn.text, 0, quick, beside=False)
        except TimeoutError as late:
            search = partial(first, self._patterns, turn.text, late.args[0], MATCH_SECONDS, beside=True)
            try:
                found = await self._book.aside.do(search)
            except TimeoutError as error:
                raise self.wrong(f"pattern {error.args[0]} takes too long", AgentTimeout) from None
        if turn.data is not None:
            turn.data["pattern"] = "" if found is None else str(found)
        return "not_triggered" if found is None else "triggered"


async def _lines(
    params: HumanMessageGuardrailParams | CannedResponseParams, host: Host
) -> tuple[StringStorage | None, Sequence[str]]:
    """Those of a storage, else what the node itself holds.

    A node has to hold on to the storage: as long as somebody does, it counts as used.
    """
    if params.string_storage:
        found = await host.strings(params.string_storage)
        return found, found.lines
    return None, params.inline_strings


class CannedResponse(Node[CannedResponseParams]):
    """One of its lines is the answer."""

    _lines: Sequence[str] = ()
    _storage: StringStorage | None = None
    _next = 0

    async def open(self, host: Host, default_model: str) -> None:
        self._storage, self._lines = await _lines(self.params, host)

    async def change(self, params: CannedResponseParams, host: Host) -> None:
        if (params.string_storage or "") != (self.params.string_storage or ""):
            self._storage, self._lines = await _lines(params, host)
            self._next = 0
        self.params = params

    async def run(self, turn: GraphTurn, dialog: Dialog) -> str:
        turn.wrote(self._choose(), final=not self.exits["default"])
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


class InstructionNode(Node[InstructionParams]):
    """Adds a text that the templates of later nodes can show."""

    async def run(self, turn: GraphTurn, dialog: Dialog) -> str:
        turn.instructions.append(
            InstructionText(self.params.instruction_name or self.name, self.params.instruction or "")
        )
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
        self._map = await self._load(self.params, host)

    async def change(self, params: IntentToInstructionParams, host: Host) -> None:
        if not params.string_storage and not params.inline_keys:
            raise self.wrong("neither a `string_storage` nor `inline_keys`", BadParameter)
        self._map = await self._load(params, host)
        self.params = params

    async def _load(self, params: IntentToInstructionParams, host: Host) -> StringStorage:
        if not params.string_storage:
            return StringStorage(self.name, StringStorageKind.MAP, params.inline_strings, params.inline_keys)
        found = await host.strings(params.string_storage)
        if found.kind != StringStorageKind.MAP:
            raise WrongStorage(
                f"The node `{self.name}` needs a Map; `{params.string_storage}` is a {KIND_NAMES[found.kind]}."
            )
        return found

    async def run(self, turn: GraphTurn, dialog: Dialog) -> str:
        text = self._map.find_first(turn.intent) if self._map is not None and turn.intent is not None else None
        name = self.params.instruction_name or self.name
        if text is not None:
            turn.instructions.append(InstructionText(name, text))
        if turn.data is not None:
            turn.data |= {
                "string_storage": self.params.string_storage or "",
                "instruction_name": name,
                "intent": turn.intent or "",
                "found": "true" if text is not None else "false",
                "result_text": text or "",
            }
        return "default"
