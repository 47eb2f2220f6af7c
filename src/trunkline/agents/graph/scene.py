"""A scene between characters: what was said in it, as each of them sees it, and what of a model's words is a line.

    Anna: The mill burned down.
    Bert: I was at home that night.

A character's own lines are to its model what an assistant said, and all others what a user did.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from trunkline.base.values import Value
from trunkline.models.engines import ChatMessage, Role

#: What a character says to end the scene.
END_WORD = "[END]"
#: Between a name and what is said.
MARK = ": "

_SENTENCE = re.compile(r"[.!?\u2026][\"'\u2019\u201d)]*(?=\s)")


class Line(Value):
    """Something that was said. The user has no name."""

    speaker: str
    text: str

    @property
    def told(self) -> str:
        """As it stands in the answer."""
        return f"{self.speaker}{MARK}{self.text}" if self.speaker else self.text


def lines_of(messages: Iterable[ChatMessage], names: Sequence[str]) -> list[Line]:
    """What was said in earlier turns. An answer that no character gave is somebody's who was there."""
    found: list[Line] = []
    for message in messages:
        if message.role != "assistant":
            found.append(Line("", message.text))
            continue
        for text in message.text.splitlines():
            speaker, mark, said = text.partition(MARK)
            if mark and speaker in names:
                found.append(Line(speaker, said))
            elif text.strip():
                found.append(Line("", text))
    return found


def seen_by(name: str, lines: Iterable[Line]) -> list[ChatMessage]:
    """The same for the model of one character: its own lines, and in between all that others said."""
    found: list[ChatMessage] = []
    for line in lines:
        role: Role = "assistant" if line.speaker == name else "user"
        text = line.text if line.speaker == name else line.told
        if found and found[-1].role == role:
            found[-1] = ChatMessage(role, f"{found[-1].text}\n{text}")
        else:
            found.append(ChatMessage(role, text))
    return found


def cleaned(text: str, name: str) -> tuple[str, bool]:
    """What a character says in some text of its model: the first line that is one, without its own name before it; and
    whether it ends the scene."""
    said, mark, _ = text.partition(END_WORD)
    return next(filter(None, (_without_name(line, name) for line in said.splitlines())), ""), bool(mark)


def is_complete(text: str, name: str) -> bool:
    """Whether nothing that follows a text changes what `cleaned` makes of it."""
    before, end, _ = text.rpartition("\n")
    return END_WORD in text or bool(end and cleaned(before, name)[0])


def _without_name(line: str, name: str) -> str:
    own = re.match(rf"[\W_]{{0,4}}{re.escape(name)}[\W_]{{0,4}}:[*_]*", line, re.IGNORECASE)
    return " ".join((line[own.end() :] if own is not None else line).split())


def whole_sentences(text: str) -> str:
    """What was cut off in the middle, up to the end of its last sentence; all of it if there is none."""
    ends = [match.end() for match in _SENTENCE.finditer(text)]
    return text[: ends[-1]] if ends else text
