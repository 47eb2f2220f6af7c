"""The hooks of the configuration files: which commands are run when, and for which tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trunkline.agents.coder.settings_profiles import Table
from trunkline.base.config import Config, Layer
from trunkline.base.config_file import dotted
from trunkline.base.config_schema import HOOKS, is_texts
from trunkline.base.nearest import nearest, suggestion
from trunkline.base.values import Value
from trunkline.base.vocabulary import OWN_TOOLS

#: How long a hook may take when its table does not say, and how long at most: the agent waits for it.
DEFAULT_SECONDS = 30.0
MOST_SECONDS = 600.0
#: A command's first words, where people are told about it and it has no name.
NAME_CHARS = 60

_OURS = ("matcher", "command", "timeout", "name")
_THEIRS = ("name", "tool_match", "file_match", "command", "timeout_ms")
#: People put blanks around it.
_AROUND = re.compile(r"\s*\|\s*")
#: What matchers are compared with. Tools of servers have other names.
_NAMES: Mapping[str, Sequence[str]] = {
    "pre_tool_use": OWN_TOOLS,
    "post_tool_use": OWN_TOOLS,
    "session_start": ("startup", "resume"),
    "pre_compact": ("manual", "auto"),
}
#: What aionrs calls the end of a session.
_MEANS = {"stop": "session_end"}


class Hook(Value):
    """One command."""

    command: str
    seconds: float = DEFAULT_SECONDS
    matcher: str = ""
    """A regular expression for the whole of a name. Nothing: every name."""
    name: str = ""
    is_theirs: bool = False
    """It is written for aionrs: it is told by variables, and only its exit code counts."""
    tools: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """What aionrs matches by: patterns for the tool's name and for the file that it is about."""

    @property
    def label(self) -> str:
        """What people know it by."""
        return self.name or " ".join(self.command.split())[:NAME_CHARS]

    def covers(self, names: Sequence[str], args: Mapping[str, Any]) -> bool:
        """Whether it is run for a tool with these names and arguments. Without names there is nothing to match by."""
        if not names:
            return True
        from fnmatch import fnmatchcase

        if self.tools and not any(fnmatchcase(name, pattern) for name in names for pattern in self.tools):
            return False
        if self.files:
            path = args.get("file_path")
            return isinstance(path, str) and any(fnmatchcase(path, pattern) for pattern in self.files)
        return not self.matcher or any(re.fullmatch(self.matcher, name) for name in names)


#: All of them, by when they are run.
HookTable = Mapping[str, tuple[Hook, ...]]
NO_HOOKS: HookTable = {}


def hooks(config: Config) -> tuple[HookTable, tuple[str, ...]]:
    """Those of all files that are followed, the user's own first; and what is wrong with them, for people."""
    found: dict[str, list[Hook]] = {}
    problems: list[str] = []
    for layer in reversed(config.layers):
        for event in HOOKS:
            for number, table in enumerate(layer.at("hooks", event) or (), 1):
                hook, told = read_hook(event, table, foreign=layer.foreign)
                problems += (_placed(layer, event, number, problem) for problem in told)
                if hook is not None:
                    found.setdefault(_MEANS.get(event, event) if hook.is_theirs else event, []).append(hook)
    return {event: tuple(each) for event, each in found.items()}, tuple(problems)


def _placed(layer: Layer, event: str, number: int, problem: str) -> str:
    return f"`{layer.file.path}`: `{dotted(('hooks', event))}`, number {number}: {problem}"


def read_hook(event: str, table: Table, *, foreign: bool = False) -> tuple[Hook | None, list[str]]:
    """The hook, if it can be used, and what to tell people about it.

    One that would decide about calls, and whose matcher cannot be read, decides about all: it may be meant to deny.
    """
    theirs = foreign or not set(table).isdisjoint(("tool_match", "file_match", "timeout_ms"))
    known = _THEIRS if theirs else _OURS
    told = [f"`{key}` has no effect.{suggestion(key, known)}" for key in table if key not in known]
    problem = next(_problems(table), None)
    if problem is not None:
        return None, [*told, f"{problem} This hook is not run."]
    seconds = table["timeout_ms"] / 1000 if "timeout_ms" in table else table.get("timeout", DEFAULT_SECONDS)
    if seconds > MOST_SECONDS:
        told.append(f"The time limit is {MOST_SECONDS:.0f} s, not {seconds:.0f}.")
    matcher = "" if theirs else _AROUND.sub("|", table.get("matcher", "").strip())
    if problem := _unreadable(matcher):
        if event != "pre_tool_use":
            return None, [*told, f"{problem} This hook is not run."]
        told.append(f"{problem} This hook is run for every tool.")
        matcher = ""
    told += _slips(event, matcher)
    hook = Hook(
        table["command"],
        min(float(seconds), MOST_SECONDS),
        "" if matcher == "*" else matcher,
        table.get("name", ""),
        theirs,
        tuple(table.get("tool_match", ())),
        tuple(table.get("file_match", ())),
    )
    return hook, told


def _problems(table: Table) -> Iterator[str]:
    command = table.get("command")
    if not isinstance(command, str) or not command.strip():
        yield "It has no `command`."
    elif "\0" in command:
        yield "Its `command` holds a NUL character."
    for key in ("matcher", "name"):
        if not isinstance(table.get(key, ""), str):
            yield f"Its `{key}` must be a string."
    for key in ("tool_match", "file_match"):
        if not is_texts(table.get(key, [])):
            yield f"Its `{key}` must be a list of strings."
    for key in ("timeout", "timeout_ms"):
        if not _is_time(table.get(key, 1)):
            yield f"Its `{key}` must be a number greater than 0."


def _unreadable(matcher: str) -> str:
    """What is wrong with it; nothing if it can be used."""
    if matcher == "*":
        return ""
    try:
        re.compile(matcher)
    except (re.error, RecursionError, OverflowError) as error:
        return f"Its `matcher` is not a valid regular expression ({error}): write names with `|` between them."
    return ""


def _slips(event: str, matcher: str) -> Iterator[str]:
    """Parts of a matcher that match nothing, and are written like something that would."""
    known = _NAMES.get(event, ())
    parts = matcher.split("|")
    if not known or matcher in ("", "*") or any(_unreadable(part) for part in parts):
        return
    for part in parts:
        if any(re.fullmatch(part, name) for name in known):
            continue
        # As in a permission rule.
        plain = part.partition("(")[0]
        meant = next((name for name in known if re.fullmatch(part, name, re.IGNORECASE)), None)
        meant = meant or (plain if plain != part and plain in known else nearest(part, known))
        if meant is not None:
            yield f"Its `matcher` has `{part}`, which matches nothing: write `{meant}`."


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")
