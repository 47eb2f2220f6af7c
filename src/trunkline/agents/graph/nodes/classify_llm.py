"""ClassifyIntentLLM: a model chooses one of some labels, without writing anything.

Each label has a letter. The model sees them, a little history and the message, and how likely it is to go on with each
letter is how likely the label is.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, isfinite
from string import ascii_uppercase

from trunkline.agents.graph.dialog import Dialog
from trunkline.agents.graph.host import Host
from trunkline.agents.graph.mustache import TemplateError, read_template
from trunkline.agents.graph.nodes.base import ModelNode
from trunkline.agents.graph.nodes.classify import INTENT_EVENT
from trunkline.agents.graph.turn import GraphTurn, NodeNotice
from trunkline.base import jsontext
from trunkline.core.faults import BadParameter, GraphError, ProviderError
from trunkline.core.graph.description import ClassifyIntentLLMParams, NodeDescription
from trunkline.models.engines import ChatMessage, Prompt

#: One letter each.
MAX_INTENTS = len(ascii_uppercase)

_ASK = "Which of these does the user's last message express? Answer with one letter."


class ClassifyIntentLLM(ModelNode[ClassifyIntentLLMParams]):
    """`found` if the likeliest label is likely enough, and likelier enough than the second."""

    template_field = "system_prompt"

    def __init__(self, description: NodeDescription, params: ClassifyIntentLLMParams) -> None:
        super().__init__(description, params)
        self.ids = _split(params.intents_ids)
        self.labels = _split(params.intents_prompt) or self.ids
        self._system = ""

    def check(self) -> None:
        if not self.ids:
            raise self.wrong("no `intents_ids`")
        if len(self.labels) != len(self.ids):
            raise self.wrong(f"{len(self.ids)} `intents_ids` for {len(self.labels)} labels in `intents_prompt`")
        if len(self.ids) > MAX_INTENTS:
            raise self.wrong(f"more than {MAX_INTENTS} intents")
        if not all(self.ids) or len(set(self.ids)) != len(self.ids):
            raise self.wrong("an intent is empty, or there twice")
        self._system = self._render(self.params, GraphError)

    async def change(self, params: ClassifyIntentLLMParams, host: Host) -> None:
        rendered = await self.with_template(params, lambda: self._render(params, BadParameter))
        self.params, self._system = params, rendered

    def _render(self, params: ClassifyIntentLLMParams, kind: type[GraphError]) -> str:
        """The system message: the labels, where `{{intents}}` stands or below the prompt."""
        listed = "\n".join(f"{letter}) {label}" for letter, label in zip(ascii_uppercase, self.labels, strict=False))
        given = params.system_prompt or ""
        context = {"intents": listed, "labels": listed, "intents_list": listed}
        try:
            told = read_template(given).render(context)
        except TemplateError as error:
            raise self.wrong(f"its system prompt: {error}", kind) from None
        return told if listed in told else "\n".join(part for part in (told, _ASK, listed) if part)

    async def run(self, turn: GraphTurn, dialog: Dialog) -> str:
        if turn.data is not None:
            turn.data |= {
                "model": self.model_name,
                "query": turn.text,
                "intents_ids_json": jsontext.dumps(self.ids).decode(),
            }
        if not turn.text.strip():
            return self._not_found(turn, "empty_message")
        letters = ascii_uppercase[: len(self.ids)]
        try:
            scores = await self.scores(turn, dialog, list(letters))
        except ProviderError:
            return self._not_found(turn, "score_failed")
        except Exception as error:
            raise self.failed(error) from error
        if len(scores) != len(letters) or not all(map(isfinite, scores)):
            return self._not_found(turn, "score_size_mismatch")
        return self._decide(turn, _softmax(scores), letters)

    def prompt(self, turn: GraphTurn, dialog: Dialog) -> Prompt:
        begin = ChatMessage("system", self._system)
        user = ChatMessage("user", turn.text)
        history = self.window.history(dialog, (begin, user))
        history = history[-2 * self.params.history_turns :] if self.params.history_turns else []
        return Prompt((begin, *history, user), 1 + len(history))

    def _decide(self, turn: GraphTurn, chances: list[float], letters: str) -> str:
        order = sorted(range(len(chances)), key=lambda at: (-chances[at], at))
        winner = order[0]
        top = chances[winner]
        second = chances[order[1]] if len(order) > 1 else 0.0
        intent = self.ids[winner]
        if turn.data is not None:
            turn.data |= {
                "top_prob": f"{top:.6f}",
                "second_prob": f"{second:.6f}",
                "margin_result": f"{top - second:.6f}",
                "result.intent": intent,
                "predicted_letter": letters[winner],
                "probs_json": jsontext.dumps([round(chance, 6) for chance in chances]).decode(),
            }
        if top < self.params.threshold:
            return self._not_found(turn, "below_threshold")
        if top - second < self.params.margin:
            return self._not_found(turn, "below_margin")
        if intent == self.params.not_found_intent:
            return self._not_found(turn, "sink_intent")
        turn.intent = intent
        if self.params.notify_client:
            pairs = (
                ("intent", intent),
                # There is no record; the keys are those of the other node that classifies.
                ("record_id", ""),
                ("record_index", "0"),
                ("distance", f"{1 - top:.6f}"),
                ("top_prob", f"{top:.6f}"),
                ("margin", f"{top - second:.6f}"),
            )
            turn.events.append(NodeNotice(self.name, INTENT_EVENT, pairs))
        return "found"

    def _not_found(self, turn: GraphTurn, reason: str) -> str:
        if turn.data is not None:
            turn.data["not_found_reason"] = reason
        return "not_found"


def _split(listed: str | None) -> list[str]:
    return [each.strip() for each in listed.split(",")] if listed else []


def _softmax(scores: Sequence[float]) -> list[float]:
    highest = max(scores)
    weights = [exp(score - highest) for score in scores]
    total = sum(weights)
    return [weight / total for weight in weights]
