"""The steps that the checks are put together from: say something, get a tool requested, answer, see the turn out."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable
from typing import Any

from trunkline.base.values import Value
from trunkline.conform.jsonstream.stage import Stage
from trunkline.conform.jsonstream.subject import SeenEvent, Subject, Wanted
from trunkline.conform.kit import Broken, NotExercised

#: Tool calls in one turn, beyond which an agent does something else than it was asked for.
MOST_CALLS = 20

#: What the protocol document, section 1.5, says of the tools that it names.
CATEGORIES = {
    "Read": "info",
    "Glob": "info",
    "Grep": "info",
    "Write": "edit",
    "Edit": "edit",
    "Bash": "exec",
    "Spawn": "exec",
}

_numbers = itertools.count(1)


def new_id() -> str:
    """A message id that was not used before."""
    return f"conform-{next(_numbers)}"


def of(type: str, *, msg_id: str | None = None, call_id: str | None = None) -> Wanted:
    """Events of that type, and of that message or call where given."""
    return lambda event: event.type == type and msg_id in (None, event.msg_id) and call_id in (None, event.call_id)


def any_of(*wanted: Wanted) -> Wanted:
    """What at least one of them wants."""
    return lambda event: any(each(event) for each in wanted)


def ends(msg_id: str) -> Wanted:
    """The end of that message's turn."""
    return of("stream_end", msg_id=msg_id)


def text_of(events: Iterable[SeenEvent]) -> str:
    """The answer in these events."""
    return "".join(str(event.data.get("text", "")) for event in events if event.type == "text_delta")


class PendingCall(Value):
    """A tool call that waits for an answer."""

    msg_id: str
    call_id: str
    event: SeenEvent

    @property
    def name(self) -> str:
        """The tool."""
        return str(self.event.member("tool", "name"))

    @property
    def category(self) -> Any:
        """Its category, whatever the agent says it is."""
        return self.event.member("tool", "category")


async def say(stage: Stage, subject: Subject, prompt: str, **parts: str) -> str:
    """Send a prompt by its name; the new message's id."""
    return await send(subject, stage.prompt(prompt, **parts))


async def send(subject: Subject, text: str, **more: Any) -> str:
    """Send a message; its id, a new one unless given."""
    msg_id = str(more.pop("msg_id", None) or new_id())
    await subject.send(type="message", msg_id=msg_id, input=text, **more)
    return msg_id


async def approve(subject: Subject, request: PendingCall, scope: str = "once") -> None:
    """Approve a call."""
    await subject.send(type="tool_approve", call_id=request.call_id, scope=scope)


async def deny(subject: Subject, request: PendingCall, reason: str = "The kit says no") -> None:
    """Deny a call."""
    await subject.send(type="tool_deny", call_id=request.call_id, reason=reason)


async def see_out(stage: Stage, subject: Subject, msg_id: str, *, approving: bool = True) -> list[SeenEvent]:
    """What comes up to the end of a turn; requests on the way are approved or denied: they are not what is looked at.

    Raises:
        NotExercised: the turn did not end.
    """
    found: list[SeenEvent] = []
    wanted = any_of(ends(msg_id), of("tool_request", msg_id=msg_id))
    for _ in range(MOST_CALLS):
        found += await subject.hope(f"`stream_end` of `{msg_id}`", wanted, stage.target.timeout)
        if found[-1].type == "stream_end":
            return found
        another = PendingCall(msg_id, found[-1].call_id or "", found[-1])
        await (approve(subject, another) if approving else deny(subject, another))
    raise NotExercised(_too_many())


async def ask(stage: Stage, subject: Subject, prompt: str, **parts: str) -> list[SeenEvent]:
    """Send a prompt and see its turn out."""
    return await see_out(stage, subject, await say(stage, subject, prompt, **parts))


async def streaming(stage: Stage, subject: Subject) -> str:
    """A message whose answer is under way and goes on: its id.

    Raises:
        NotExercised: there was no text, or the answer was over at once.
    """
    msg_id = await say(stage, subject, "long")
    wanted = any_of(of("text_delta", msg_id=msg_id), ends(msg_id))
    found = await subject.hope("`text_delta`", wanted, stage.target.timeout)
    found += [] if found[-1].type == "stream_end" else await subject.collect(ends(msg_id), stage.target.quiet)
    if found[-1].type == "stream_end":
        raise NotExercised("the answer was finished before the kit could act")
    return msg_id


async def greet(stage: Stage, subject: Subject, after: str) -> list[SeenEvent]:
    """A plain message, which has to be answered: the agent is still there.

    Raises:
        Broken: it is not.
    """
    msg_id = await say(stage, subject, "hello")
    found = await subject.expect(f"the answer to the next message {after}", ends(msg_id), stage.target.timeout)
    if not text_of(event for event in found if event.msg_id == msg_id):
        raise Broken(f"the next message {after} got an answer without text")
    return found


async def request(stage: Stage, subject: Subject, prompt: str, category: str, **parts: str) -> PendingCall:
    """Send a prompt that makes the agent ask for a tool of that category. Others on the way are approved.

    Raises:
        NotExercised: it did not ask.
    """
    return await next_request(stage, subject, await say(stage, subject, prompt, **parts), category)


async def next_request(stage: Stage, subject: Subject, msg_id: str, category: str) -> PendingCall:
    """The next request of that category in the turn.

    Raises:
        NotExercised: there was none.
    """
    wanted = any_of(ends(msg_id), of("tool_request", msg_id=msg_id))
    found: list[SeenEvent] = []
    for _ in range(MOST_CALLS):
        found += await subject.hope("`tool_request`", wanted, stage.target.timeout)
        event = found[-1]
        if event.type == "stream_end":
            raise NotExercised(_without_request(found, category))
        if event.member("tool", "category") == category:
            return PendingCall(msg_id, event.call_id or "", event)
        await approve(subject, PendingCall(msg_id, event.call_id or "", event))
    raise NotExercised(_too_many())


async def two_requests(stage: Stage, subject: Subject) -> tuple[PendingCall, PendingCall]:
    """Two `edit` requests that are open at the same time.

    Raises:
        NotExercised: the second one did not come before the first was answered.
    """
    first = await request(stage, subject, "write-two", "edit")
    # The second comes at once, or it never comes before the answer to the first.
    found = await subject.collect(of("tool_request", msg_id=first.msg_id), stage.target.patience)
    if not found or found[-1].type != "tool_request":
        raise NotExercised("only one `tool_request` was open at a time")
    return first, PendingCall(first.msg_id, found[-1].call_id or "", found[-1])


async def unbidden(stage: Stage, subject: Subject, wanted: PendingCall) -> list[SeenEvent]:
    """What happens to a call that nobody has answered, while the kit listens: nothing should."""
    heard = await subject.listen(stage.target.quiet)
    return [event for event in heard if event.call_id == wanted.call_id]


async def running(stage: Stage, subject: Subject, wanted: PendingCall) -> None:
    """Approve a call once and wait until it runs.

    Raises:
        NotExercised: it did not run.
    """
    await approve(subject, wanted)
    await subject.hope("`tool_running`", of("tool_running", call_id=wanted.call_id), stage.target.timeout)


async def asked(stage: Stage, subject: Subject, prompt: str, category: str, why: str, **parts: str) -> None:
    """Send a prompt for a tool of that category, which has to be asked for.

    Raises:
        Broken: it ran without.
        NotExercised: none was used.
    """
    msg_id = await say(stage, subject, prompt, **parts)
    requested: set[str | None] = set()
    async for event in _calls(stage, subject, msg_id):
        requested |= {event.call_id} if event.type == "tool_request" else set()
        if event.type == "tool_request" and event.member("tool", "category") == category:
            return
        if event.type == "tool_running" and event.call_id not in requested and _may_be(event, category):
            raise Broken(f"`{event.data.get('tool_name')}` ran without an approval{why}")
    raise NotExercised(f"the agent used no `{category}` tool")


async def unasked(stage: Stage, subject: Subject, prompt: str, category: str, why: str, **parts: str) -> None:
    """Send a prompt for a tool of that category, which must run without being asked for, and see the turn out.

    Raises:
        Broken: it was asked for.
        NotExercised: none was used.
    """
    msg_id = await say(stage, subject, prompt, **parts)
    requested: set[str | None] = set()
    has_run = False
    async for event in _calls(stage, subject, msg_id):
        requested |= {event.call_id} if event.type == "tool_request" else set()
        if event.type == "tool_request" and event.member("tool", "category") == category:
            raise Broken(f"`{event.member('tool', 'name')}` was requested{why}")
        has_run = has_run or (
            event.type == "tool_running" and event.call_id not in requested and _may_be(event, category)
        )
    if not has_run:
        raise NotExercised(f"the agent used no `{category}` tool")


async def _calls(stage: Stage, subject: Subject, msg_id: str) -> AsyncIterator[SeenEvent]:
    """The requests and starts of tools in a turn. A request that does not end the matter is approved."""
    wanted = any_of(ends(msg_id), of("tool_request", msg_id=msg_id), of("tool_running", msg_id=msg_id))
    for _ in range(2 * MOST_CALLS):
        event = (await subject.hope(f"`stream_end` of `{msg_id}`", wanted, stage.target.timeout))[-1]
        if event.type == "stream_end":
            return
        yield event
        if event.type == "tool_request":
            await approve(subject, PendingCall(msg_id, event.call_id or "", event))
    raise NotExercised(_too_many())


def _may_be(event: SeenEvent, category: str) -> bool:
    """Whether a tool that runs may be of that category: it says its name only, and the protocol names a few."""
    return CATEGORIES.get(str(event.data.get("tool_name")), category) == category


def _without_request(events: list[SeenEvent], category: str) -> str:
    asked = {event.call_id for event in events if event.type == "tool_request"}
    running = [event for event in events if event.type == "tool_running"]
    unasked = sorted({str(event.data.get("tool_name")) for event in running if event.call_id not in asked})
    if unasked:
        return f"the agent did not request an `{category}` tool; without a request it ran {', '.join(unasked)}"
    if asked:
        return f"the agent requested tools, but none of the category `{category}`"
    return f"the agent ended its turn without requesting an `{category}` tool"


def _too_many() -> str:
    return f"the agent requested more than {MOST_CALLS} tools in one turn"
