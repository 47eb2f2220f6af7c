"""What others wrote, as people can safely read it: nothing in it is obeyed as Markdown, and nothing in it is unseen.

Agents, models and senders choose names, descriptions and commands. Somebody decides by them. So a text of theirs stands
in code, which it cannot end; characters that hide or turn others round are shown by their numbers; and what is too long
says how much of it is missing.
"""

from __future__ import annotations

import unicodedata

#: A name of a tool or an agent. More is not a name.
LONGEST_WORD = 200
#: What stands between what a user wrote and who they are; more of it would be an advertisement.
LONGEST_NAME = 64
#: As much of a message as one needs to know which it was.
EXCERPT_CHARS = 60

_MINUTE = 60.0
#: Control and format characters (those that turn the direction round, or have no width), separators that break lines,
#: halves of characters, and those that nobody but their author knows.
_UNSEEN = frozenset(("Cc", "Cf", "Zl", "Zp", "Cs", "Co"))
#: What people's names are made of, punctuation left out: letters, marks, digits, pictures.
_IN_NAMES = ("L", "M", "N", "So")


def visible(text: str, keep: str = "\n\t") -> str:
    """The text with every character that would not be seen, or would hide others, shown as its number: `<U+202E>`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"<U+{ord(char):04X}>" if char not in keep and unicodedata.category(char) in _UNSEEN else char for char in text
    )


def inline(text: str, most: int = LONGEST_WORD) -> str:
    """A text of somebody else's for a place between backticks: one line, which cannot end them."""
    line = visible(" ".join(text.replace("`", "'").split()), keep="")
    return line if len(line) <= most else f"{line[:most]}... ({len(line) - most} more characters)"


def block(text: str, language: str, head: int, tail: int) -> str:
    """A code block that its own text cannot end. Of a long one the beginning and the end, and how much is between."""
    left_out = len(text) - head - tail
    after = ""
    if left_out > 0:
        # Cut before it is looked at: an agent may ask about megabytes.
        text = f"{text[:head]}\n[...]\n{text[-tail:]}"
        after = f"\n**{left_out} characters in the middle, at `[...]`, are not shown.**"
    text = visible(text)
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}{after}"


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
