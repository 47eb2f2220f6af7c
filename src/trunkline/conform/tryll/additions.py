"""Checks of what a server may have beyond the documented protocol. One that does not have it is not exercised."""

from __future__ import annotations

from typing import Any, TypeVar

from trunkline.conform.expect import expect, same
from trunkline.conform.kit import NotExercised
from trunkline.conform.tryll.link import Link, shown
from trunkline.conform.tryll.stage import Stage
from trunkline.conform.tryll.suite import LINE, NOBODY, canned, check, ended_well
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
        raise NotExercised(f"this server has no `{extension}`: it does not know `{type(request).__name__}`")
    return found


@check("tryll.extra.cancel", "MAY", "Additions", "model")
async def cancel(stage: Stage) -> None:
    """`CancelTurnRequest` ends the turn as cancelled, with an `Ack`; the agent lives on."""
    link = await stage.thinker()
    await has(link, "cancel", m.CancelTurnRequest(0, NOBODY))
    agent = await stage.slow(link)
    await link.send(m.SendMessageRequest(0, agent, stage.chatter(400)))
    await link.take(lambda message: isinstance(message, m.AnswerText), "text of the answer")
    await link.ask(m.CancelTurnRequest(0, agent), m.Ack)
    ended_well(await link.turn(agent), m.TurnStatus.CANCELLED)
    ended_well(await link.say(agent, stage.chatter(2)))


@check("tryll.extra.cancel-nothing", "MAY", "Additions")
async def cancel_nothing(stage: Stage) -> None:
    """To cancel where there is no turn is an `Ack`; an agent that is not there is 3001."""
    link = await stage.session()
    found = await has(link, "cancel", m.CancelTurnRequest(0, NOBODY))
    expect(isinstance(found, m.ErrorResponse) and found.code == 3001, f"nobody's turn: {shown(found)}")
    agent = await link.agent(canned("say", LINE))
    await link.ask(m.CancelTurnRequest(0, agent), m.Ack)
    same("the answer afterwards", ended_well(await link.say(agent, "hello")).text, LINE)


@check("tryll.extra.history", "MAY", "Additions")
async def history(stage: Stage) -> None:
    """A conversation that was saved can be given to another agent, which then has it."""
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
    """`HealthRequest` needs no configured session, and tells that the server is ready."""
    link = await stage.greeted()
    found = await has(link, "health", m.HealthRequest())
    expect(isinstance(found, m.HealthResponse), f"it was answered by {shown(found)}")
    if isinstance(found, m.HealthResponse):
        same("the status", found.status, "ready")
        expect(found.sessions >= 1, "it counts no session, and this is one")


@check("tryll.extra.named", "MAY", "Additions")
async def named(stage: Stage) -> None:
    """What a server has beyond the protocol it names in `SessionReady.extensions`."""
    link = await stage.session()
    for extension, request in (
        ("cancel", m.CancelTurnRequest(0, NOBODY)),
        ("history", m.SaveHistoryRequest(0, NOBODY)),
        ("health", m.HealthRequest()),
    ):
        await has(link, extension, request)
        extensions = link.ready.extensions if link.ready is not None else ()
        expect(extension in extensions, f"it has `{extension}`, and names {extensions}")


@check("tryll.extra.usage", "MAY", "Additions", "model")
async def usage(stage: Stage) -> None:
    """`TurnComplete.tokens_prompt` tells how long the prompt was, and `tokens_cached` how much of it was warm."""
    link = await stage.thinker()
    agent = await stage.slow(link)
    complete = ended_well(await link.say(agent, stage.chatter(8))).complete
    if not complete.tokens_prompt:
        raise NotExercised("this server does not count the tokens of prompts")
    expect(complete.tokens_prompt >= 8, f"eight words or more are {complete.tokens_prompt} tokens")
    expect(0 <= complete.tokens_cached <= complete.tokens_prompt, f"{complete.tokens_cached} of them were warm")
