"""The kinds of node."""

from __future__ import annotations

from typing import Any

from trunkline.agents.graph.nodes.base import Node
from trunkline.agents.graph.nodes.classify import ClassifyIntent
from trunkline.agents.graph.nodes.classify_llm import ClassifyIntentLLM
from trunkline.agents.graph.nodes.generate import Generate
from trunkline.agents.graph.nodes.retrieve import Retrieve
from trunkline.agents.graph.nodes.speak import GenerateAndSpeak, Speak
from trunkline.agents.graph.nodes.strings import CannedResponse, Guardrail, Instruction, IntentToInstruction
from trunkline.agents.graph.nodes.tool_call import ToolCall
from trunkline.wires.tryll import messages

#: By the type of their parameters.
NODES: dict[type[messages.NodeParams], type[Node[Any]]] = {
    messages.GenerateParams: Generate,
    messages.HumanMessageGuardrailParams: Guardrail,
    messages.CannedResponseParams: CannedResponse,
    messages.ToolCallParams: ToolCall,
    messages.RetrieveParams: Retrieve,
    messages.InstructionParams: Instruction,
    messages.ClassifyIntentParams: ClassifyIntent,
    messages.ClassifyIntentLLMParams: ClassifyIntentLLM,
    messages.IntentToInstructionParams: IntentToInstruction,
    messages.GenerateAndSpeakParams: GenerateAndSpeak,
    messages.SpeakParams: Speak,
}

__all__ = ["NODES", "Node"]
