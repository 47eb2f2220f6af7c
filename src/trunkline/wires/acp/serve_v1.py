"""Version 1 of the protocol, where the answer to a prompt ends its turn.

Version 2 answers a prompt when it was taken, and tells of the turn's end in an update: another module like this one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from trunkline.core.fault_kinds import of_kind
from trunkline.core.fault_table import told
from trunkline.core.faults import AgentFailed
from trunkline.core.usage import Usage
from trunkline.wires.acp.messages import PromptRequest, PromptResponse, PromptUsage, StopReason
from trunkline.wires.acp.serve_session import OpenPrompt, SeatedSession, TurnEnd

#: Why an answer did not simply come to its end, by the protocol's words.
_FINISHES: Mapping[str | None, StopReason] = {
    "length": "max_tokens",
    "refusal": "refusal",
    "max_turns": "max_turn_requests",
}


async def answer_prompt(session: SeatedSession, prompt: OpenPrompt, request: PromptRequest) -> PromptResponse:
    """The answer to a prompt, once its turn has ended.

    Raises:
        Fault: the turn failed, or was not begun.
    """
    try:
        await session.submit(prompt, request.prompt)
        return _response(await asyncio.shield(prompt.ended))
    except asyncio.CancelledError:
        session.withdraw(prompt)
        raise


def _response(end: TurnEnd) -> PromptResponse:
    usage = None if end.usage is None else _usage(end.usage)
    if end.cancelled or end.outcome == "cancelled":
        return PromptResponse("cancelled", usage)
    reason = _FINISHES.get(end.finish)
    if reason is not None:
        return PromptResponse(reason, usage)
    if end.failure is not None:
        failure = end.failure
        raise of_kind(failure.kind, told(failure.kind, failure.message), retryable=failure.retryable)
    if end.outcome != "success":
        raise AgentFailed("The turn ended, and nobody knows how.")
    return PromptResponse("end_turn", usage)


def _usage(usage: Usage) -> PromptUsage | None:
    if not usage.known:
        return None
    return PromptUsage(
        # What was read from a cache or written to it is part of the input.
        (usage.input_tokens or 0) + (usage.output_tokens or 0),
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        cached_read_tokens=usage.cache_read_tokens,
        cached_write_tokens=usage.cache_write_tokens,
        thought_tokens=usage.reasoning_tokens,
    )
