"""A session's records as something to read: who said what, which tools ran, how each turn ended.

`blocks` folds records into blocks, one after the other, so that a long session is never held whole; `as_text` and
`as_markdown` give a block its form.
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from trunkline.base.printable import printable
from trunkline.base.values import Value
from trunkline.core import asides, events
from trunkline.core.events import Envelope, Gap
from trunkline.core.grants import Grant
from trunkline.core.graph.turns import NODE_EVENT, TURN_DIAGNOSTICS
from trunkline.core.usage import Usage

Kind = Literal["turn", "user", "agent", "thinking", "tool", "output", "note", "failure", "end"]


#: Characters of a conversation that another agent is told. They are in each of its requests, and compaction leaves
#: them alone: about an eighth of a usual window.
MOST_DIALOGUE = 100_000
_CUT = "(Earlier parts of the conversation are not shown.)"


class TranscriptBlock(Value):
    """One piece of a transcript. `language` is the kind of code in `text`, if it is code."""

    kind: Kind
    text: str
    title: str = ""
    language: str | None = None


def blocks(records: Iterable[Envelope | Gap]) -> Iterator[TranscriptBlock]:
    """The transcript of some records. Deltas that follow one another are put together.

    Of the private events only the requests are shown that the approval policy answered. Signs of life are left out, and
    of what a graph tells of its way there is the way: the log has all of it.
    """
    run: list[str] = []
    kind: Kind = "agent"
    sound = 0.0
    for record in records:
        event = record.event if isinstance(record, Envelope) else None
        if isinstance(event, events.Audio):
            # It comes in pieces, beside the words.
            sound += asides.seconds(event)
            continue
        if isinstance(event, events.TextDelta | events.ThinkingDelta):
            speaks: Kind = "agent" if isinstance(event, events.TextDelta) else "thinking"
            if run and speaks != kind:
                yield TranscriptBlock(kind, "".join(run))
                run.clear()
            kind = speaks
            run.append(event.text)
            continue
        if event is not None and event.private and not isinstance(event, events.ToolJudged):
            continue
        if isinstance(event, events.Extension) and event.kind in events.UNSEEN:
            # For programs, not for people.
            continue
        if run:
            yield TranscriptBlock(kind, "".join(run))
            run.clear()
        if sound:
            yield TranscriptBlock("note", f"{sound:.1f} s of sound")
            sound = 0.0
        yield from _blocks_of(record)
    if run:
        yield TranscriptBlock(kind, "".join(run))
    if sound:
        yield TranscriptBlock("note", f"{sound:.1f} s of sound")


def dialogue(records: Iterable[Envelope | Gap]) -> str:
    """What was said, and nothing of what was done: for an agent that was not there. Of a long one, the newest part."""
    who: dict[Kind, str] = {"user": "User", "agent": "Assistant"}
    said: deque[str] = deque()
    size, is_cut = 0, False
    for block in blocks(records):
        if block.kind not in who:
            continue
        text = f"{who[block.kind]}: {block.text}"
        said.append(text if len(text) <= MOST_DIALOGUE else f"{text[:MOST_DIALOGUE]} ...")
        size += len(said[-1])
        while size > MOST_DIALOGUE and len(said) > 1:
            size -= len(said.popleft())
            is_cut = True
    return "\n\n".join([_CUT, *said] if is_cut else said)


def _blocks_of(record: Envelope | Gap) -> Iterator[TranscriptBlock]:  # noqa: C901  (one case per event)
    if isinstance(record, Gap):
        yield TranscriptBlock("failure", f"Records {record.first} to {record.last} are damaged or missing.")
        return
    match record.event:
        case events.TurnStarted(message=message):
            yield TranscriptBlock("turn", when(record.at), f"Turn {record.turn}")
            yield TranscriptBlock("user", message.text)
            for file in message.files:
                yield TranscriptBlock("note", f"attached: {file}")
        case events.Steered(message=message):
            yield TranscriptBlock("user", message.text)
        case events.ToolRequested(name=name, category=category, args=args, description=description):
            yield TranscriptBlock(
                "tool", json.dumps(args, ensure_ascii=False), f"{description or name} ({category})", "json"
            )
        case events.ToolJudged(name=name, args=args, description=description, verdict=verdict):
            title = f"{description or name} (policy: {verdict})"
            yield TranscriptBlock("tool", json.dumps(args, ensure_ascii=False), title, "json")
        case events.ToolStarted(name=name):
            yield TranscriptBlock("note", f"runs {name}")
        case events.ToolFinished():
            yield _output(record.event)
        case events.ToolCancelled(reason=reason):
            yield TranscriptBlock("note", f"cancelled: {reason}")
        case events.Failed(kind=kind, message=text, retryable=retryable):
            yield TranscriptBlock("failure", f"{kind}: {text}{' (worth another try)' if retryable else ''}")
        case events.TurnEnded(outcome=outcome, usage=usage):
            yield TranscriptBlock("end", f"{outcome}, {tokens(usage)}")
        case other:
            note = _note(other)
            if note is not None:
                yield TranscriptBlock("note", note)


def _output(event: events.ToolFinished) -> TranscriptBlock:
    title = f"{event.name}: {event.status}"
    if event.output_type == "image":
        return TranscriptBlock("output", f"(an image, {len(event.output)} characters of base64)", title)
    return TranscriptBlock("output", event.output, title, "diff" if event.output_type == "diff" else "")


def _note(event: events.Event) -> str | None:
    match event:
        case events.Notice(message=text):
            return text
        case events.Plan():
            return event.words
        case events.ToolAnswered(approved=approved, by=by):
            return f"{'approved' if approved else 'denied'}{f' by {by}' if by else ''}"
        case events.ModeChanged(mode=mode):
            return f"approval mode: {mode}"
        case events.Granted() | events.GrantRevoked():
            how = "granted for the session" if isinstance(event, events.Granted) else "taken back"
            return f"{how}: {Grant.of(event)}"
        case events.HistoryInjected(text=text):
            return f"told what was said before: {text}"
        case events.SessionIdentified(session_id=session_id):
            return f"the agent's own session: {session_id}"
        case events.Extension(kind=kind, data=data) if kind == TURN_DIAGNOSTICS:
            return asides.way(data)
        case events.Extension(kind=kind) if kind == NODE_EVENT:
            return asides.told(event)
        case events.Extension(kind=kind, data=data):
            return f"{kind}: {json.dumps(data, ensure_ascii=False)}"
        case _:
            return None


def tokens(usage: Usage | None) -> str:
    """What was used, in words."""
    if usage is None or not usage.known:
        return "usage not known"
    names = {
        "input_tokens": "in",
        "output_tokens": "out",
        "cache_read_tokens": "read from the cache",
        "cache_write_tokens": "written to the cache",
        "reasoning_tokens": "of reasoning",
    }
    known = [(getattr(usage, field), words) for field, words in names.items()]
    return "tokens: " + ", ".join(f"{count} {words}" for count, words in known if count is not None)


def when(at: float) -> str:
    """A moment, in local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


_LABELS: dict[Kind, str] = {
    "user": "you",
    "agent": "agent",
    "thinking": "thinks",
    "tool": "asks for",
    "output": "result",
    "note": "note",
    "failure": "failed",
    "end": "end",
}
_LABEL_WIDTH = max(map(len, _LABELS.values()))


def as_text(block: TranscriptBlock) -> tuple[str, str]:
    """A block for the terminal: its label, and its text, indented to stand beside the label."""
    if block.kind == "turn":
        return f"\n{block.title}", block.text
    body = "\n".join(filter(None, (block.title, block.text.rstrip("\n"))))
    hanging = "\n" + " " * (_LABEL_WIDTH + 2)
    return f"{_LABELS[block.kind]:{_LABEL_WIDTH}}", printable(body).replace("\n", hanging)


def as_markdown(block: TranscriptBlock) -> str:
    """A block as Markdown, a paragraph or more, ended by a line feed."""
    return _MARKDOWN[block.kind](block)


def _quoted(block: TranscriptBlock) -> str:
    lines = printable(block.text).rstrip("\n").split("\n")
    return f"**{_LABELS[block.kind]}**\n\n" + "".join(f"> {line}".rstrip() + "\n" for line in lines)


def _fenced(block: TranscriptBlock) -> str:
    """Its title, and its text between fences that the text cannot close."""
    text = printable(block.text).rstrip("\n")
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"**{printable(block.title)}**\n\n{fence}{block.language or ''}\n{text}\n{fence}\n"


def _item(block: TranscriptBlock, style: str = "") -> str:
    text = printable(block.text).replace("\n", "\n  ")
    return f"- {style}{text}{style}\n"


_MARKDOWN: dict[Kind, Callable[[TranscriptBlock], str]] = {
    "turn": lambda block: f"## {block.title}\n\n{block.text}\n",
    "user": _quoted,
    "agent": lambda block: printable(block.text).rstrip("\n") + "\n",
    "thinking": _quoted,
    "tool": _fenced,
    "output": _fenced,
    "note": _item,
    "failure": lambda block: _item(block, "**"),
    "end": _item,
}
