"""The agent's memory of the directory, from the keyboard: `#` adds a line to it, `/memory` opens it in an editor."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from trunkline.agents.coder.extending import memory
from trunkline.base import paths
from trunkline.core.faults import ConfigError

#: The agent's command, which shows it, and adds a line.
COMMAND = "/memory"
#: One line with something behind the sign. `#12` is a number, `##` a heading, and `#!` the beginning of a script.
_LINE = re.compile(r"#(?![#!0-9])[ \t]*(\S.*)")


def as_command(text: str) -> str:
    """What was typed, as the agent understands it."""
    found = _LINE.fullmatch(text.rstrip())
    return f"{COMMAND} add {found[1]}" if found else text


async def edit(workspace: str) -> None:
    """Open the memory in the user's editor, if they have said which, and wait until they are done.

    Raises:
        ConfigError: it cannot be opened.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        return
    path = memory.file(workspace)
    with _uninterrupted():
        try:
            paths.ensure_dir(os.path.dirname(path))
            program = await asyncio.create_subprocess_exec(*shlex.split(editor), path)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"The editor `{editor}` cannot be started: {getattr(error, 'strerror', None) or error}.",
                hint="Set `VISUAL` or `EDITOR` to another one.",
            ) from None
        await program.wait()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Inside, Ctrl-C is the editor's. Not ignored: the editor would ignore it, too."""
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
