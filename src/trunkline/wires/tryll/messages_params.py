"""How the values of a graph stand in frames: the layouts of tables that are not the wire's own (see `messages_base`).

Positions 7 of `RetrieveParams` and 8 of `ClassifyIntentParams` were an embedding model once.
"""

from __future__ import annotations

from trunkline.base.values import Value
from trunkline.core.graph import description as d
from trunkline.core.graph.models import ModelInfo, SamplingParams
from trunkline.core.graph.speech import TtsMark

LAYOUTS: dict[type[Value], str] = {
    d.LogitBias: "s f",
    d.LoraAdapter: "s f",
    d.SamplingOverrides: "f f i f f f f i I [s s [LogitBias [LoraAdapter",
    d.ToolParamDefinition: "s s s",
    d.ToolDefinition: "s s [ToolParamDefinition",
    d.GenerateParams: "s s s B ? SamplingOverrides s",
    d.HumanMessageGuardrailParams: "s [s s s",
    d.CannedResponseParams: "s [s B s",
    d.ToolCallParams: "s s s [ToolDefinition ? ? SamplingOverrides s s i",
    d.RetrieveParams: "s i f s s s s -",
    d.InstructionParams: "s s s",
    d.ClassifyIntentParams: "s s f s ? i s s -",
    d.ClassifyIntentLLMParams: "s s s s i f f ? s s s",
    d.IntentToInstructionParams: "s [s [s s s",
    d.GenerateAndSpeakParams: "s s s s B SamplingOverrides i f i s ? s",
    d.SpeakParams: "s i f i s ? s",
    d.RememberParams: "s s s i i f SamplingOverrides ? s",
    d.CharacterDefinition: "s s s",
    d.DirectorParams: "s s [CharacterDefinition B i i ? SamplingOverrides s",
    d.NodeDescription: "s |NodeParams [ToolDefinition",
    d.GraphDescription: "[NodeDescription s",
    SamplingParams: "f f i f f f f i I [s s [LogitBias [LoraAdapter",
    TtsMark: "B s I I",
    ModelInfo: "s B s Q s s s s i [s s SamplingParams s s s [s Q i i i s s [s",
}


#: By tag, from 1. Append only.
NODE_PARAMS: tuple[type[d.NodeParams], ...] = (
    d.GenerateParams, d.HumanMessageGuardrailParams, d.CannedResponseParams, d.ToolCallParams, d.RetrieveParams,
    d.InstructionParams, d.ClassifyIntentParams, d.ClassifyIntentLLMParams, d.IntentToInstructionParams,
    d.GenerateAndSpeakParams, d.SpeakParams, d.RememberParams, d.DirectorParams,
)  # fmt: skip
