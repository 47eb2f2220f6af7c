"""What a tool call would do, for somebody who is asked to allow it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from trunkline.base.values import Value
from trunkline.cli.terminal import diffs
from trunkline.cli.terminal.calls import caption, clean, one_line
from trunkline.cli.terminal.markdown import code
from trunkline.core.events import ToolRequested

#: Files beyond that are not read just to show what would change in them.
LARGEST_FILE = 400_000
#: Arguments up to here are shown in one line.
SHORT_JSON = 100


class Preview(Value):
    """Something to look at. `is_change`: it shows what the result of the call will show, too."""

    what: RenderableType
    is_change: bool = False


def preview(request: ToolRequested, workspace: str) -> Preview | None:
    """A change as a diff, a command as code, anything else as its arguments. None if there is nothing to see."""
    args = request.args
    old, new, content = args.get("old_string"), args.get("new_string"), args.get("content")
    before = _file(args, workspace)
    if isinstance(old, str) and isinstance(new, str):
        return _change(*_replaced(before, old, new, every=args.get("replace_all") is True))
    if isinstance(content, str):
        if before is not None:
            return _change(before, content)
        return Preview(code(clean(content).rstrip("\n"), _language(args)))
    command = args.get("command", args.get("cmd"))
    if isinstance(command, str):
        said = one_line(command) == command
        return None if said else Preview(code(clean(command).strip("\n"), "bash"))
    return _arguments(request)


def _arguments(request: ToolRequested) -> Preview | None:
    """Whatever the call was given, unless its caption has said all of it."""
    args = request.args
    if caption(request.name, args, request.description).whole:
        return None
    short = json.dumps(args, ensure_ascii=False)
    shown = short if len(short) <= SHORT_JSON else json.dumps(args, ensure_ascii=False, indent=2)
    return Preview(code(clean(shown), "json"))


def _change(old: str, new: str) -> Preview:
    lines = diffs.painted(diffs.between(old, new))
    return Preview(Group(*lines) if lines else Text("(no change)", "dim"), is_change=True)


def _replaced(before: str | None, old: str, new: str, *, every: bool) -> tuple[str, str]:
    """The file before and after, if it holds the old text; else the two texts alone."""
    if before is None or not old or old not in before:
        return old, new
    return before, before.replace(old, new, -1 if every else 1)


def _path(args: Mapping[str, Any]) -> str:
    path = args.get("file_path", args.get("path"))
    return path if isinstance(path, str) else ""


def _file(args: Mapping[str, Any], workspace: str) -> str | None:
    path = _path(args)
    if not path:
        return None
    path = os.path.join(workspace, path)
    try:
        # Not what only looks like a file: opening a pipe would wait for whoever writes to it.
        if not os.path.isfile(path) or os.path.getsize(path) > LARGEST_FILE:
            return None
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def _language(args: Mapping[str, Any]) -> str:
    from rich.syntax import Syntax

    return Syntax.guess_lexer(_path(args))
