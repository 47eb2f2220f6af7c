"""What others wrote, as people can safely read it: nothing in it is obeyed as Markdown, and nothing in it is unseen.

Agents, models and senders choose names, descriptions and commands. Somebody decides by them. So a text of theirs stands
in code, which it cannot end, and characters that hide or turn others round are shown by their numbers.
"""

from __future__ import annotations

import unicodedata

from trunkline.base import visible as base

#: A name of a tool or an agent. More is not a name.
LONGEST_WORD = 200
#: What stands between what a user wrote and who they are; more of it would be an advertisement.
LONGEST_NAME = 64
#: As much of a message as one needs to know which it was.
EXCERPT_CHARS = 60

_MINUTE = 60.0
#: What people's names are made of, punctuation left out: letters, marks, digits, pictures.
_IN_NAMES = ("L", "M", "N", "So")


def inline(text: str, most: int = LONGEST_WORD) -> str:
    """A text of somebody else's for a place between backticks: one line, which cannot end them."""
    return base.inline(text, most)


def block(text: str, language: str = "") -> str:
    """A code block that its own text cannot end. The text is one that is visible already."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def excerpt(text: str) -> str:
    """The beginning of a message, to tell which it was."""
    line = inline(text, len(text) + EXCERPT_CHARS)
    return f"`{line[:EXCERPT_CHARS]}{'...' if len(line) > EXCERPT_CHARS else ''}`"


def shown_name(sender: str, name: str = "") -> str:
    """Who it was. The id is what counts; a name can be anybody's, and can hold anything."""
    kept = (char if _is_of_a_name(char) else " " for char in name[: 4 * LONGEST_NAME].replace("`", "'"))
    clean = " ".join("".join(kept).split())[:LONGEST_NAME].rstrip()
    return f"{clean} (`{inline(sender)}`)" if clean else f"`{inline(sender)}`"


def sentence(text: str) -> str:
    """A text with one full stop, whether it had one or not: something may follow it."""
    return f"{text.rstrip(' .')}."


def span(seconds: float) -> str:
    """A time as people say it."""
    number, unit = (seconds, "second") if seconds < _MINUTE else (seconds / _MINUTE, "minute")
    return f"{number:.3g} {unit}{'' if number == 1 else 's'}"


def _is_of_a_name(char: str) -> bool:
    return char in "'-" or unicodedata.category(char).startswith(_IN_NAMES)
