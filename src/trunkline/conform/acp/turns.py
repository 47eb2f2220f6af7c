"""Checks of a turn: its updates, its end, and what follows."""

from __future__ import annotations

import re
from typing import Any

from trunkline.conform.acp.scenes import begin, finish, opened, say, word
from trunkline.conform.acp.stage import Stage
from trunkline.conform.acp.subject import UPDATE, is_response
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.acp.vocabulary import STOP_REASONS, TURN_UPDATES
from trunkline.conform.expect import short
from trunkline.conform.kit import Broken, Judgement, NotApplicable
from trunkline.conform.record import Record

#: What UTF-8 is for: two, three and four bytes, and a mark that joins the letter before it.
BEYOND_ASCII = "\u00e4\u00f6\u00fc \u6f22\u5b57 \U0001f642 e\u0301"


@SUITE.check("acp.prompt.answer", "MUST", "Prompt Turn")
async def prompts_are_answered(stage: Stage) -> None:
    """A prompt is answered: its text comes in `agent_message_chunk` updates, then the response with `end_turn`."""
    agent, session = await opened(stage)
    reply = await say(stage, agent, session, "hello")
    if not reply.text(session):
        raise Broken(f"no text came between {reply.asked} and its response {reply.shown}")
    if reply.result.get("stopReason") != "end_turn":
        raise Broken(f"{reply.asked} was answered with {reply.shown}, not with the `stopReason` `end_turn`")


@SUITE.check("acp.prompt.again", "MUST", "Prompt Turn")
async def conversations_go_on(stage: Stage) -> None:
    """A session takes one prompt after the other."""
    agent, session = await opened(stage)
    for _ in range(3):
        reply = await say(stage, agent, session, "hello")
        if not reply.text(session):
            raise Broken(f"no text came between {reply.asked} and its response {reply.shown}")


@SUITE.check("acp.prompt.remembers", "SHOULD", "Prompt Turn")
async def conversations_are_remembered(stage: Stage) -> None:
    """A prompt builds on those before it in its session, and not on those of others."""
    agent, session = await opened(stage)
    for wanted in (1, 2):
        reply = await say(stage, agent, session, "count")
        found = re.findall(r"\d+", reply.text(session))
        if not found:
            raise NotApplicable("the agent does not count; the prompt `count` must make it tell how many prompts came")
        if found[-1] != str(wanted):
            said = short(reply.text(session))
            raise Broken(f"asked for the number of prompts, which is {wanted}, the agent said {said}")


@SUITE.check("acp.prompt.unicode", "MUST", "Transports")
async def text_is_utf8(stage: Stage) -> None:
    """Characters outside ASCII survive in both directions."""
    agent, session = await opened(stage)
    mark = word()
    reply = await say(stage, agent, session, "repeat", text=f"{mark} {BEYOND_ASCII}")
    found = reply.text(session)
    if mark not in found:
        raise NotApplicable(f"the agent does not repeat what it is told: it said {short(found)}")
    if BEYOND_ASCII not in found:
        raise Broken(f"asked to repeat {short(f'{mark} {BEYOND_ASCII}')}, the agent said {short(found)}")


@SUITE.check("acp.prompt.blocks", "MUST", "Prompt Turn")
async def prompts_have_blocks(stage: Stage) -> None:
    """A prompt of several text blocks is one prompt."""
    agent, session = await opened(stage)
    words = (word(), word())
    blocks = [{"type": "text", "text": stage.prompt("repeat", text=each)} for each in words]
    found = (await finish(stage, agent, begin(agent, session, blocks))).text(session)
    if not any(each in found for each in words):
        raise NotApplicable(f"the agent does not repeat what it is told: it said {short(found)}")


@SUITE.check("acp.prompt.empty", "SHOULD", "Prompt Turn")
async def empty_prompts_are_answered(stage: Stage) -> None:
    """A prompt without any block is answered, or refused; never silence."""
    agent, session = await opened(stage)
    await agent.answer(begin(agent, session, []), stage.target.timeout)


def turns(record: Record) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The prompts of a conversation that were answered, each with its response."""
    asked: list[dict[str, Any]] = []
    found = []
    for entry in record.entries:
        if not isinstance(entry.data, dict):
            continue
        if entry.who == "host" and entry.data.get("method") == "session/prompt" and "id" in entry.data:
            asked.append(entry.data)
        elif entry.who == "agent" and is_response(entry.data):
            of = [each for each in asked if each["id"] == entry.data.get("id")]
            found += [(each, entry.data) for each in of]
    return found


@SUITE.judge("acp.prompt.stop-reason", "MUST", "Prompt Turn")
def turns_have_a_reason_to_end(record: Record) -> Judgement:
    """The response to a prompt has one of the five values as its `stopReason`."""
    ends = [response for _, response in turns(record) if "result" in response]
    for response in ends:
        result = response["result"]
        reason = result.get("stopReason") if isinstance(result, dict) else None
        if not isinstance(reason, str) or reason not in STOP_REASONS:
            return Judgement(len(ends), f"`session/prompt` was answered with {short(response)}")
    return Judgement(len(ends))


@SUITE.judge("acp.prompt.before", "MUST", "Prompt Turn")
def updates_come_before_the_end(record: Record) -> Judgement:
    """What belongs to a turn comes before the response that ends it."""
    open_turns: dict[Any, list[Any]] = {}
    ended: set[str] = set()
    count = 0
    for entry in record.entries:
        data = entry.data
        if not isinstance(data, dict):
            continue
        params = data.get("params") if isinstance(data.get("params"), dict) else {}
        session = params.get("sessionId") if isinstance(params, dict) else None
        if entry.who == "host" and isinstance(session, str) and "id" in data and "method" in data:
            # Loading a session tells of its turns, too.
            open_turns.setdefault(session, []).append(data["id"])
        elif entry.who == "agent" and is_response(data):
            for name, ids in open_turns.items():
                if data.get("id") in ids:
                    ids.remove(data.get("id"))
                    count += 1
                    ended.add(name)
        elif entry.who == "agent" and data.get("method") == UPDATE and session in ended and not open_turns[session]:
            update = params.get("update") if isinstance(params, dict) else None
            if isinstance(update, dict) and update.get("sessionUpdate") in TURN_UPDATES:
                return Judgement(count, f"after the response that ended the turn came {short(update)}")
    return Judgement(count)
