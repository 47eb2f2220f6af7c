"""Output styles: how the agent answers, as a section of its system prompt.

Three are built in. Others are Markdown files, as `.trunkline/output-styles/NAME.md`; one with the name of a built-in
style takes its place, unless it is a workspace's.
"""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.agents.coder.extending.markdown import MAX_DESCRIPTION, first_line, one_line, whole
from trunkline.agents.coder.extending.shelf import ShelfFile
from trunkline.base.values import Value

DEFAULT = "default"

#: The text that each built-in style adds, with what it is for.
BUILT_IN: Mapping[str, tuple[str, str]] = {
    DEFAULT: ("brief answers about what was done", ""),
    "concise": (
        "as few words as can be",
        (
            "Answer in as few words as the matter allows: no introduction, no summary of what was asked, no closing "
            "remarks. One sentence is better than three, and a list only where there is one. Show code and commands "
            "without words around them. Leave nothing out that the user must know to decide."
        ),
    ),
    "explanatory": (
        "explains choices while working",
        (
            "Explain your work while you do it. Before a change, say in two or three sentences why it is made this way "
            "and which other way there was; after it, what in this code base is worth knowing about it. Explain what "
            "is particular to this project rather than what every programmer knows. Explanations belong in your "
            "answers, not in comments of the code."
        ),
    ),
}


class OutputStyle(Value):
    """One style. `text` is empty where nothing is added."""

    name: str
    description: str
    text: str

    @property
    def section(self) -> str:
        """What it adds to the system prompt."""
        return f"# Output style: {self.name}\n\n{self.text}" if self.text else ""


def names(files: Mapping[str, ShelfFile]) -> dict[str, str]:
    """All styles with what each is for."""
    listed = {name: about for name, (about, _) in BUILT_IN.items()}
    return {**listed, **{name: _about(file) for name, file in _usable(files).items()}}


def find(name: str, files: Mapping[str, ShelfFile]) -> OutputStyle | None:
    """A style by its name; None if there is none, or its file cannot be read. Blocks for as long as the disk needs."""
    lower = name.strip().lower()
    file = next((file for key, file in _usable(files).items() if key.lower() == lower), None)
    if file is not None:
        found = whole(file.path)
        return None if found.problem else OutputStyle(file.name, _about(file), found.matter.body.strip())
    if lower in BUILT_IN:
        about, text = BUILT_IN[lower]
        return OutputStyle(lower, about, text)
    return None


def _usable(files: Mapping[str, ShelfFile]) -> dict[str, ShelfFile]:
    """Without those that cannot be read, and those of a workspace that would take the place of a built-in one."""
    return {
        name: file
        for name, file in files.items()
        if not file.contents.problem and (file.own or name.lower() not in BUILT_IN)
    }


def _about(file: ShelfFile) -> str:
    return one_line(file.contents.description or first_line(file.contents.matter.body), MAX_DESCRIPTION)
