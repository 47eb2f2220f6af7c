"""A conversation as text, for an agent that did not take part: messages, tool results, files that were touched."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from trunkline.core.events import (
    Category,
    Envelope,
    Failed,
    Gap,
    HistoryInjected,
    Steered,
    TextDelta,
    ToolCancelled,
    ToolFinished,
    ToolJudged,
    ToolRequested,
    TurnEnded,
    TurnStarted,
    UserMessage,
)

#: Characters in total. They are part of each of the agent's requests: about an eighth of a typical context window.
MOST_CHARS = 100_000
#: Of one tool's result, and of its arguments: the gist, not everything that it printed.
MOST_OF_RESULT, MOST_OF_ARGS = 2000, 300
#: How many of the files touched last are listed.
MOST_FILES = 200

#: The names of arguments that hold a file.
_FILE_ARGS = ("file_path", "path", "notebook_path")
_CUT = "(What came before that is not shown.)"


def conversation_text(records: Iterable[Envelope | Gap], agent: str) -> str:
    """The conversation so far; only the newest part of a long one. Empty if nothing was said."""
    text = _TextBuilder()
    for record in records:
        if isinstance(record, Envelope):
            text.take(record)
    text.end_of_speech()
    if not text.said:
        return ""
    head = f"Until now another agent, `{agent}`, had this conversation. You go on with it. What was said and done:"
    parts = [head, *([_CUT] if text.is_cut else []), *text.said]
    if text.files:
        parts.append("Files touched so far:\n" + "\n".join(f"- {file} ({how})" for file, how in text.files.items()))
    return "\n\n".join(parts)


class _TextBuilder:
    def __init__(self) -> None:
        self.said: deque[str] = deque()
        self.is_cut = False
        self.files: dict[str, str] = {}
        self._size = 0
        self._speech: list[str] = []
        self._calls: dict[str, tuple[str, Category, Mapping[str, Any]]] = {}

    def take(self, envelope: Envelope) -> None:
        """One more event."""
        match envelope.event:
            case TextDelta(text=text):
                self._speech.append(text)
            case TurnStarted(message=message) | Steered(message=message):
                self._add(_user(message))
            case ToolRequested(call_id=call_id) | ToolJudged(call_id=call_id):
                self._calls[call_id] = (envelope.event.name, envelope.event.category, envelope.event.args)
            case ToolFinished():
                self._finished(envelope.event)
            case ToolCancelled(call_id=call_id, reason=reason):
                name, _, args = self._calls.pop(call_id, ("", "info", {}))
                self._add(f"The tool {_call(name, args)} was not run to its end: {reason}")
            case Failed(message=text):
                self._add(f"Something went wrong: {text}")
            case HistoryInjected(text=text):
                self._add(f"What was known from before:\n{text}")
            case TurnEnded():
                self._calls.clear()
                self.end_of_speech()

    def end_of_speech(self) -> None:
        """Join what the agent has said so far into one piece."""
        text = "".join(self._speech).strip()
        self._speech.clear()
        if text:
            self._append(f"Assistant: {text}")

    def _finished(self, event: ToolFinished) -> None:
        name, category, args = self._calls.pop(event.call_id, (event.name, "info", {}))
        output = f"(an image of {len(event.output)} characters)" if event.output_type == "image" else event.output
        how = "" if event.status == "success" else " failed and"
        self._add(f"The tool {_call(name, args)}{how} gave: {_cut(output.strip() or '(nothing)', MOST_OF_RESULT)}")
        if event.status == "success":
            for file in _files(args, event.metadata):
                self.files.pop(file, None)
                self.files[file] = "changed" if category == "edit" else "read"
                if len(self.files) > MOST_FILES:
                    del self.files[next(iter(self.files))]

    def _add(self, text: str) -> None:
        self.end_of_speech()
        self._append(text)

    def _append(self, text: str) -> None:
        self.said.append(_cut(text, MOST_CHARS))
        self._size += len(self.said[-1])
        while self._size > MOST_CHARS and len(self.said) > 1:
            self._size -= len(self.said.popleft())
            self.is_cut = True


def _user(message: UserMessage) -> str:
    who = f"User ({message.sender})" if message.sender else "User"
    files = f"\n(attached: {', '.join(message.files)})" if message.files else ""
    return f"{who}: {message.text}{files}"


def _call(name: str, args: Mapping[str, Any]) -> str:
    words = ", ".join(f"{key}={value}" for key, value in args.items())
    return f"{name or 'in progress'}({_cut(words, MOST_OF_ARGS)})"


def _files(args: Mapping[str, Any], metadata: Mapping[str, Any] | None) -> Iterable[str]:
    """Each once: the tool's own name for a file is its whole path, of which a call may have given the end."""
    asked, used = ([source.get(name) for name in _FILE_ARGS] for source in (args, metadata or {}))
    whole = [file for file in used if isinstance(file, str) and file]
    given = (file for file in asked if isinstance(file, str) and file)
    ends = [file for file in given if not any(f"/{path}".endswith(f"/{os.path.normpath(file)}") for path in whole)]
    return dict.fromkeys([*ends, *whole])


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} ... ({len(text) - most} more characters)"
