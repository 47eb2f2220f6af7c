"""How the showcase looks: on a terminal, as plain text, and as JSON lines. Each view is called with every line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.demo.showcase import ShownLine

if TYPE_CHECKING:
    from rich.console import Console

Write = Callable[[str], None]


class NextStep(Value):
    """Something to try next: what one sees then, and what to type."""

    what: str
    command: str


class PlainView:
    """Text without colours or control characters: for files, pipes and logs."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._scene = ""

    def __call__(self, line: ShownLine) -> None:
        if line.scene != self._scene:
            self._scene = line.scene
            self._write(f"\n== {line.scene} ==\n")
        who = "host  -> agent" if line.by_host else "agent -> host "
        self._write(f"{who}  {line.caption}\n    {_text(line)}\n")

    def finish(self, trials: tuple[NextStep, ...]) -> None:
        """Say what to try next."""
        self._write("\nThat was the JSON stream. Try next:\n")
        for trial in trials:
            self._write(f"\n  {trial.what}\n    {trial.command}\n")


class JsonView:
    """One JSON object per line of the transcript: `at`, `scene`, `from`, `caption`, and the line itself."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def __call__(self, line: ShownLine) -> None:
        record = {
            "at": round(line.at, 3),
            "scene": line.scene,
            "from": "host" if line.by_host else "agent",
            "caption": line.caption,
            "line": _parsed(line),
        }
        self._write(jsontext.dumps(record).decode() + "\n")

    def finish(self, trials: tuple[NextStep, ...]) -> None:
        """A transcript has no advice in it."""


class RichView:
    """Colours and arrows, the JSON wrapped to the width of the terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._scene = ""
        self._arrow = "->" if console.options.ascii_only else "──▶"

    def __call__(self, line: ShownLine) -> None:
        from rich.highlighter import JSONHighlighter
        from rich.padding import Padding
        from rich.text import Text

        if line.scene != self._scene:
            self._scene = line.scene
            self._console.print()
            self._console.rule(Text(line.scene, "bold"), align="left", style="dim")
        who, whom, style = ("host ", "agent", "cyan") if line.by_host else ("agent", "host ", "green")
        words = Text.assemble((who, f"bold {style}"), (f" {self._arrow} ", style), (whom, "dim"), "  ", line.caption)
        self._console.print(words)
        body = Text(_text(line), "dim", overflow="fold")
        JSONHighlighter().highlight(body)
        self._console.print(Padding(body, (0, 0, 0, 4)))

    def finish(self, trials: tuple[NextStep, ...]) -> None:
        """Say what to try next."""
        from rich.text import Text

        self._console.print()
        self._console.rule(Text("Try next", "bold"), align="left", style="dim")
        for trial in trials:
            self._console.print(Text(f"\n  {trial.what}"))
            # Never wrapped by us: it is there to be copied.
            self._console.print(Text(f"    {trial.command}", "bold cyan"), soft_wrap=True)


def _text(line: ShownLine) -> str:
    return line.data.decode("utf-8", "replace")


def _parsed(line: ShownLine) -> Any:
    try:
        return jsontext.loads(line.data)
    except ValueError:
        return _text(line)
