"""What others wrote, given to a model as what it is: something to know, and nobody's order.

    <untrusted_data>
    ...
    </untrusted_data>

A text cannot end its own mark, and is not changed by it: the mark of one that has its name in it gets a number, which
the text does not have.
"""

from __future__ import annotations

import re

#: The mark, as the system prompt explains it.
UNTRUSTED = "untrusted_data"

#: Characters without a look, with which a name is still read as that name.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)


def framed(text: str, mark: str = UNTRUSTED, about: str = "") -> str:
    """A text between the two ends of a mark; `about` goes into the first, behind its name."""
    name = _unlike(mark, text)
    return f"<{name}{about}>\n{text}\n</{name}>"


def _unlike(mark: str, text: str) -> str:
    """The mark, or one with a number that is nowhere in the text."""
    read = _as_read(text).casefold()
    if mark not in read:
        return mark
    taken = set(re.findall(rf"{mark}[\W_]*(\d+)", read))
    number = next(number for number in range(2, len(taken) + 3) if str(number) not in taken)
    return f"{mark}_{number}"


def _as_read(text: str) -> str:
    """The text as a model may read it: letters that look like others are these."""
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFKC", _UNSEEN.sub("", text))
