"""Command lines by `argparse`, for commands that programs spawn: `click` costs more than the rest of such a start."""

from __future__ import annotations

import argparse
import os
from typing import Any, NoReturn

DEFAULT_WIDTH, MIN_WIDTH = 80, 40


class UsageError(Exception):
    """The command line is wrong."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal, without the imports that the standard library's way of asking would cost."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_width())


def _width() -> int:
    try:
        columns = int(os.environ.get("COLUMNS", "")) or os.get_terminal_size().columns
    except (ValueError, OSError):
        columns = DEFAULT_WIDTH
    return max(MIN_WIDTH, columns) - 2


class Parser(argparse.ArgumentParser):
    """Leaves it to the command to say what is wrong, and where; and knows what it was told to understand."""

    def __init__(self, **settings: Any) -> None:
        self.actions: list[argparse.Action] = []
        """Every option and argument, in the order in which they were added."""
        super().__init__(**settings)

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action:
        action = super().add_argument(*args, **kwargs)
        self.actions.append(action)
        return action

    def error(self, message: str) -> NoReturn:
        surplus = message.partition("unrecognized arguments: ")[2]
        if surplus and not surplus.startswith("-") and any("--agent" in each.option_strings for each in self.actions):
            # Some commands take the agent as their argument, so people try.
            message += ". An agent is named with `--agent`"
        raise UsageError(message)


def joined(parser: Parser, arguments: list[str]) -> list[str]:
    """`--session-id -abc` as `--session-id=-abc`: a value may begin with anything."""
    takes_value = {name for action in parser.actions if action.nargs is None for name in action.option_strings}
    found: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        value = next(rest, None) if argument in takes_value else None
        found.append(argument if value is None else f"{argument}={value}")
    return found


def count(text: str) -> int:
    """A number from 1 on."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number from 1 on")
    return int(text)


def count_or_none(text: str) -> int:
    """A number from 0 on."""
    return 0 if text.strip() == "0" else count(text)
