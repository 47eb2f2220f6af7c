"""The figures of a spoken conversation, each against the engines themselves in the same run.

    python bench/voice.py [--quick | --long] [--json]

A question is spoken at the speed of speech. Measured is the wait between its end and the first sound of the answer,
and its stages: the transcript, the first token, the first sentence, the sound. Exit codes: 0 when every goal is met by
the median, 1 when one is missed, 2 for wrong usage. Needs Linux and real models. See bench/README.md.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench._command import Progress, run
from bench._measure import Goal, Row, Taken, time_row
from bench._tryll_wire import Server
from bench._voice_stack import ANSWERS, HEARS, SPEAKS, Direct, Engine, Stack, Stages

from trunkline.core.faults import Fault
from trunkline.models import catalog, fetch
from trunkline.models.installed import missing_extra

#: What the stack may add.
GOAL = Goal("<=", 1.1)

QUESTIONS = (
    "What is the name of the river that runs past the old mill?",
    "How many sacks of flour do you grind on a good day?",
    "Who was here before you came to this village?",
    "When will the bread for the feast be ready?",
)

STAGES: tuple[tuple[str, str, Callable[[Stages], float], Goal | None], ...] = (
    ("end of speech to UtteranceFinal", "whisper by CTranslate2", lambda each: each.final, None),
    ("UtteranceFinal to first token", "xllamacpp", lambda each: each.token, None),
    ("first token to first sentence", "xllamacpp", lambda each: each.sentence, None),
    ("first sentence to first audio", "piper", lambda each: each.audio, None),
    ("end of speech to first audio", "the engines in a row", lambda each: each.whole, GOAL),
)


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rounds: int
    tokens: int
    """Of an answer."""
    judged: bool = True


SIZES = {"normal": Sizes(16, 40), "quick": Sizes(6, 40), "long": Sizes(48, 80), "tiny": Sizes(1, 16, judged=False)}


def measure(sizes: Sizes, progress: Progress) -> list[Row]:
    """All rows; none where a model cannot be had."""
    paths = {}
    for name in (HEARS, ANSWERS, SPEAKS):
        path = _path(name)
        if path is None:
            progress(f"nothing: {name} can neither be found nor fetched")
            return []
        paths[name] = path
    progress("questions and answers, aloud")
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as home, ExitStack() as kept:
        # An engine leaves a file there.
        os.environ["TMPDIR"] = home
        runner = kept.enter_context(asyncio.Runner())
        server = kept.enter_context(Server("graphs", home))
        hears = kept.enter_context(Engine("hear", paths[HEARS], home))
        answers = kept.enter_context(Engine("answer", paths[ANSWERS], home))
        speaks = kept.enter_context(Engine("speak", paths[SPEAKS], home))
        direct = Direct(hears, answers, speaks, sizes.tokens)
        questions = [direct.question(text, home, number) for number, text in enumerate(QUESTIONS)]
        stack = runner.run(Stack.open(server.port, questions[0].rate, sizes.tokens))
        pairs = []
        for number in range(sizes.rounds + 1):
            question = questions[number % len(questions)]
            if number % 2:
                theirs = direct.ask(question)
                pairs.append((runner.run(stack.ask(question)), theirs))
            else:
                pairs.append((runner.run(stack.ask(question)), direct.ask(question)))
        runner.run(stack.close())
    # The first round found every cache cold.
    return [_row(name, pairs[1:], control, stage, goal) for name, control, stage, goal in STAGES]


def _row(
    name: str, pairs: list[tuple[Stages, Stages]], control: str, stage: Callable[[Stages], float], goal: Goal | None
) -> Row:
    taken = [(Taken(stage(ours)), Taken(max(stage(theirs), 1e-6))) for ours, theirs in pairs]
    return time_row(name, taken, control, goal=goal)


def _path(name: str) -> str | None:
    try:
        entry = catalog.find(name)
        if missing_extra(entry.engine) is not None:
            return None
        return asyncio.run(fetch.pull(entry))
    except (Fault, OSError):
        return None


def main(arguments: list[str] | None = None) -> int:
    """Measure, tell, judge."""
    return run("The wait for a spoken answer, against the engines themselves.", SIZES, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
