"""What is known about the parameters of each kind of node, as data: exits, what cannot change, and what may be in them.

The rules are the attributes of the Tryll schema (`structural`, `graph_exit`, `min`, `max`), which do not travel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from trunkline.agents.graph.sampling_rules import out_of_form
from trunkline.base.values import Value
from trunkline.core.faults import BadParameter, FixedParameter
from trunkline.core.graph import description as d
from trunkline.core.graph.description import NodeParams, SamplingOverrides
from trunkline.core.graph.ordinals import DirectorStrategy


class NodeRules(Value):
    """The rules of one kind of node."""

    type: str
    exits: tuple[str, ...]
    """Their names; the field of each is called `NAME_exit`."""
    structural: tuple[str, ...] = ()
    """Fields that cannot change, beside the exits."""
    ranges: Mapping[str, tuple[float, float]] = MappingProxyType({})


#: Entries of a memory: at each one that comes, all of them are copied.
MAX_ENTRIES = 2000
#: Lines of one scene: as many as an agent's turn may run nodes.
MAX_LINES = 64
_UNIT = (0.0, 1.0)
_PLACEMENTS = (0, 4)
_MAX_INT = (1 << 31) - 1
#: What is written out of a whole number that is out of its range, and can be anything.
_MANY = 10**20
_MANNER = {"speaker_id": (0, _MAX_INT), "speed": (0.1, 3.0), "min_sentence_chars": (1, _MAX_INT)}

RULES: dict[type[NodeParams], NodeRules] = {
    d.GenerateParams: NodeRules("Generate", ("default",), ("model_name",), {"placement": _PLACEMENTS}),
    d.HumanMessageGuardrailParams: NodeRules(
        "HumanMessageGuardrail", ("triggered", "not_triggered"), ("inline_strings",)
    ),
    d.CannedResponseParams: NodeRules(
        "CannedResponse", ("default",), ("inline_strings",), {"selection_strategy": (0, 2)}
    ),
    d.ToolCallParams: NodeRules(
        "ToolCall",
        ("tool_called", "no_tool_called"),
        ("model_name", "tool_call_format", "tools"),
        {"max_calls": (1, 16)},
    ),
    d.RetrieveParams: NodeRules(
        "Retrieve",
        ("found", "not_found"),
        ("embedded_string_storage",),
        {"top_k": (1, 1000), "threshold": _UNIT},
    ),
    d.InstructionParams: NodeRules("Instruction", ("default",)),
    d.ClassifyIntentParams: NodeRules(
        "ClassifyIntent",
        ("found", "not_found"),
        ("embedded_string_storage",),
        {"threshold": _UNIT, "diagnostic_topk": (1, 64)},
    ),
    d.ClassifyIntentLLMParams: NodeRules(
        "ClassifyIntentLLM",
        ("found", "not_found"),
        ("model_name", "intents_ids", "intents_prompt"),
        {"history_turns": (0, 64), "threshold": _UNIT, "margin": _UNIT},
    ),
    d.IntentToInstructionParams: NodeRules("IntentToInstruction", ("default",), ("inline_keys", "inline_strings")),
    d.GenerateAndSpeakParams: NodeRules(
        "GenerateAndSpeak",
        ("default",),
        ("model_name", "tts_model_name"),
        {"placement": _PLACEMENTS, **_MANNER},
    ),
    d.SpeakParams: NodeRules("Speak", ("default",), ("tts_model_name",), _MANNER),
    d.RememberParams: NodeRules(
        "Remember",
        ("default",),
        ("memory", "model_name"),
        {"max_entries": (1, MAX_ENTRIES), "min_chars": (0, _MAX_INT), "threshold": _UNIT},
    ),
    d.DirectorParams: NodeRules(
        "Director",
        ("default",),
        ("model_name", "characters"),
        {"strategy": (0, 1), "max_lines": (1, MAX_LINES), "max_tokens": (1, 1 << 20)},
    ),
}

#: What the fields of `sampling` may be. A penalty has no limits of its own; these are far outside of what makes sense.
_SAMPLING: dict[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": _UNIT,
    "top_k": (0, 1 << 20),
    "min_p": _UNIT,
    "repeat_penalty": (0, 10),
    "presence_penalty": (-10, 10),
    "frequency_penalty": (-10, 10),
    "max_tokens": (1, 1 << 20),
    "seed": (0, (1 << 32) - 1),
}


def rules_of(params: NodeParams) -> NodeRules:
    """The rules of a node with these parameters, which is one of those in `RULES`."""
    return RULES[type(params)]


def exits_of(params: NodeParams) -> dict[str, str]:
    """Where each exit leads; "" is the end."""
    return {name: getattr(params, f"{name}_exit") or "" for name in rules_of(params).exits}


def models_of(params: NodeParams, default_model: str) -> tuple[str, ...]:
    """The language models that a node with these parameters asks, each once; "" for one that nobody names."""
    if isinstance(params, d.RememberParams) and not asks_to_remember(params):
        return ()
    if not hasattr(params, "model_name"):
        return ()
    own = params.model_name or default_model
    if not isinstance(params, d.DirectorParams):
        return (own,)
    chooses = (own,) if params.strategy == DirectorStrategy.MODEL else ()
    return tuple(dict.fromkeys((*chooses, *(each.model_name or own for each in params.characters))))


def asks_to_remember(params: d.RememberParams) -> bool:
    """Whether a model writes down what is remembered."""
    return bool(params.model_name or params.system_prompt)


def check_values(node: str, params: NodeParams) -> None:
    """Look at every number, and at what has a form.

    Raises:
        BadParameter: one is out of its range. The text names node and field.
    """
    for field, problem in out_of_range(params):
        raise BadParameter(f"`{node}.{field}` {problem}")


def out_of_range(params: NodeParams) -> Iterator[tuple[str, str]]:
    """Each field that is out of its range, or in no form that can be used, and a sentence about it that lacks its
    subject."""
    for field, (least, most) in rules_of(params).ranges.items():
        yield from _outside(field, getattr(params, field), least, most)
    sampling = getattr(params, "sampling", None)
    if isinstance(sampling, SamplingOverrides):
        for field, (least, most) in _SAMPLING.items():
            value = getattr(sampling, field)
            if value is not None:
                yield from _outside(f"sampling.{field}", value, least, most)
        for field, problem in out_of_form(sampling):
            yield f"sampling.{field}", problem


def _outside(field: str, value: float, least: float, most: float) -> Iterator[tuple[str, str]]:
    # Not a number is in no range.
    if not least <= value <= most:
        yield field, f"is {_told(value)}: it goes from {_told(least)} to {_told(most)}."


def _told(number: float) -> str:
    """A number for people: whole ones with all of their digits, as long as that are few."""
    if isinstance(number, int):
        return str(number) if abs(number) < _MANY else "a number of more digits than can be"
    return f"{number:g}"


def check_unchanged(node: str, old: NodeParams, new: NodeParams) -> None:
    """Compare what cannot change. An absent text and an empty one are the same.

    Raises:
        FixedParameter: it has changed. The text names node and field.
    """
    rules = rules_of(old)
    for field in (*rules.structural, *(f"{name}_exit" for name in rules.exits)):
        if _plain(getattr(old, field)) != _plain(getattr(new, field)):
            raise FixedParameter(f"`{node}.{field}` cannot change once the agent exists.")


def _plain(value: Any) -> Any:
    return value or None
