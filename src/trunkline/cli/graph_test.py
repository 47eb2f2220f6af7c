"""`trunkline graph test`: the written conversations of graphs, held and compared with what is expected of them.

Exit codes: 0 when all pass, 1 when some do not, 2 when a file is wrong, has no tests or needs a model that is not there
(and for wrong usage), 130 after Ctrl-C.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from trunkline.base.nearest import suggestion
from trunkline.base.printable import printable_line
from trunkline.cli.graph_options import complete_graph, naming_models
from trunkline.core.faults import Fault

if TYPE_CHECKING:
    from trunkline.agents.graph.trying import Failure, TriedTest, TurnResult
    from trunkline.agents.graph.yaml_graph import GraphFile
    from trunkline.base.place import Place

EXIT_FAILED, EXIT_UNRUN, EXIT_INTERRUPTED = 1, 2, 130

#: Letters of a message or an answer in a line.
_SHOWN = 200
_COLOURS = {"passed": "green", "failed": "red", "skipped": "yellow", "problem": "red"}


@click.command("test", short_help="Hold the written conversations of a graph.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(), shell_complete=complete_graph)
@click.option("--only", metavar="NAME", multiple=True, help="Only the test of this name; may be given several times.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@naming_models
@click.option(
    "--seed", metavar="N", type=click.IntRange(0, (1 << 32) - 1), help="The seed of all nodes, in place of the file's."
)
def command(
    files: tuple[str, ...],
    only: tuple[str, ...],
    as_json: bool,
    model: str | None,
    models_dir: str | None,
    seed: int | None,
) -> None:
    """Hold the conversations under `tests` in each FILE, and say where they went another way than expected.

    Each test is a conversation of its own. The graph may call all of its tools, which nobody carries out, and its
    memories begin empty and are not kept. Exits with 1 if a test fails, and with 2 if none could be run.

    \b
    Examples:
      trunkline graph test shop.yaml
      trunkline graph test shop.yaml --model mock --only "sells swords"
      trunkline graph test npc smith --json
    """
    runs = [FileTests(file) for file in files]
    _check_names(runs, only)
    how = {"model": model or "", "models_dir": models_dir, "seed": seed}
    tell = (lambda _: None) if as_json else click.echo
    progress = ProgressLines()
    try:
        for run in runs:
            run.hold(only, tell, progress, **how)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    if as_json:
        from trunkline.base import jsontext

        code = max(run.exit_code for run in runs)
        click.echo(jsontext.dumps({"ok": code == 0, "files": [run.record() for run in runs]}).decode())
    else:
        click.echo(summary([each for run in runs for each in run.tried]))
    sys.exit(max(run.exit_code for run in runs))


class ProgressLines:
    """Says on standard error what is waited for, and nothing twice."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            click.echo(printable_line(text), err=True)


class FileTests:
    """The tests of one file, and what came of them."""

    def __init__(self, file: str) -> None:
        from trunkline.agents.graph.yaml_check import examine

        self.file = file
        self.tried: list[TriedTest] = []
        report = examine(file)
        self.graph: GraphFile | None = report.graph
        self.problems = [each.told for each in report.problems]
        if report.graph is not None and not report.graph.tests:
            self.problems.append(f"{file} has no `tests`.")

    @property
    def names(self) -> list[str]:
        """Those of the tests."""
        return [test.name for test in self.graph.tests] if self.graph is not None else []

    @property
    def exit_code(self) -> int:
        """Of the command, were this the only file."""
        if self.problems:
            return EXIT_UNRUN
        return EXIT_FAILED if any(each.outcome == "failed" for each in self.tried) else 0

    def hold(
        self, only: Sequence[str], tell: Callable[[str], object], on_progress: Callable[[str], None], **how: Any
    ) -> None:
        """Run them, and say of each how it went."""
        if self.graph is not None and not self.problems:
            try:
                asyncio.run(self.run(only, tell, on_progress, **how))
            except Fault as fault:
                self.problems.append(f"{self.file}: {fault}")
        for each in self.problems:
            tell(f"{_coloured('problem')} {printable_line(each)}")

    async def run(
        self, only: Sequence[str], tell: Callable[[str], object], on_progress: Callable[[str], None], **how: Any
    ) -> None:
        """The same within an event loop, and of a file without problems.

        Raises:
            Fault: there is no agent to hold them with.
        """
        from trunkline.agents.graph import bundled
        from trunkline.agents.graph.trying import GraphTester

        if self.graph is None:
            return
        folder = bundled.folder_of(self.file)
        async with GraphTester(self.graph, f"graph:{self.file}", folder, on_progress=on_progress, **how) as tester:
            for test in self.graph.tests:
                if not only or test.name in only:
                    self.tried.append(await tester.run(test))
                    for line in told(self.file, self.tried[-1]):
                        tell(line)

    def record(self) -> dict[str, Any]:
        """All of it, for a program."""
        return {
            "file": self.file,
            "ok": self.exit_code == 0,
            "problems": self.problems,
            "tests": [_record(each) for each in self.tried],
        }


def told(file: str, tried: TriedTest) -> list[str]:
    """A line for a test, and some more where it failed."""
    place, name = _placed(file, tried.test.place), printable_line(tried.test.name)
    if tried.outcome == "skipped":
        return [f"{_coloured('skipped')} {place}: {name}: {tried.why}"]
    lines = [f"{_coloured(tried.outcome)} {place}: {name} ({tried.ms:.0f} ms)"]
    for number, turn in enumerate(tried.turns, 1):
        if turn.failures:
            lines.append(f"  turn {number}: {_short(turn.say)}")
            for each in turn.failures:
                lines.append(f"    {_placed(file, each.place)}: expected {printable_line(each.expected)}")
                lines.append(f"      but {printable_line(each.happened)}")
            lines.append(f"    path: {_way(turn)}")
            lines.append(f"    text: {_short(turn.text)}")
    return lines


def spoken(tried: TriedTest) -> list[str]:
    """A conversation in which nothing is expected: what was said, and the way that it took."""
    lines = []
    for turn in tried.turns:
        lines += [f"> {printable_line(turn.say)}", *map(printable_line, turn.text.splitlines())]
        lines.append(f"({_way(turn)}; {turn.ms:.0f} ms{f'; {printable_line(turn.error)}' if turn.error else ''})")
    return lines


def summary(tried: Sequence[TriedTest]) -> str:
    """How many went how."""
    counts = [(word, sum(each.outcome == word for each in tried)) for word in ("passed", "failed", "skipped")]
    return ", ".join(f"{count} {word}" for word, count in counts if count or word == "passed")


def _check_names(runs: Sequence[FileTests], only: Sequence[str]) -> None:
    known = [name for run in runs for name in run.names]
    for name in only:
        if known and name not in known:
            raise click.UsageError(f"There is no test `{name}`.{suggestion(name, known)}")


def _placed(file: str, place: Place | None) -> str:
    return printable_line(file) if place is None else f"{printable_line(file)}:{place.line}:{place.column}"


def _way(turn: TurnResult) -> str:
    return printable_line(" > ".join(f"{step.name} {step.exit}".strip() for step in turn.path)) or "none"


def _short(text: str) -> str:
    return printable_line(text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ...") or '""'


def _coloured(label: str) -> str:
    padded = f"{label:8}"
    return padded if "NO_COLOR" in os.environ else click.style(padded, fg=_COLOURS[label], bold=True)


def _record(tried: TriedTest) -> dict[str, Any]:
    return {
        "name": tried.test.name,
        **_place(tried.test.place),
        "outcome": tried.outcome,
        "why": tried.why or None,
        "ms": tried.ms,
        "turns": [_turn_record(turn) for turn in tried.turns],
    }


def _turn_record(turn: TurnResult) -> dict[str, Any]:
    return {
        "say": turn.say,
        **_place(turn.place),
        "text": turn.text,
        "status": turn.status,
        "error": turn.error or None,
        "path": [{"node": step.name, "type": step.type, "exit": step.exit, "ms": step.ms} for step in turn.path],
        "tools": [{"name": name, "arguments": dict(arguments)} for name, arguments in turn.tools],
        "intent": turn.intent or None,
        "memory": {name: list(texts) for name, texts in turn.memory.items()},
        "ms": turn.ms,
        "failures": [_failure_record(each) for each in turn.failures],
    }


def _failure_record(each: Failure) -> dict[str, Any]:
    return {"key": each.key or None, **_place(each.place), "expected": each.expected, "happened": each.happened}


def _place(place: Place | None) -> dict[str, int | None]:
    return {"line": None if place is None else place.line, "column": None if place is None else place.column}
