"""Servers whose nodes do otherwise than they should, and whose additions and ears do not work."""

from __future__ import annotations

from typing import Any

from tests.conform.tryll.bent import Way
from tests.conform.tryll.habits import answers, changes, requests, rewrites
from trunkline.wires.tryll import messages as m

# Nodes

rewrites("lets_everything_pass", m.HumanMessageGuardrailParams, "tryll.node.guardrail", inline_strings=("zzz",))
rewrites("says_the_first_line_always", m.CannedResponseParams, "tryll.node.canned", "tryll.node.default-strategy",
         selection_strategy=1)  # fmt: skip
rewrites("is_never_slow", m.GenerateParams, "tryll.node.slow", model_name="quick")
rewrites("streams_always", m.GenerateParams, "tryll.turn.whole", stream=True)
rewrites("tells_of_every_call", m.ToolCallParams, "tryll.node.tools-quiet", notify_client=True)
rewrites("knows_no_tools", m.ToolCallParams, "tryll.node.tools", tools=())
rewrites("finds_always_something", m.RetrieveParams, "tryll.node.retrieve", threshold=0.0)
rewrites("finds_only_the_same", m.RetrieveParams, "tryll.node.any-distance", threshold=0.0001)
rewrites("puts_templates_anywhere", m.GenerateParams, "tryll.node.placement", placement=0)
rewrites("has_no_templates", m.GenerateParams, "tryll.node.template", "tryll.node.intent-text", template=None)
rewrites("is_never_sure", m.ClassifyIntentLLMParams, "tryll.node.intent-model", "tryll.node.intent-text", margin=1.0)
rewrites("has_no_sink", m.ClassifyIntentLLMParams, "tryll.node.sink", not_found_intent=None)
rewrites("looks_nothing_up", m.IntentToInstructionParams, "tryll.node.intent-text", inline_keys=("x", "y"))


@answers("tryll.node.generate", "tryll.node.template")
def shouts(way: Way, message: m.Message) -> Any:
    return message.replace(text=message.text.upper()) if isinstance(message, m.AnswerText) else None


@answers("tryll.node.template", "tryll.turn.unicode")
def escapes_marks(way: Way, message: m.Message) -> Any:
    return message.replace(text=message.text.replace("&", "&amp;")) if isinstance(message, m.AnswerText) else None


@answers("tryll.node.history")
def counts_its_answers(way: Way, message: m.Message) -> Any:
    if not isinstance(message, m.AnswerText):
        return None
    way.state["said"] = way.state.get("said", 0) + 1
    return message.replace(text=f"{message.text} {way.state['said']}")


@answers("tryll.node.deltas")
def streams_in_smaller_pieces(way: Way, message: m.Message) -> Any:
    if not isinstance(message, m.AnswerText) or not message.is_delta or len(message.text) < 2:
        return None
    first = message.replace(text=message.text[:1], is_final=False)
    return first, message.replace(text=message.text[1:])


@answers("tryll.node.tools", "tryll.node.intent-model", "tryll.node.intent-text", "tryll.node.intent-record")
def tells_of_no_events(way: Way, message: m.Message) -> Any:
    return () if isinstance(message, m.NodeEvent) else None


@answers("tryll.node.tools")
def gives_arguments_that_are_no_texts(way: Way, message: m.Message) -> Any:
    if not isinstance(message, m.NodeEvent):
        return None
    pairs = tuple(
        each.replace(value='{"count":1}') if each.key == "arguments_json" else each for each in message.kv_pairs
    )
    return message.replace(kv_pairs=pairs)


# Additions

changes("names_no_additions", m.SessionReady, "tryll.extra.named", extensions=())
changes("forgets_conversations", m.SaveHistoryResponse, "tryll.extra.history", entries=())
changes("is_not_well", m.HealthResponse, "tryll.extra.health", status="so so")
changes("counts_one_token_of_a_prompt", m.TurnComplete, "tryll.extra.usage", tokens_prompt=1)


@requests("tryll.extra.cancel")
def cancels_nothing_and_says_yes(way: Way, message: Any, payload: bytes) -> Any:
    if not isinstance(message, m.CancelTurnRequest):
        return None
    way.tell(m.Ack(message.request_id))
    return ()


rewrites("ends_and_forms_no_answer", m.GenerateParams, "tryll.extra.generation", sampling=None)
rewrites("tells_no_times", m.GenerateAndSpeakParams, "tryll.extra.timings", timings=False)


@answers("tryll.extra.timings")
def tells_times_from_the_end(way: Way, message: m.Message) -> Any:
    return message.replace(marks=message.marks[::-1]) if isinstance(message, m.TtsTimingFrame) else None


# Voice


@requests("tryll.voice.words", "tryll.voice.hands-free", "tryll.voice.cancel", "tryll.voice.autosend",
          "tryll.voice.too-long")  # fmt: skip
def is_deaf(way: Way, message: Any, payload: bytes) -> Any:
    return () if isinstance(message, m.AudioBufferFrame) else None


@answers("tryll.voice.silence")
def hears_voices(way: Way, message: m.Message) -> Any:
    return message.replace(text="boo") if isinstance(message, m.WireTranscriptUpdate) else None


@answers("tryll.voice.words")
def never_says_that_it_hears(way: Way, message: m.Message) -> Any:
    is_it = isinstance(message, m.WireTranscriptUpdate) and message.kind == m.TranscriptUpdateKind.SPEECH_START
    return () if is_it else None


@answers("tryll.voice.segments")
def closes_no_segment(way: Way, message: m.Message) -> Any:
    is_it = isinstance(message, m.WireTranscriptUpdate) and message.kind == m.TranscriptUpdateKind.SEGMENT_FINAL
    return () if is_it else None


@requests("tryll.voice.pieces")
def hears_whole_tenths_only(way: Way, message: Any, payload: bytes) -> Any:
    return () if isinstance(message, m.AudioBufferFrame) and len(message.pcm) < 3200 else None


@requests("tryll.voice.order")
def is_in_a_hurry(way: Way, message: Any, payload: bytes) -> Any:
    if isinstance(message, m.EndUtteranceRequest):
        way.state["ended"] = True
    is_it = isinstance(message, m.BeginUtteranceRequest) and "ended" in way.state
    return way.refuse(message, 4103) if is_it else None


@requests("tryll.voice.barge-in")
def lets_nobody_interrupt(way: Way, message: Any, payload: bytes) -> Any:
    return message.replace(barge_in=False) if isinstance(message, m.BeginUtteranceRequest) else None


@answers("tryll.voice.mute")
def hums(way: Way, message: m.Message) -> Any:
    return (m.TtsAudioFrame(message.agent_id, b"\1\0"), message) if isinstance(message, m.TurnComplete) else None
