"""Checks of Responses that are streamed: the order of events, their numbers, and what they add up to."""

from __future__ import annotations

from typing import Any

from trunkline.conform.expect import expect, short
from trunkline.conform.openai.answer import DONE, EVENTS_TYPE, OpenAIAnswer, member
from trunkline.conform.openai.responses import OFFER
from trunkline.conform.openai.scenes import of_type, offered, output_text
from trunkline.conform.openai.stage import Stage
from trunkline.conform.openai.suite import SUITE

#: The events that end a response.
ENDS = ("response.completed", "response.incomplete", "response.failed")


async def _streamed(stage: Stage, prompt: str = "hello") -> tuple[OpenAIAnswer, list[Any]]:
    """A stream, and its events."""
    answer = offered(await stage.respond(prompt, stream=True), OFFER)
    expect(answer.type == EVENTS_TYPE, f"{answer.asked} was answered with the type {short(answer.type)}")
    found = [event.data for event in answer.events if event.text != DONE]
    for event, data in zip(answer.events, found, strict=False):
        known = isinstance(data, dict) and isinstance(data.get("type"), str)
        expect(known, f"the event {short(event.text)} for {answer.asked} has no `type`")
    return answer, found


def _types(events: list[Any]) -> list[str]:
    return [str(each["type"]) for each in events]


@SUITE.check("openai.events.order", "MUST", "Responses streaming")
async def events_are_in_order(stage: Stage) -> None:
    """The first event is `response.created`, the last `response.completed`, each of them once."""
    answer, events = await _streamed(stage)
    types = _types(events)
    expect(types[:1] == ["response.created"], f"the first event for {answer.asked} is {short(types[:1])}")
    expect(types[-1:] == [ENDS[0]], f"the last event for {answer.asked} is {short(types[-1:])}, not `{ENDS[0]}`")
    once = types.count("response.created") == 1 and sum(types.count(each) for each in ENDS) == 1
    expect(once, f"the stream for {answer.asked} begins or ends more than once: {short(types)}")


@SUITE.check("openai.events.names", "MUST", "Responses streaming")
async def events_are_named(stage: Stage) -> None:
    """The `event` line of every event is its `type`."""
    answer, _ = await _streamed(stage)
    for event in answer.events:
        if event.text != DONE:
            named = event.name == member(event.data, "type")
            expect(named, f"an event for {answer.asked} is called {short(event.name)}, its data is {short(event.text)}")


@SUITE.check("openai.events.numbers", "MUST", "Responses streaming")
async def events_are_numbered(stage: Stage) -> None:
    """`sequence_number` grows by one with every event."""
    answer, events = await _streamed(stage)
    numbers = [member(each, "sequence_number") for each in events]
    first = numbers[0] if numbers and isinstance(numbers[0], int) else 0
    wanted = list(range(first, first + len(numbers)))
    expect(numbers == wanted, f"the events for {answer.asked} have the numbers {short(numbers)}")


@SUITE.check("openai.events.items", "MUST", "Responses streaming")
async def items_begin_and_end(stage: Stage) -> None:
    """Every item is added before anything is said of it, and done afterwards, with one `id` and one index."""
    answer, events = await _streamed(stage)
    open_items: dict[Any, Any] = {}
    done: dict[Any, Any] = {}
    for event in events:
        kind, index = event["type"], event.get("output_index")
        if kind == "response.output_item.added":
            expect(index not in open_items, f"for {answer.asked}, two items have the index {short(index)}")
            open_items[index] = member(event, "item", "id")
        elif kind == "response.output_item.done":
            same = index in open_items and open_items[index] == member(event, "item", "id") and index not in done
            expect(same, f"for {answer.asked}, {short(event)} ends no item that was added")
            done[index] = member(event, "item", "id")
        elif "item_id" in event:
            known = index in open_items and index not in done and open_items[index] == event["item_id"]
            expect(known, f"for {answer.asked}, {short(event)} is about no item that is open")
    expect(bool(done) and done == open_items, f"for {answer.asked}, items were added but not done: {short(open_items)}")
    ids = [member(item, "id") for item in member(events[-1], "response", "output") or ()]
    told = f"for {answer.asked}, the items are {short(ids)} in the end, and were {short(list(done.values()))}"
    expect(ids == [done[index] for index in sorted(done)], told)


@SUITE.check("openai.events.parts", "MUST", "Responses streaming")
async def parts_begin_and_end(stage: Stage) -> None:
    """The parts of a message are added before their text comes, and done afterwards."""
    answer, events = await _streamed(stage)
    open_parts: set[tuple[Any, Any]] = set()
    texts = 0
    for event in events:
        key = (event.get("item_id"), event.get("content_index"))
        if event["type"] == "response.content_part.added":
            open_parts.add(key)
        elif event["type"] == "response.content_part.done":
            expect(key in open_parts, f"for {answer.asked}, {short(event)} ends no part that was added")
            open_parts.discard(key)
        elif event["type"].startswith("response.output_text."):
            texts += 1
            expect(key in open_parts, f"for {answer.asked}, {short(event)} is about no part that is open")
    expect(texts > 0, f"for {answer.asked} came no text: {short(_types(events))}")
    expect(not open_parts, f"for {answer.asked}, parts were added but not done: {short(open_parts)}")


@SUITE.check("openai.events.text", "MUST", "Responses streaming")
async def texts_are_the_same(stage: Stage) -> None:
    """The deltas of a text, its end, and the response in the last event have the same text."""
    answer, events = await _streamed(stage)
    deltas = "".join(str(each.get("delta")) for each in of_type(answer.events, "response.output_text.delta"))
    done = "".join(str(each.get("text")) for each in of_type(answer.events, "response.output_text.done"))
    final = output_text(member(events[-1], "response")) if events else ""
    told = f"for {answer.asked} came {short(deltas)}, then {short(done)}, and {short(final)} in the end"
    expect(bool(deltas) and deltas == done == final, told)


@SUITE.check("openai.events.response", "MUST", "Responses streaming")
async def the_response_is_whole(stage: Stage) -> None:
    """The last event has the whole response, with the `id` of the first one and the status `completed`."""
    answer, events = await _streamed(stage)
    first, last = member(events, 0, "response"), member(events, -1, "response")
    same = isinstance(last, dict) and member(first, "id") == member(last, "id")
    told = f"the last event for {answer.asked} is {short(member(events, -1))}"
    expect(same and member(last, "status") == "completed" and member(last, "object") == "response", told)
    expect(member(first, "status") in ("in_progress", "queued"), f"the first event tells the status of {short(first)}")
