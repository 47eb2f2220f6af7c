"""What goes wrong in a command, told to whoever typed it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from trunkline.base import paths
from trunkline.base.printable import printable_line
from trunkline.cli import standard_output
from trunkline.core.faults import Fault

R = TypeVar("R")


def explained(function: Callable[..., R]) -> Callable[..., R]:
    """Decorator: faults become error texts of the command line, and exit code 1."""
    return explained_as(str)(function)


def explained_as(text: Callable[[str], str]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """The same; `text` gives the final words for what is to be told."""

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        @wraps(function)
        def explained(*arguments: Any, **options: Any) -> R:
            try:
                return function(*arguments, **options)
            except BrokenPipeError:
                # Whoever read us has seen enough; `click` ends quietly then.
                raise
            except (Fault, OSError) as error:
                raise click.ClickException(printable_line(text(explanation(error)))) from error

        return explained

    return decorate


def explanation(error: Fault | OSError) -> str:
    """What happened, in words: never the system's number for it."""
    if isinstance(error, Fault):
        return str(error)
    lost = standard_output.lost()
    return paths.unusable(error) if lost is None else standard_output.unwritten(lost)
