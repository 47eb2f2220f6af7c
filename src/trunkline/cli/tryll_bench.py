"""`trunkline tryll bench`: how many characters this machine talks for at once.

Exit codes: 0; 1 when it could not be measured or no turn was completed, 2 for wrong usage, 130 after Ctrl-C, when what
is known is printed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from tempfile import NamedTemporaryFile
from typing import Any

import click

from trunkline.agents.external import tryll_models
from trunkline.base import jsontext
from trunkline.base.printable import printable, printable_line
from trunkline.base.signals import handled
from trunkline.cli import table
from trunkline.cli.explained import explained
from trunkline.cli.finite import FiniteRange
from trunkline.cli.tryll_load import MAX_CHARACTERS, LoadPlan, Round, RoundSoFar, find, play
from trunkline.core import configuration
from trunkline.core.faults import AgentFailed, ConfigError
from trunkline.wires.tryll.drive import Tryll
from trunkline.wires.tryll.drive.address import ServerAddress
from trunkline.wires.tryll.drive.managed import ManagedServer
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import ConfigureSessionRequest, InferenceEngine

EXIT_UNMEASURED, EXIT_INTERRUPTED = 1, 130
#: What stands for the engine that needs no model: how much the server itself takes.
MOCK = "mock"
TOKEN_VARIABLE = "TRUNKLINE_TRYLL_TOKEN"  # noqa: S105  # its name, not its value
#: Variables of a server that somebody else starts.
_VARIABLES = "TRUNKLINE_TRYLL_"
#: Turns below which the slowest one alone decides about 95 % of them.
FEW_TURNS = 20

#: The end of a server's log, as far as it was written by now.
LastWords = Callable[[], str]

_HEAD = ("CHARACTERS", "TURNS", "TURNS/S", "FIRST WORD P50", "P95", "TOKENS/S EACH", "FAILED")


class _Bench:
    """One run, and what is known so far."""

    def __init__(self, plan: LoadPlan, characters: int, limit: float | None) -> None:
        self.plan = plan
        self.characters = characters
        self.limit = limit
        self.rounds: list[Round] = []
        self.found: int | None = None
        self.stopped = False

    async def run(self, where: ServerAddress) -> None:
        """Measure, until it is done or a signal comes."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def stop() -> None:
            self.stopped = True
            if task is not None:
                task.cancel()

        for number in handled((signal.SIGINT, signal.SIGTERM)):
            loop.add_signal_handler(number, stop)
        try:
            await self._measure(where)
        except asyncio.CancelledError:
            if not self.stopped:
                raise

    async def _measure(self, where: ServerAddress) -> None:
        engine = InferenceEngine.MOCK if self.plan.model == MOCK else InferenceEngine.LLAMA_CPP
        config = ConfigureSessionRequest(inference_engine=engine, token=os.environ.get(TOKEN_VARIABLE, ""))
        host = str(where) if where.is_websocket else where.host
        async with Tryll(host, where.port, config=config, reconnect=None) as tryll:
            if not self.plan.model:
                self.plan = self.plan.replace(model=tryll_models.pick(await tryll.list_models()))
            if not self.plan.model:
                raise ConfigError("The server has no language model.", hint=f"Name `--model {MOCK}` to do without.")
            if self.limit is None:
                self._told(await self._round(tryll, self.characters))
            else:
                self.found = await find(lambda count: self._round(tryll, count), self.limit, self._told)

    async def _round(self, tryll: Tryll, characters: int) -> Round:
        click.echo(f"{_counted(characters)} with {self.plan.model}, {self.plan.seconds:g} s ...", err=True)
        heard = RoundSoFar()
        try:
            return await play(tryll, self.plan, characters, heard)
        except (asyncio.CancelledError, TryllError):
            # Of a server that heard Ctrl-C, too, an error may come first.
            self.rounds.append(heard.round(characters, complete=False))
            raise

    @property
    def turns(self) -> int:
        """Those that were completed, in all rounds."""
        return sum(each.turns for each in self.rounds)

    def _told(self, found: Round) -> None:
        self.rounds.append(found)
        if not found.turns:
            click.echo(f"  no turn was completed; {found.failed} failed", err=True)
            return
        click.echo(
            f"  first word: {found.first_p50 * 1000:.0f} ms, "
            f"for 95 % of {_turns(found.turns)} within {found.first_p95 * 1000:.0f} ms",
            err=True,
        )

    def record(self) -> dict[str, Any]:
        """For programs."""
        rounds = [
            {
                "characters": each.characters, "seconds": round(each.seconds, 3), "turns": each.turns,
                "failed": each.failed, "turns_per_second": round(each.turns_per_second, 3),
                "first_word_ms_p50": round(each.first_p50 * 1000, 1) if each.turns else None,
                "first_word_ms_p95": round(each.first_p95 * 1000, 1) if each.turns else None,
                "tokens_per_second": round(each.tokens_per_second, 2) if each.turns else None,
                "complete": each.complete,
            }
            for each in sorted(self.rounds, key=lambda each: each.characters)
        ]  # fmt: skip
        told = {"model": self.plan.model, "think_seconds": self.plan.think, "max_tokens": self.plan.tokens}
        limit = {} if self.limit is None else {"limit_ms": round(self.limit * 1000), "characters": self.found}
        return {**told, **limit, "complete": not self.stopped, "rounds": rounds}

    def show(self) -> None:
        """For people."""
        rows = [_row(each) for each in sorted(self.rounds, key=lambda each: each.characters)]
        if rows:
            table.show(_HEAD, rows)
        for each in self.rounds:
            if not each.complete:
                click.echo(f"\nThe round with {_counted(each.characters)} was stopped after {each.seconds:.1f} s.")
        if self.turns and self.found is not None and self.limit is not None:
            click.echo(f"\n{self._result(self.found, f'{self.limit * 1000:.0f} ms')}")

    def _result(self, found: int, limit: str) -> str:
        turns = next((each.turns for each in self.rounds if each.characters == found), 0)
        if not turns:
            return f"Not even 1 character: its turns do not begin within {limit}, or fail."
        least = "At least " if found == MAX_CHARACTERS else ""
        few = "" if turns >= FEW_TURNS else " Those are few: say `--seconds` for longer rounds."
        return f"{least}{_counted(found)} at once: 95 % of {_turns(turns)} begin within {limit}.{few}"


def _counted(characters: int) -> str:
    return f"{characters} character{'' if characters == 1 else 's'}"


def _turns(count: int) -> str:
    return f"{count} turn{'' if count == 1 else 's'}"


def _why(rounds: Sequence[Round], last_words: LastWords | None, *, stopped: bool) -> str:
    """The end of a sentence: what became of the turns, and what to do.

    `last_words`: of a server that is the command's own, whose log is nowhere else."""
    failed = sum(each.failed for each in rounds)
    if failed:
        error = next((each.error for each in reversed(rounds) if each.error), "")
        last = f", the last one with: {printable_line(error)}" if error else ""
        if last_words is None:
            return f", and {failed} failed{last}\nThe log of the server may say more."
        said = printable(last_words())
        return f", and {failed} failed{last}" + (f"\nThe last words of the server:\n{said}" if said else "")
    if stopped:
        return " before it was stopped."
    return ": nothing was measured. Say `--seconds` for longer rounds, or `--think` for shorter pauses."


def _row(found: Round) -> tuple[str, ...]:
    first = [f"{each * 1000:.0f} ms" for each in (found.first_p50, found.first_p95)]
    speeds = [f"{found.turns_per_second:.2f}", *first, f"{found.tokens_per_second:.1f}"] if found.turns else ["-"] * 4
    return str(found.characters), str(found.turns), *speeds, str(found.failed)


@contextmanager
def _own_server() -> Iterator[tuple[ServerAddress, LastWords]]:
    """A server for this measurement alone: of what is configured for others it has only the models.

    A token, or an address of their own, would keep this one from being used, or from beginning.
    """
    models: str | None = configuration.settled("tryll")["models_dir"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(_VARIABLES)}
    with NamedTemporaryFile(prefix="trunkline-", suffix=".toml") as nothing:
        arguments = ["--config", nothing.name, *(["--models-dir", models] if models else [])]
        with ManagedServer.start(None, *arguments, env=environ) as server:
            yield ServerAddress(server.host, server.port), server.last_words


def _server(context: click.Context, parameter: click.Parameter, said: str | None) -> ServerAddress | None:
    try:
        return ServerAddress.parse(said) if said is not None else None
    except ValueError:
        raise click.BadParameter(f"`{said}` is not an address such as 127.0.0.1:9100 or ws://127.0.0.1:9101.") from None


@click.command("bench")
@click.option(
    "--connect",
    metavar="HOST:PORT",
    callback=_server,
    help="Use this server, or ws://HOST:PORT (default: one of its own, which ends with it).",
)
@click.option(
    "--model",
    metavar="NAME",
    default="",
    help=f"The model that answers (default: the one that is most ready); `{MOCK}`: none, for the server alone.",
)
@click.option(
    "--characters",
    metavar="N",
    type=click.IntRange(1, MAX_CHARACTERS),
    help="Measure with so many characters (default: 1).",
)
@click.option("--find", "is_search", is_flag=True, help="Find out how many characters there can be at once.")
@click.option(
    "--limit-ms",
    metavar="MS",
    type=click.IntRange(1),
    default=2000,
    show_default=True,
    help="With `--find`: the first word must come within this time, in 95 % of turns.",
)
@click.option(
    "--seconds", metavar="N", type=click.IntRange(1, 3600), default=30, show_default=True, help="Of each round."
)
@click.option(
    "--think", metavar="N", type=FiniteRange(0, 600), default=5.0, show_default=True,
    help="Seconds between an answer and the next line, on average.",
)  # fmt: skip
@click.option(
    "--tokens", metavar="N", type=click.IntRange(1, 4096), default=40, show_default=True,
    help="The longest answer: 40 tokens are two short sentences.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@explained
def command(
    connect: ServerAddress | None,
    model: str,
    characters: int | None,
    is_search: bool,
    limit_ms: int,
    seconds: int,
    think: float,
    tokens: int,
    as_json: bool,
) -> None:
    """Measure how many characters this machine talks for at once.

    Each character is an agent of its own that says a line, hears the answer, and thinks before the next one, as in a
    game whose player goes from one to another. With `--find` their number is doubled until the first word comes too
    late, and then the number between is found. Ctrl-C prints what is known by then,
    also of the round that it stops.

    A server with a token wants it in TRUNKLINE_TRYLL_TOKEN.

    \b
    Examples:
      trunkline tryll bench --model smollm2-135m --characters 4
      trunkline tryll bench --find --limit-ms 1500
      trunkline tryll bench --connect 192.168.0.7:9100 --find --json
    """
    if is_search and characters is not None:
        raise click.UsageError("`--find` and `--characters` do not go together.")
    plan = LoadPlan(model, seconds, think, tokens)
    bench = _Bench(plan, characters or 1, limit_ms / 1000 if is_search else None)
    server: AbstractContextManager[tuple[ServerAddress, LastWords | None]]
    server = _own_server() if connect is None else nullcontext((connect, None))
    last_words: LastWords | None = None
    try:
        with server as (where, last_words):
            asyncio.run(bench.run(where))
    except TryllError as error:
        # Who stopped it wants what is known, also of a server that heard Ctrl-C, too.
        if not bench.stopped:
            raise AgentFailed(f"The server says: {error}") from None
    if as_json:
        click.echo(jsontext.dumps(bench.record()))
    else:
        bench.show()
    if not bench.turns:
        click.echo(f"No turn was completed{_why(bench.rounds, last_words, stopped=bench.stopped)}", err=True)
    if bench.stopped or not bench.turns:
        sys.exit(EXIT_INTERRUPTED if bench.stopped else EXIT_UNMEASURED)
