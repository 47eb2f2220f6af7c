"""The nodes of a graph and their parameters, as the schema has them (namespace `Tryll.NodeParams`).

An exit that is None or empty ends the turn. Elsewhere, too, a text of None means "nothing said": it is inherited from
the agent or from the model's catalog.
"""

from __future__ import annotations

from trunkline.wires.tryll.messages_base import Table
from trunkline.wires.tryll.messages_enums import CannedResponseSelectionStrategy, Placement


class NodeParams(Table):
    """Base of the parameters of all nodes: a union on the wire, whose tag says which."""


class SamplingOverrides(Table):
    """What a node samples differently from its model's defaults. None leaves the default; 0.0 is a number."""

    wire = "f f i f f f f i I"

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    max_tokens: int | None = None
    seed: int | None = None


class ToolParamDefinition(Table):
    """One parameter of a tool. `type` is for the model's eyes."""

    wire = "s s s"

    name: str = ""
    type: str = ""
    description: str = ""


class ToolDefinition(Table):
    """One tool that a model may call."""

    wire = "s s [ToolParamDefinition"

    name: str = ""
    description: str = ""
    parameters: tuple[ToolParamDefinition, ...] = ()


class GenerateParams(NodeParams):
    """A node that lets a model answer."""

    wire = "s s s B ? SamplingOverrides s"

    model_name: str | None = None
    system_prompt: str | None = None
    template: str | None = None
    placement: int = Placement.BEFORE_USER_AS_SYSTEM
    stream: bool = False
    sampling: SamplingOverrides | None = None
    default_exit: str | None = None


class HumanMessageGuardrailParams(NodeParams):
    """A node that looks for patterns in the user's message."""

    wire = "s [s s s"

    string_storage: str | None = None
    inline_strings: tuple[str, ...] = ()
    triggered_exit: str | None = None
    not_triggered_exit: str | None = None


class CannedResponseParams(NodeParams):
    """A node that answers with a line from a list."""

    wire = "s [s B s"

    string_storage: str | None = None
    inline_strings: tuple[str, ...] = ()
    selection_strategy: int = CannedResponseSelectionStrategy.ROUND_ROBIN
    default_exit: str | None = None


class ToolCallParams(NodeParams):
    """A node that lets a model choose tools."""

    wire = "s s s [ToolDefinition ? ? SamplingOverrides s s i"

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
    """A node that looks for records near to the user's message. Position 7 was an embedding model once."""

    wire = "s i f s s s s -"

    embedded_string_storage: str | None = None
    top_k: int = 2
    threshold: float = 0.5
    source: str | None = None
    filter: str | None = None
    found_exit: str | None = None
    not_found_exit: str | None = None


class InstructionParams(NodeParams):
    """A node that adds an instruction to the turn."""

    wire = "s s s"

    instruction_name: str | None = None
    instruction: str | None = None
    default_exit: str | None = None


class ClassifyIntentParams(NodeParams):
    """A node that takes the label of the nearest record. Position 8 was an embedding model once."""

    wire = "s s f s ? i s s -"

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

    wire = "s s s s i f f ? s s s"

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

    wire = "s [s [s s s"

    string_storage: str | None = None
    inline_keys: tuple[str, ...] = ()
    inline_strings: tuple[str, ...] = ()
    instruction_name: str | None = None
    default_exit: str | None = None


class GenerateAndSpeakParams(NodeParams):
    """A node that lets a model answer, aloud."""

    wire = "s s s s B SamplingOverrides i f i s"

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


class SpeakParams(NodeParams):
    """A node that says aloud what was answered last."""

    wire = "s i f i s"

    tts_model_name: str | None = None
    speaker_id: int = 0
    speed: float = 1.0
    min_sentence_chars: int = 12
    default_exit: str | None = None


class NodeDescription(Table):
    """One node. `tools` is where older clients put what `ToolCallParams.tools` holds."""

    wire = "s |NodeParams [ToolDefinition"

    name: str = ""
    params: NodeParams | None = None
    tools: tuple[ToolDefinition, ...] = ()


class GraphDescription(Table):
    """The nodes of an agent, and where each turn begins."""

    wire = "[NodeDescription s"

    nodes: tuple[NodeDescription, ...] = ()
    start_node: str = ""


#: By tag, from 1. Append only.
NODE_PARAMS: tuple[type[NodeParams], ...] = (
    GenerateParams, HumanMessageGuardrailParams, CannedResponseParams, ToolCallParams, RetrieveParams,
    InstructionParams, ClassifyIntentParams, ClassifyIntentLLMParams, IntentToInstructionParams,
    GenerateAndSpeakParams, SpeakParams,
)  # fmt: skip
