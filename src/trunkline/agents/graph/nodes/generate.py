"""Generate: a model answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar

from trunkline.agents.graph.dialog import Dialog
from trunkline.agents.graph.host import Host
from trunkline.agents.graph.mustache import Template, TemplateError, read_template
from trunkline.agents.graph.nodes.base import ModelNode, system
from trunkline.agents.graph.turn import Delta, GraphTurn, TurnEvent
from trunkline.core.faults import BadParameter, GraphError, NodeFailed
from trunkline.core.graph.description import GenerateAndSpeakParams, GenerateParams
from trunkline.core.graph.ordinals import Placement
from trunkline.models.engines import ChatMessage, Prompt, Role

A = TypeVar("A", bound=GenerateParams | GenerateAndSpeakParams)

_AS: dict[int, Role] = {
    Placement.BEFORE_USER_AS_USER: "user",
    Placement.BEFORE_USER_AS_SYSTEM: "system",
    Placement.AFTER_USER_AS_USER: "user",
    Placement.AFTER_USER_AS_SYSTEM: "system",
}
_BEFORE = (Placement.BEFORE_USER_AS_USER, Placement.BEFORE_USER_AS_SYSTEM)


class AnsweringNode(ModelNode[A]):
    """A node that lets a model answer, whatever becomes of it then."""

    template_field = "template"
    _template: Template | None = None

    def check(self) -> None:
        self._take(self._read(self.params, GraphError))

    async def change(self, params: A, host: Host) -> None:
        template = await self.with_template(params, lambda: self._read(params, BadParameter))
        await super().change(params, host)
        self._take(template)

    def _take(self, template: Template | None) -> None:
        self._template = template
        self.heavy = template is not None and template.has_sections

    def _read(self, params: A, kind: type[GraphError]) -> Template | None:
        if not params.template:
            return None
        try:
            return read_template(params.template)
        except TemplateError as error:
            raise self.wrong(f"its template: {error}", kind) from None

    def prompt(self, turn: GraphTurn, dialog: Dialog) -> Prompt:
        """What the model sees.

        Raises:
            NodeFailed: it is too much for the model, or the template becomes too much.
        """
        begin = system(self.params.system_prompt)
        current = self._current(turn)
        history = self.window.history(dialog, (*begin, *current))
        return Prompt((*begin, *history, *current), len(begin) + len(history))

    def _current(self, turn: GraphTurn) -> tuple[ChatMessage, ...]:
        user = ChatMessage("user", turn.text)
        if self._template is None:
            return (user,)
        placement = self.params.placement
        in_place = placement == Placement.IN_PLACE_OF_USER
        try:
            rendered = turn.rendered(self._template, turn.text if in_place else "")
        except TemplateError as error:
            raise self.wrong(str(error), NodeFailed) from None
        if not rendered.strip():
            return (user,)
        if in_place:
            return (ChatMessage("user", rendered),)
        extra = ChatMessage(_AS[placement], rendered)
        return (extra, user) if placement in _BEFORE else (user, extra)

    async def stream(self, turn: GraphTurn, dialog: Dialog) -> AsyncGenerator[TurnEvent, None]:
        """Answer piece by piece.

        Raises:
            NodeFailed: it failed.
        """
        before = turn.tokens
        async with aclosing(self.pieces(turn, dialog)) as pieces:
            async for piece in pieces:
                if piece:
                    yield Delta(piece)
        self.finish(turn, before)

    def finish(self, turn: GraphTurn, before: int) -> None:
        """The answer has been told, piece by piece; before it, the turn had so many tokens.

        Raises:
            NodeFailed: it is not in the form that was asked for.
        """
        self.see_to_form("".join(turn.pieces), turn.tokens - before)
        turn.settle()


class Generate(AnsweringNode[GenerateParams]):
    """The answer goes out as it is generated (`stream`), or whole."""

    @property
    def streams(self) -> bool:
        return self.params.stream

    async def run(self, turn: GraphTurn, dialog: Dialog) -> str:
        before = turn.tokens
        answer = await self.answer(turn, dialog)
        self.see_to_form(answer, turn.tokens - before)
        turn.tell(answer, final=not self.exits["default"])
        return "default"
