"""`trunkline graph watch`: a conversation with a graph whose file is being written, or its tests, at every save.

Exit codes are those of `trunkline chat`; without a conversation it runs until Ctrl-C, and exits with 130.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from trunkline.base.printable import printable_line
from trunkline.cli import chat, chat_options
from trunkline.cli.chat_session import ChatOptions
from trunkline.cli.graph_options import ENGINES, complete_graph, naming_models
from trunkline.cli.graph_test import ProgressLines, spoken, summary, told
from trunkline.core.agent import OpenRequest
from trunkline.core.events import Event, Notice
from trunkline.core.faults import Fault

if TYPE_CHECKING:
    from trunkline.agents.graph.yaml_check import GraphReport
    from trunkline.agents.graph.yaml_graph import GraphFile
    from trunkline.core.agent import Agent

#: Between two looks at the file. Two that are alike make a change, so that one is seen in about twice as long.
LOOK_SECONDS = 0.25
#: Problems that are told of one save.
MOST_PROBLEMS = 10


@click.command("watch", short_help="Talk to a graph, or test it, as it is being written.")
@click.argument("file", type=click.Path(), shell_complete=complete_graph)
@click.option(
    "-m",
    "--message",
    "messages",
    metavar="TEXT",
    multiple=True,
    help="Say this at every save. Repeatable.",
)
@click.option("--test", "tests", is_flag=True, help="Run the graph's tests at every save.")
@click.option(
    "--connect", metavar="HOST:PORT", help="Have the graph run on the Tryll server there, with its real models."
)
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    help="`mock` needs no model and repeats the message (default, but for tests); `local` runs real models.",
)
@naming_models
@chat_options.approving
@click.option("--trace/--no-trace", default=True, show_default=True, help="Show the path of each turn.")
def command(
    file: str,
    messages: tuple[str, ...],
    tests: bool,
    connect: str | None,
    engine: str | None,
    model: str | None,
    models_dir: str | None,
    trace: bool,
    **given: Any,
) -> None:
    """Talk to the graph in FILE, and go on talking with what it becomes: when the file is saved, the conversation
    continues with the new graph. If something is wrong with it, that is shown with its place, and the last good one
    goes on. So it is with files that the graph names.

    With -m or --test, nobody talks: at every save these messages are said in a new conversation, and the tests run.

    \b
    Examples:
      trunkline graph watch shop.yaml
      trunkline graph watch shop.yaml --engine local --test
      trunkline graph watch shop.yaml -m "What does a sword cost?"
      trunkline graph watch shop.yaml --connect 127.0.0.1:9100
    """
    if connect is not None and (messages or tests or engine is not None or models_dir is not None):
        raise click.UsageError("`--connect` goes with neither `-m` nor `--test`, `--engine` or `--models-dir`.")
    try:
        if messages or tests:
            repeat = Repeated(file, messages, tests, model=_model(engine, model, tests=tests), models_dir=models_dir)
            with suppress(KeyboardInterrupt):
                repeat.forever()
            sys.exit(chat.EXIT_INTERRUPTED)
        agent = _remote(file, connect, model) if connect is not None else _local(file, engine, models_dir)
    except Fault as error:
        raise click.ClickException(printable_line(str(error))) from error
    options = ChatOptions(
        given=agent,
        model=None if connect is not None else model,
        command=("trunkline", "graph", "watch", file),
        no_session=True,
        lines=True,
        trace=trace,
        notes=(f"`{file}` is watched: save it, and go on talking.",),
        **_allowed(given, agent),
    )
    chat.start(options, (), as_json=False, as_jsonl=False)


def _allowed(given: dict[str, Any], agent: Agent) -> dict[str, Any]:
    """Who sits in front of it is asked about tools; nobody else can be."""
    tools = () if sys.stdin.isatty() else getattr(agent, "tools", ())
    return {**given, "allow": ",".join(filter(None, (given["allow"], *tools)))}


def _model(engine: str | None, model: str | None, *, tests: bool) -> str:
    """What `GraphTester` is to run with: tests run with the models of the file, as `graph test` does."""
    return model or ("mock" if engine == "mock" or (engine is None and not tests) else "")


def _local(file: str, engine: str | None, models_dir: str | None) -> Agent:
    from trunkline.agents.graph.conversation import GraphConversation, GraphFileAgent
    from trunkline.wires.tryll.errors import described

    watch = GraphWatch.begun(file)

    class WatchedGraph(GraphFileAgent):
        async def open(self, request: OpenRequest) -> GraphConversation:
            conversation = await super().open(request)
            conversation.when_closed(watching(watch, self.take, request.announce).cancel)
            return conversation

        def take(self, changed: GraphFile) -> None:
            self.file = changed

    return WatchedGraph.load(file, mock=engine != "local", describe=described, models_dir=models_dir)


def _remote(file: str, address: str, model: str | None) -> Agent:
    from trunkline.agents.external.tryll import TryllAgent, TryllConversation
    from trunkline.cli.tryll_chat import TOKEN_VARIABLE, load_graph

    watch = GraphWatch.begun(file)

    class WatchedServer(TryllAgent):
        async def open(self, request: OpenRequest) -> TryllConversation:
            conversation = await super().open(request)
            conversation.when_closed(watching(watch, conversation.renew, request.announce).cancel)
            return conversation

    found = TryllAgent.parse(address)
    return WatchedServer(
        found.host,
        found.port,
        model=found.model or model or "",
        graph=load_graph(file),
        token=os.environ.get(TOKEN_VARIABLE, ""),
    )


# What is watched.


class GraphWatch:
    """A graph's file, and those that it names. `look` is called at intervals."""

    def __init__(self, file: str) -> None:
        """It need not be there yet.

        Raises:
            ConfigError: what is there is no file, and would be waited for without end.
        """
        from trunkline.agents.graph import bundled, yaml_graph

        self.file = file
        self._path = bundled.locate(file)
        if os.path.exists(self._path) and not os.path.isfile(self._path):
            yaml_graph.read(file)
        self._watched: dict[str, Any] = {}
        self._follow(())

    @classmethod
    def begun(cls, file: str) -> GraphWatch:
        """One that knows all of its files. Whoever reads the graph after this misses no change."""
        watch = cls(file)
        watch.examine()
        return watch

    def look(self) -> bool:
        """Whether one of them has changed."""
        # All of them: each is to know what it was at the last look.
        changed = [path for path, each in self._watched.items() if each.look()]
        return bool(changed)

    def examine(self) -> GraphReport:
        """Read the file, and follow what it names now. Not for an event loop."""
        from trunkline.agents.graph.yaml_check import examine

        report = examine(self.file)
        self._follow(report.beside)
        return report

    def _follow(self, beside: Sequence[str]) -> None:
        from trunkline.exchange.watching import WatchedFile

        paths = (self._path, *beside)
        self._watched = {path: self._watched.get(path) or WatchedFile(path) for path in paths}


def watching(
    watch: GraphWatch, take: Callable[[GraphFile], None], announce: Callable[[Event], None] | None
) -> asyncio.Task[None]:
    """Follow a graph's file until it is cancelled: whatever it becomes is taken, if it is sound."""

    def tell(text: str) -> None:
        if announce is not None:
            announce(Notice(text))

    async def follow() -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if not watch.look():
                continue
            report = await asyncio.to_thread(watch.examine)
            for problem in problems(report):
                tell(problem)
            if report.graph is not None:
                take(report.graph)
                tell(f"`{watch.file}` has changed: the next message is for the new graph.")
            else:
                tell("The last good graph goes on.")

    return asyncio.get_running_loop().create_task(follow(), name="watch a graph")


def problems(report: GraphReport) -> list[str]:
    """What is wrong with a file, with the place of each; the first ones, if there are many."""
    told = [each.told for each in report.problems]
    more = len(told) - MOST_PROBLEMS
    return told if more <= 0 else [*told[:MOST_PROBLEMS], f"... and {more} more."]


class Repeated:
    """What is done at every save where nobody talks: some messages in a new conversation, and the tests."""

    def __init__(self, file: str, messages: Sequence[str], tests: bool, *, model: str, models_dir: str | None) -> None:
        self._file = file
        self._messages = messages
        self._tests = tests
        self._how: dict[str, Any] = {"model": model, "models_dir": models_dir}
        self._watch = GraphWatch(file)
        self._progress = ProgressLines()

    def forever(self) -> None:
        """Do it now, and whenever the file has changed."""
        asyncio.run(self._forever())

    async def _forever(self) -> None:
        while True:
            await self.once(await asyncio.to_thread(self._watch.examine))
            await self._change()

    async def _change(self) -> None:
        click.echo("Waiting for the file to change ...", err=True)
        await asyncio.sleep(LOOK_SECONDS)
        while not self._watch.look():  # noqa: ASYNC110  (a file does not tell)
            await asyncio.sleep(LOOK_SECONDS)

    async def once(self, report: GraphReport) -> None:
        """All of it, with one state of the file."""
        for problem in problems(report):
            click.echo(f"problem  {printable_line(problem)}")
        if report.graph is None:
            return
        try:
            await self._run(report.graph)
        except Fault as fault:
            click.echo(f"problem  {printable_line(str(fault))}")

    async def _run(self, graph: GraphFile) -> None:
        from trunkline.agents.graph import bundled
        from trunkline.agents.graph.trying import GraphTester
        from trunkline.agents.graph.written_tests import WrittenTest, WrittenTurn

        folder = bundled.folder_of(self._file)
        async with GraphTester(graph, f"graph:{self._file}", folder, on_progress=self._progress, **self._how) as tester:
            if self._messages:
                tried = await tester.run(WrittenTest("messages", tuple(map(WrittenTurn, self._messages))))
                for line in spoken(tried):
                    click.echo(line)
            if self._tests:
                results = [await tester.run(test) for test in graph.tests]
                for each in results:
                    for line in told(self._file, each):
                        click.echo(line)
                click.echo(summary(results))
