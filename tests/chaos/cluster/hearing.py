"""What one client was told of one message, whatever its wire: on each connection that it had, the words and the ends.

Every word of an answer says of which message it is, and the how manieth: `<0123456789ab.2>`. So what was heard can be
compared with what is in the stream, whatever a wire puts between the words.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

#: How many characters of a message's id its words have.
MARK_CHARS = 12

_WORD = re.compile(r"<([0-9a-f]{12})\.(\d+)>")

#: A word: the mark of its message, and its number.
Word = tuple[str, int]


def word(id: str, number: int) -> str:
    """The text of a word of the answer to a message."""
    return f"<{id[:MARK_CHARS]}.{number}>"


def words(text: str) -> list[Word]:
    """The words in a text."""
    return [(mark, int(number)) for mark, number in _WORD.findall(text)]


def name_of(id: str | None, text: str) -> str:
    """What a message is known by to who reads the stream: not all wires let their clients choose the id."""
    found = _WORD.search(text)
    return found[1] if found else (id or "")[:MARK_CHARS]


@dataclass
class Heard:
    """On one connection."""

    node: str
    text: str = ""
    ends: list[str] = field(default_factory=list)
    """How often, and how, it was told that the answer is over."""
    is_whole: bool = False
    """Whether it was told all of the answer, as far as it knows: it has said the message there, and had a good end."""
    wrong: list[str] = field(default_factory=list)
    """What does not go together, in words."""


@dataclass
class Hearing:
    """Of one message. `session` is empty if the client does not know it."""

    wire: str
    session: str
    id: str
    text: str
    is_taken: bool = False
    """Whether the client was told, in whatever way, that the message was taken in: it is a promise."""
    heard: list[Heard] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    taken_at: float = 0.0
    slowest: float = 0.0
    """How long its end took after it was due, in seconds."""
    hanging: str = ""
    """Why it was given up, if it never had an end."""

    @property
    def mark(self) -> str:
        """What the message is known by in the stream."""
        return self.id[:MARK_CHARS]

    @property
    def node(self) -> str:
        """The node that the client is connected to, or was last."""
        return self.heard[-1].node if self.heard else ""

    @property
    def is_ended(self) -> bool:
        """Whether its wire has told the client its end."""
        return any(each.ends for each in self.heard)

    def connected(self, node: str) -> Heard:
        """The message is about to be said on a connection."""
        self.heard.append(Heard(node))
        return self.heard[-1]

    def taken(self) -> None:
        """It was taken in."""
        if not self.is_taken:
            self.is_taken, self.taken_at = True, time.monotonic()


def is_part(found: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether some numbers follow each other in the whole as they do here."""
    count = len(found)
    return not count or any(list(whole[at : at + count]) == list(found) for at in range(len(whole) - count + 1))
