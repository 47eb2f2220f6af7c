"""The tables of `docs/reference/python.md`: what `trunkline` exports, in groups, with a sentence about each."""

from __future__ import annotations

import re
from typing import Any, get_args

import trunkline

#: The heading, what is said below it, and the modules whose names stand there.
GROUPS = (
    ("Agents", "What answers.", r"trunkline\.agents\..*"),
    (
        "The conversation",
        "What an agent is, and the session that has one answer.",
        r"trunkline\.core\.(agent|session|approvals|usage|ids)|trunkline\.base\.vocabulary",
    ),
    ("Events", "What happens in a turn; see [Events](events.md).", r"trunkline\.core\.events"),
    ("Sessions on disk", "Where they are kept.", r"trunkline\.(core\.log|store\..*|base\.paths)"),
    ("Clients", "Of other people's servers, and of ours.", r"trunkline\.wires\..*"),
    ("Faults", "What can go wrong; see [Faults](faults.md).", r"trunkline\.core\.faults"),
)


def name_tables() -> str:
    """A heading and a table for each group."""
    return "\n".join(f"## {heading}\n\n{about}\n\n{_table(_names(modules))}" for heading, about, modules in GROUPS)


def _names(modules: str) -> list[str]:
    return [n for home, names in trunkline._HOMES.items() if re.fullmatch(modules, home) for n in sorted(names.split())]


def _table(names: list[str]) -> str:
    rows = [f"| `{name}` | {_about(getattr(trunkline, name))} |\n" for name in names]
    return "| name | what it is |\n|---|---|\n" + "".join(rows)


def _about(named: Any) -> str:
    """The first sentence of a docstring, or what a type stands for."""
    if members := get_args(named):
        shown = [f"`{each!r}`" if isinstance(each, str) else f"`{each.__name__}`" for each in members]
        return f"one of {', '.join(shown)}".replace("|", "\\|")
    text = " ".join((named.__doc__ or "").split())
    sentence = re.match(r".*?[.:](?= [A-Z`]|$)", text)
    return (sentence[0] if sentence else text).rstrip(":").replace("|", "\\|")
