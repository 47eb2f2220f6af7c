"""Checks of what a server may have beyond the documented protocol. One that does not have it is not exercised."""

from __future__ import annotations

from typing import Any, TypeVar

from trunkline.base import jsontext
from trunkline.conform.expect import expect, same
from trunkline.conform.kit import NotExercised
from trunkline.conform.tryll.link import Link, shown
from trunkline.conform.tryll.stage import MOCK, Stage
from trunkline.conform.tryll.suite import LINE, NOBODY, canned, check, ended_well
from trunkline.conform.tryll.turns import QUIET_SECONDS
from trunkline.wires.tryll import messages as m

T = TypeVar("T", bound=m.Message)

_UNKNOWN_KIND = 5002


async def has(link: Link, extension: str, request: Any) -> m.Message:
    """The answer to a request of an extension.

    Raises:
        NotExercised: the server does not have it.
    """
    request = request.replace(request_id=link.next_id())
    await link.send(request)
    found = await link.answer(request.request_id, type(request).__name__)
    if isinstance(found, m.ErrorResponse) and found.code == _UNKNOWN_KIND:
        raise NotExercised(f"this server does not support `{extension}`: it does not know `{type(request).__name__}`")
    return found


@check("tryll.extra.cancel", "MAY", "Additions", "model")
async def cancel(stage: Stage) -> None:
    """`CancelTurnRequest` ends the turn as cancelled, with an `Ack`; the agent stays usable."""
    link = await stage.model_session()
    await has(link, "cancel", m.CancelTurnRequest(0, NOBODY))
    agent = await stage.slow(link)
    await link.send(m.SendMessageRequest(0, agent, stage.chatter(400)))
    await link.take(lambda message: isinstance(message, m.AnswerText), "text of the answer")
    await link.ask(m.CancelTurnRequest(0, agent), m.Ack)
    ended_well(await link.turn(agent), m.TurnStatus.CANCELLED)
    ended_well(await link.say(agent, stage.chatter(2)))


@check("tryll.extra.cancel-nothing", "MAY", "Additions")
async def cancel_nothing(stage: Stage) -> None:
    """Cancelling without a turn gets an `Ack`; for an unknown agent it gets 3001."""
    link = await stage.session()
    found = await has(link, "cancel", m.CancelTurnRequest(0, NOBODY))
    expect(isinstance(found, m.ErrorResponse) and found.code == 3001, f"nobody's turn: {shown(found)}")
    agent = await link.agent(canned("say", LINE))
    await link.ask(m.CancelTurnRequest(0, agent), m.Ack)
    same("the answer afterwards", ended_well(await link.say(agent, "hello")).text, LINE)


@check("tryll.extra.history", "MAY", "Additions")
async def history(stage: Stage) -> None:
    """A saved conversation can be restored in another agent."""
    link = await stage.session()
    await has(link, "history", m.SaveHistoryRequest(0, NOBODY))
    agent, other = await link.agent(canned("say", "a", "b")), await link.agent(canned("say", "c"))
    for text in ("one", "two"):
        ended_well(await link.say(agent, text))
    saved = await link.ask(m.SaveHistoryRequest(0, agent), m.SaveHistoryResponse)
    entries = [(each.role, each.text) for each in saved.entries if each.role != "system"]
    wanted = [("user", "one"), ("assistant", "a"), ("user", "two"), ("assistant", "b")]
    same("the conversation", entries, wanted)
    await link.ask(m.RestoreHistoryRequest(0, other, saved.entries), m.Ack)
    again = await link.ask(m.SaveHistoryRequest(0, other), m.SaveHistoryResponse)
    same("the conversation of the other", again.entries, saved.entries)


@check("tryll.extra.health", "MAY", "Additions")
async def health(stage: Stage) -> None:
    """`HealthRequest` needs no configured session, and reports that the server is ready."""
    link = await stage.greeted()
    found = await has(link, "health", m.HealthRequest())
    expect(isinstance(found, m.HealthResponse), f"the answer is {shown(found)}")
    if isinstance(found, m.HealthResponse):
        same("the status", found.status, "ready")
        expect(found.sessions >= 1, "it reports no sessions, although this is one")


@check("tryll.extra.named", "MAY", "Additions")
async def named(stage: Stage) -> None:
    """A server lists its additions to the protocol in `SessionReady.extensions`."""
    link = await stage.session()
    for extension, request in (
        ("cancel", m.CancelTurnRequest(0, NOBODY)),
        ("history", m.SaveHistoryRequest(0, NOBODY)),
        ("health", m.HealthRequest()),
    ):
        await has(link, extension, request)
        extensions = link.ready.extensions if link.ready is not None else ()
        expect(extension in extensions, f"it supports `{extension}`, but lists {extensions}")


@check("tryll.extra.usage", "MAY", "Additions", "model")
async def usage(stage: Stage) -> None:
    """`TurnComplete.tokens_prompt` is the length of the prompt, and `tokens_cached` how much of it was cached."""
    link = await stage.model_session()
    agent = await stage.slow(link)
    complete = ended_well(await link.say(agent, stage.chatter(8))).complete
    if not complete.tokens_prompt:
        raise NotExercised("this server does not count the tokens of prompts")
    expect(complete.tokens_prompt >= 8, f"eight words or more are {complete.tokens_prompt} tokens")
    expect(0 <= complete.tokens_cached <= complete.tokens_prompt, f"{complete.tokens_cached} of them were cached")


def _listed(link: Link, extension: str) -> None:
    """See to it that a server lists an extension that old servers pass over in silence.

    Raises:
        NotExercised: it does not.
    """
    if link.ready is None or extension not in link.ready.extensions:
        raise NotExercised(f"this server does not list `{extension}`")


@check("tryll.extra.generation", "MAY", "Additions", "mock")
async def generation(stage: Stage) -> None:
    """`sampling.stop` ends an answer before its text; with `sampling.json_schema` the answer is JSON."""
    link = await stage.session()
    _listed(link, "generation")
    agent = await link.agent(_asked(m.SamplingOverrides(stop=("three",))))
    text = ended_well(await link.say(agent, "one two three four")).text
    expect("two" in text and "three" not in text and "four" not in text, f"the answer to be stopped is {text!a}")
    schema = '{"type": "object", "properties": {"mood": {"enum": ["calm", "angry"]}}, "required": ["mood"]}'
    agent = await link.agent(_asked(m.SamplingOverrides(json_schema=schema)))
    text = ended_well(await link.say(agent, "hello")).text
    try:
        found = jsontext.loads(text.encode())
    except ValueError:
        found = None
    expect(isinstance(found, dict) and found.get("mood") in ("calm", "angry"), f"the answer in JSON is {text!a}")


def _asked(sampling: m.SamplingOverrides) -> m.NodeDescription:
    return m.NodeDescription("say", m.GenerateParams(MOCK, stream=True, sampling=sampling))


@check("tryll.extra.timings", "MAY", "Additions", "mock")
async def timings(stage: Stage) -> None:
    """With `timings`, each word of an answer has a mark, in order; without, there are none."""
    link = await stage.session()
    _listed(link, "timings")
    for wanted in (True, False):
        speaking = m.GenerateAndSpeakParams(MOCK, MOCK, timings=wanted)
        ended_well(await link.say(await link.agent(m.NodeDescription("say", speaking)), "hello there"))
        others = await link.quiet(QUIET_SECONDS)
        marks = [mark for each in others if isinstance(each, m.TtsTimingFrame) for mark in each.marks]
        words = [mark.text for mark in marks if mark.kind == m.TtsMarkKind.WORD]
        same("the last words that have marks", words[-2:], ["hello", "there"] if wanted else [])
        starts = [mark.start_ms for mark in marks]
        expect(starts == sorted(starts), "the marks are not in order")
        expect(all(mark.start_ms <= mark.end_ms for mark in marks), "a mark ends before it begins")
