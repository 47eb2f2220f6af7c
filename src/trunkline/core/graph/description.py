"""What a graph is: its nodes and their parameters.

An exit that is None or empty ends the turn. Elsewhere, too, a text of None means "nothing said": it is inherited from
the agent or from the model's catalog.
"""

from __future__ import annotations

from trunkline.base.values import Value
from trunkline.core.graph.ordinals import CannedResponseSelectionStrategy, DirectorStrategy, Placement


class NodeParams(Value):
    """Base of the parameters of all nodes."""


class LogitBias(Value):
    """A text that is to come more or less often: `bias` is added to the logit of each of its tokens."""

    token: str = ""
    bias: float = 0.0


class LoraAdapter(Value):
    """An adapter of the model, and how much of it is to be felt."""

    name: str = ""
    scale: float = 1.0


class SamplingOverrides(Value):
    """What a node samples differently from its model's defaults. None leaves the default, as nothing in a list does;
    0.0 is a number."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    """Each of these ends the answer, and is not in it."""
    json_schema: str | None = None
    """A JSON Schema: the answer is one JSON value that follows it."""
    logit_bias: tuple[LogitBias, ...] = ()
    lora: tuple[LoraAdapter, ...] = ()


class ToolParamDefinition(Value):
    """One parameter of a tool. `type` is for the model's eyes."""

    name: str = ""
    type: str = ""
    description: str = ""


class ToolDefinition(Value):
    """One tool that a model may call."""

    name: str = ""
    description: str = ""
    parameters: tuple[ToolParamDefinition, ...] = ()


class GenerateParams(NodeParams):
    """A node that lets a model answer."""

    model_name: str | None = None
    system_prompt: str | None = None
    template: str | None = None
    placement: int = Placement.BEFORE_USER_AS_SYSTEM
    stream: bool = False
    sampling: SamplingOverrides | None = None
    default_exit: str | None = None


class HumanMessageGuardrailParams(NodeParams):
    """A node that looks for patterns in the user's message."""

    string_storage: str | None = None
    inline_strings: tuple[str, ...] = ()
    triggered_exit: str | None = None
    not_triggered_exit: str | None = None


class CannedResponseParams(NodeParams):
    """A node that answers with a line from a list."""

    string_storage: str | None = None
    inline_strings: tuple[str, ...] = ()
    selection_strategy: int = CannedResponseSelectionStrategy.ROUND_ROBIN
    default_exit: str | None = None


class ToolCallParams(NodeParams):
    """A node that lets a model choose tools."""

    model_name: str | None = None
    system_prompt: str | None = None
    tool_call_format: str | None = None
    tools: tuple[ToolDefinition, ...] = ()
    generate_on_no_tool: bool = False
    notify_client: bool = False
    sampling: SamplingOverrides | None = None
    tool_called_exit: str | None = None
    no_tool_called_exit: str | None = None
    max_calls: int = 1


class RetrieveParams(NodeParams):
    """A node that looks for records near to the user's message."""

    embedded_string_storage: str | None = None
    top_k: int = 2
    threshold: float = 0.5
    source: str | None = None
    filter: str | None = None
    found_exit: str | None = None
    not_found_exit: str | None = None


class InstructionParams(NodeParams):
    """A node that adds an instruction to the turn."""

    instruction_name: str | None = None
    instruction: str | None = None
    default_exit: str | None = None


class ClassifyIntentParams(NodeParams):
    """A node that takes the label of the nearest record."""

    embedded_string_storage: str | None = None
    metadata_field: str | None = None
    threshold: float = 0.25
    filter: str | None = None
    notify_client: bool = False
    diagnostic_topk: int = 5
    found_exit: str | None = None
    not_found_exit: str | None = None


class ClassifyIntentLLMParams(NodeParams):
    """A node that lets a model choose one of some labels."""

    model_name: str | None = None
    intents_ids: str | None = None
    intents_prompt: str | None = None
    system_prompt: str | None = None
    history_turns: int = 2
    threshold: float = 0.5
    margin: float = 0.15
    notify_client: bool = False
    not_found_intent: str | None = None
    found_exit: str | None = None
    not_found_exit: str | None = None


class IntentToInstructionParams(NodeParams):
    """A node that turns the label of an earlier node into an instruction."""

    string_storage: str | None = None
    inline_keys: tuple[str, ...] = ()
    inline_strings: tuple[str, ...] = ()
    instruction_name: str | None = None
    default_exit: str | None = None


class GenerateAndSpeakParams(NodeParams):
    """A node that lets a model answer, aloud."""

    model_name: str | None = None
    tts_model_name: str | None = None
    system_prompt: str | None = None
    template: str | None = None
    placement: int = Placement.BEFORE_USER_AS_SYSTEM
    sampling: SamplingOverrides | None = None
    speaker_id: int = 0
    speed: float = 1.0
    min_sentence_chars: int = 12
    default_exit: str | None = None
    timings: bool = False
    """Tell when which word is said, and what the mouth shows."""
    pronunciations: str | None = None
    """A string storage of the kind Map: how words are said."""


class SpeakParams(NodeParams):
    """A node that says aloud what was answered last."""

    tts_model_name: str | None = None
    speaker_id: int = 0
    speed: float = 1.0
    min_sentence_chars: int = 12
    default_exit: str | None = None
    timings: bool = False
    """Tell when which word is said, and what the mouth shows."""
    pronunciations: str | None = None
    """A string storage of the kind Map: how words are said."""


class RememberParams(NodeParams):
    """A node that writes down, for later sessions, what the user told of themself.

    With neither a model nor a system prompt it keeps the message as it is.
    """

    memory: str | None = None
    model_name: str | None = None
    system_prompt: str | None = None
    max_entries: int = 200
    min_chars: int = 8
    threshold: float = 0.05
    sampling: SamplingOverrides | None = None
    notify_client: bool = False
    default_exit: str | None = None


class CharacterDefinition(Value):
    """One who speaks in a scene."""

    name: str = ""
    system_prompt: str = ""
    model_name: str = ""


class DirectorParams(NodeParams):
    """A node that lets characters talk with each other about the user's message. The system prompt is the scene."""

    model_name: str | None = None
    system_prompt: str | None = None
    characters: tuple[CharacterDefinition, ...] = ()
    strategy: int = DirectorStrategy.ROUND_ROBIN
    max_lines: int = 6
    max_tokens: int = 400
    notify_client: bool = True
    sampling: SamplingOverrides | None = None
    default_exit: str | None = None


class NodeDescription(Value):
    """One node. `tools` is where older clients put what `ToolCallParams.tools` holds."""

    name: str = ""
    params: NodeParams | None = None
    tools: tuple[ToolDefinition, ...] = ()


class GraphDescription(Value):
    """The nodes of an agent, and where each turn begins."""

    nodes: tuple[NodeDescription, ...] = ()
    start_node: str = ""
