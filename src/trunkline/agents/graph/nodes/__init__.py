"""The kinds of node."""

from __future__ import annotations

from typing import Any

from trunkline.agents.graph.nodes.base import Node
from trunkline.agents.graph.nodes.classify import ClassifyIntent
from trunkline.agents.graph.nodes.classify_llm import ClassifyIntentLLM
from trunkline.agents.graph.nodes.director import Director
from trunkline.agents.graph.nodes.generate import Generate
from trunkline.agents.graph.nodes.remember import Remember
from trunkline.agents.graph.nodes.retrieve import Retrieve
from trunkline.agents.graph.nodes.speak import GenerateAndSpeak, Speak
from trunkline.agents.graph.nodes.strings import CannedResponse, Guardrail, InstructionNode, IntentToInstruction
from trunkline.agents.graph.nodes.tool_call import ToolCallNode
from trunkline.core.graph import description

#: By the type of their parameters.
NODES: dict[type[description.NodeParams], type[Node[Any]]] = {
    description.GenerateParams: Generate,
    description.HumanMessageGuardrailParams: Guardrail,
    description.CannedResponseParams: CannedResponse,
    description.ToolCallParams: ToolCallNode,
    description.RetrieveParams: Retrieve,
    description.InstructionParams: InstructionNode,
    description.ClassifyIntentParams: ClassifyIntent,
    description.ClassifyIntentLLMParams: ClassifyIntentLLM,
    description.IntentToInstructionParams: IntentToInstruction,
    description.GenerateAndSpeakParams: GenerateAndSpeak,
    description.SpeakParams: Speak,
    description.RememberParams: Remember,
    description.DirectorParams: Director,
}

__all__ = ["NODES", "Node"]
