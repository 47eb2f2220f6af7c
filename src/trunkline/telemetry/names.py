"""Every name that our traces have, and nowhere else: the conventions still move, and a rename is to be one edit.

They are those of OpenTelemetry for generative AI (https://opentelemetry.io/docs/specs/semconv/gen-ai/). What they have
no name for begins with `trunkline.`.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Who makes the spans.
SCOPE = "trunkline"
SERVICE = "trunkline"

INVOKE_AGENT = "invoke_agent"
EXECUTE_TOOL = "execute_tool"
CHAT = "chat"

OPERATION = "gen_ai.operation.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK_SECONDS = "gen_ai.response.time_to_first_chunk"
TOOL = "gen_ai.tool.name"
TOOL_CALL = "gen_ai.tool.call.id"
ERROR_TYPE = "error.type"

#: The fields of our usage.
USAGE: Mapping[str, str] = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}

TURN = "trunkline.turn"
OUTCOME = "trunkline.outcome"
WIRE = "trunkline.wire"
NODE = "trunkline.node"

SERVICE_NAME = "service.name"
SERVICE_VERSION = "service.version"

#: Providers that the conventions know by another name than we do.
_PROVIDERS: Mapping[str, str] = {
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
}


def provider(ours: str) -> str:
    """What the conventions call a provider."""
    return _PROVIDERS.get(ours, ours)
