"""The command `bench/tasks.py`: which tasks are done with which model, and what is told of them."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench._tasks import TASKS, BrokenTask, Task, all_tasks
from bench._tasks_requests import difference
from bench._tasks_run import Choice, Result, run_task, usual_prompt

EXIT_UNSOLVED = 1

#: In the folder of the tasks: the system prompt and the tools that nearly all requests have.
PROMPT = "prompt.txt"
#: Lines of a difference that people are shown. `--json` has all.
LONGEST_DIFF = 60

_HOW_TO_RECORD = (
    "If that is what you meant to change, run `python bench/tasks.py --record`, and read what git says has changed."
)
_HEADINGS = ("task", "language", "result", "rounds", "calls", "tokens in", "out", "seconds", "US$")


def main(arguments: list[str] | None = None) -> int:
    """Run the tasks, tell what became of them."""
    options = _parser().parse_args(arguments)
    try:
        tasks = _chosen(all_tasks(options.tasks), options.task)
        config = Path(options.config).read_text(encoding="utf-8") if options.config else ""
    except (BrokenTask, LookupError, OSError) as error:
        print(f"tasks.py: {error}", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(f"{task.name:22} {task.language:12} {task.title}" for task in tasks))
        return 0
    choice = Choice(options.provider or "", _agent_flags(options), config, limit=options.limit, keep=options.keep)
    try:
        prompt, results = asyncio.run(_run(tasks, choice, options.jobs))
    except BrokenTask as error:
        print(f"tasks.py: {error}", file=sys.stderr)
        return 2
    if options.record:
        return _record(tasks, results, options.tasks / PROMPT, prompt)
    changed_prompt = difference(_read(options.tasks / PROMPT), prompt, PROMPT) if choice.recorded else ""
    if options.json:
        print(json.dumps(_as_json(results, changed_prompt), indent=2))
    else:
        print(_table(results))
        _tell(results, changed_prompt)
    done = all(result.verdict in ("solved", "skipped") for result in results)
    return 0 if done and not changed_prompt and _ran(results) else EXIT_UNSOLVED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Small repositories, each with a test that fails: let the agent mend them."
    )
    parser.add_argument("--provider", metavar="NAME", help="whose model; without, each task's recorded one")
    parser.add_argument("--model", metavar="ID", help="the provider's model")
    parser.add_argument("--base-url", metavar="URL", help="the provider's address")
    parser.add_argument("--config", metavar="FILE", help="a configuration file for the agent, as your `config.toml`")
    parser.add_argument("--sandbox", choices=("auto", "on", "off"), help="for the agent's commands (default: auto)")
    parser.add_argument("--task", metavar="NAME", action="append", help="only this one; may be given several times")
    parser.add_argument("--tasks", metavar="DIR", type=Path, default=TASKS, help="tasks of your own, in their folder")
    parser.add_argument("--jobs", metavar="N", type=_count, default=1, help="tasks at once (default: 1)")
    parser.add_argument("--limit", metavar="SECONDS", type=float, help="for each task, instead of its own limit")
    parser.add_argument("--keep", action="store_true", help="leave the directories where the tasks were done")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--list", action="store_true", help="only name the tasks")
    parser.add_argument("--record", action="store_true", help="write down what the recorded models are asked now")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _agent_flags(options: argparse.Namespace) -> tuple[str, ...]:
    if not options.provider:
        if options.model or options.base_url or options.sandbox:
            _parser().error("--model, --base-url and --sandbox need --provider")
        return ()
    if options.record:
        _parser().error("--record is for the recorded models: leave out --provider")
    pairs = (("--model", options.model), ("--base-url", options.base_url), ("--sandbox", options.sandbox or "auto"))
    return tuple(word for name, value in pairs if value for word in (name, value))


def _chosen(tasks: Sequence[Task], names: Sequence[str] | None) -> list[Task]:
    known = {task.name: task for task in tasks}
    for name in names or ():
        if name not in known:
            raise LookupError(f"There is no task `{name}`. `--list` names them.")
    return [known[name] for name in names or known]


async def _run(tasks: Sequence[Task], choice: Choice, jobs: int) -> tuple[str, list[Result]]:
    prompt = await usual_prompt(choice) if choice.recorded else ""
    slots = asyncio.Semaphore(jobs)

    async def run(task: Task) -> Result:
        async with slots:
            result = await run_task(task, choice, prompt)
        print(f"{task.name}: {result.verdict}", file=sys.stderr, flush=True)
        return result

    return prompt, await asyncio.gather(*map(run, tasks))


def _record(tasks: Sequence[Task], results: Sequence[Result], place: Path, prompt: str) -> int:
    """Write down what was asked, where the task was solved by it, and say what has changed."""
    wrong = 0
    wanted = [(place, prompt)]
    for task, result in zip(tasks, results, strict=True):
        # A recording that does not solve its task is none.
        if result.verdict == "failed" or (result.verdict == "changed" and not result.diff):
            wrong += 1
            print(f"not recorded: {task.name}: {result.why}")
        elif result.verdict != "skipped":
            wanted.append((task.folder / "requests.txt", result.requests))
    for path, text in wanted:
        lines = difference(_read(path), text, path.name).splitlines()[2:]
        if lines:
            counted = Counter(line[0] for line in lines)
            print(f"recorded: {path}: {counted['+']} lines added, {counted['-']} removed")
            path.write_text(text, encoding="utf-8")
    return EXIT_UNSOLVED if wrong else 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _ran(results: Sequence[Result]) -> bool:
    return any(result.verdict != "skipped" for result in results)


def _as_json(results: Sequence[Result], changed_prompt: str) -> dict[str, object]:
    return {
        "solved": sum(result.verdict == "solved" for result in results),
        "tasks": [
            {
                **{
                    name: value
                    for name, value in dataclasses.asdict(result).items()
                    if name not in ("usage", "requests")
                },
                "input_tokens": result.usage.input_tokens,
                "output_tokens": result.usage.output_tokens,
            }
            for result in results
        ],
        "prompt_diff": changed_prompt,
    }


def _table(results: Sequence[Result]) -> str:
    lines = [
        (
            result.task,
            result.language,
            result.verdict,
            _shown(result.rounds),
            str(result.calls),
            _shown(result.usage.input_tokens),
            _shown(result.usage.output_tokens),
            f"{result.seconds:.1f}",
            "" if result.dollars is None else f"{result.dollars:.4f}",
        )
        for result in results
    ]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *lines, strict=True)]
    shown = [
        "  ".join(
            cell.ljust(width) if number < 3 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (_HEADINGS, *lines)
    ]
    counted = Counter(result.verdict for result in results)
    ran = len(results) - counted["skipped"]
    total = f"solved {counted['solved']} of {ran}"
    if counted["skipped"]:
        total += f", {counted['skipped']} skipped"
    if models := {result.model for result in results if result.model}:
        total += f"; {', '.join(sorted(models))}"
    return "\n".join([*shown, "", total])


def _shown(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _tell(results: Sequence[Result], changed_prompt: str) -> None:
    """What people need to know about what did not go well."""
    for result in results:
        for text in (
            result.why and f"{result.verdict}: {result.why}",
            result.tests_changed and f"changed the test, which was put back: {', '.join(result.tests_changed)}",
            result.place and f"kept in {result.place}",
        ):
            if text:
                print(f"{result.task}: {text}", file=sys.stderr)
        if result.diff:
            print(_cut(result.diff), file=sys.stderr)
    if changed_prompt:
        print("The system prompt or the tools are not those that were recorded.", file=sys.stderr)
        print(_cut(changed_prompt), file=sys.stderr)
    if changed_prompt or any(result.diff for result in results):
        print(_HOW_TO_RECORD, file=sys.stderr)


def _cut(diff: str) -> str:
    lines = diff.splitlines()
    more = [f"... and {len(lines) - LONGEST_DIFF} more lines"] if len(lines) > LONGEST_DIFF else []
    return "\n".join([*lines[:LONGEST_DIFF], *more])
