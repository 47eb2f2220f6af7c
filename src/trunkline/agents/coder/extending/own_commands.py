"""Commands of one's own: Markdown files whose text is said to the model, with the arguments in their places.

`$ARGUMENTS` stands for all of them, `$1` to `$9` for one each; where nothing stands for them, they follow the text.
Nothing in such a file is run: what stands behind a `!` is text like everything else.
"""

from __future__ import annotations

import re
import shlex
from functools import cache

from trunkline.agents.coder.extending.markdown import MAX_DESCRIPTION, first_line, one_line, usable
from trunkline.agents.coder.extending.shelf import ShelfFile
from trunkline.core.faults import ConfigError

_PLACE = re.compile(r"\$(?:ARGUMENTS\b|([1-9])(?![0-9]))")


def about(file: ShelfFile) -> str:
    """What a command does, in one line."""
    said = file.contents.description or first_line(file.contents.matter.body)
    return one_line(said, MAX_DESCRIPTION) or f"the command in `{one_line(file.path, MAX_DESCRIPTION)}`"


def text_of(file: ShelfFile, args: str) -> str:
    """What is said to the model. Blocks for as long as the disk needs.

    Raises:
        ConfigError: it cannot be used any more.
    """
    text = usable(file.path).body.strip()
    if not text:
        raise ConfigError(f"`{file.path}` cannot be used: it has no text.")
    return filled(text, args)


def filled(text: str, args: str) -> str:
    """A text with its arguments."""

    @cache
    def words() -> list[str]:
        try:
            return shlex.split(args)
        except ValueError:
            # A quotation mark that is an apostrophe.
            return args.split()

    def value(found: re.Match[str]) -> str:
        number = found[1]
        return args if number is None else "".join(words()[int(number) - 1 : int(number)])

    made, count = _PLACE.subn(value, text)
    return f"{made}\n\nARGUMENTS: {args}" if args and not count else made
