"""What `/help` shows: every command and every key, in groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from trunkline.base.printable import printable_line

#: Which commands belong together, by their names. Those that are in none of these are the user's own, or the agent's.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Conversation": ("clear", "sessions", "resume", "compact", "context", "usage", "help", "exit"),
    "What the agent may do": ("mode", "plan", "permissions", "grants", "hooks"),
    "Model and answers": ("model", "effort", "thinking", "output-style", "trace"),
    "Work": ("todos", "diff", "undo", "rewind", "bashes"),
    "What the agent knows and uses": ("memory", "skills", "agents", "mcp"),
}
#: Other names for what is there already.
_ALIASES = ("quit",)
_OTHERS = "Your own commands and skills, or the agent's"
_KEYS = "Keys"
#: The column of commands and keys.
WIDEST_USAGE = 24


def grouped(commands: Mapping[str, tuple[str, str]], keys: Iterable[tuple[str, str]]) -> RenderableType:
    """`commands`: how each is used and what it does, by name."""
    from rich.table import Table

    groups = list(_groups(commands, keys))
    # As wide as what stands there, but not for a command with a very long name.
    width = min(WIDEST_USAGE, max(len(usage) for _, rows in groups for usage, _ in rows))
    shown: list[RenderableType] = []
    for title, rows in groups:
        table = Table.grid(padding=(0, 2))
        table.add_column(width=width)
        for usage, words in rows:
            table.add_row(Text(usage, "cyan", overflow="fold"), words)
        shown += [Text(f"{chr(10) if shown else ''}{title}", "bold"), Padding(table, (0, 0, 0, 2))]
    return Group(*shown)


def _groups(
    commands: Mapping[str, tuple[str, str]], keys: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    grouped_names = {name for names in GROUPS.values() for name in names}
    others = tuple(name for name in commands if name not in (*grouped_names, *_ALIASES))
    for title, names in (*GROUPS.items(), (_OTHERS, others)):
        rows = [commands[name] for name in names if name in commands]
        if rows:
            yield title, [(printable_line(usage), printable_line(words)) for usage, words in rows]
    yield _KEYS, list(keys)
