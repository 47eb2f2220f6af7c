"""`trunkline graph run`: a conversation with a graph, in this process.

Standard output has the answers, or with `--json` an object for each turn; standard error what nodes tell, and the way
that the turn took. Exit codes: 0, 1 when the graph cannot run or an answer failed, 2 for wrong usage, 130 after Ctrl-C.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from trunkline.base.printable import printable_line
from trunkline.cli import talking
from trunkline.core.faults import Fault, ModelError

if TYPE_CHECKING:
    from trunkline.agents.graph.agent import GraphAgent
    from trunkline.agents.graph.agent_models import AgentModels
    from trunkline.agents.graph.hosting import LocalGraphHost, SessionHost
    from trunkline.agents.graph.pool import ModelPool
    from trunkline.agents.graph.yaml_graph import GraphFile
    from trunkline.cli.talk_files import WavWriter

EXIT_FAILED = 1
EXIT_STOPPED = 130

_ENGINES = ("mock", "local")
_MOCK_NOTE = "It says back what it hears. `--engine local` runs real models."
#: What is to be said of a model that cannot be had.
_MODELS = "`trunkline models list` shows those there are."
#: Of one sample of sound.
_SAMPLE_BYTES = 2


def complete_graph(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The graphs that come along, and files."""
    from trunkline.agents.graph import bundled

    names = [CompletionItem(name) for name in bundled.names() if name.startswith(incomplete)]
    # The file first: bash forgets what it heard before a file.
    return [CompletionItem(incomplete, type="file"), *names]


@click.command("run", short_help="Talk to a graph, without a server.")
@click.argument("file", type=click.Path(), shell_complete=complete_graph)
@click.option("-m", "--message", metavar="TEXT", help="Say this, print the answer, and end.")
@click.option(
    "--engine",
    type=click.Choice(_ENGINES),
    default="mock",
    show_default=True,
    help="`mock` needs no model, and says back what it hears; `local` runs the real ones, fetched on first use.",
)
@click.option("--model", default="", metavar="NAME", help="The model of nodes that name none; the file's, by default.")
@click.option(
    "--record",
    metavar="FILE.json",
    type=click.Path(dir_okay=False),
    help="Write down what happened in the last turn, for `graph draw --turn`.",
)
@click.option(
    "--sound",
    metavar="FILE.wav",
    type=click.Path(dir_okay=False),
    help="Keep what the graph says aloud. The mock engine has no voice.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each turn, at its end.")
def command(
    file: str, message: str | None, engine: str, model: str, record: str | None, sound: str | None, as_json: bool
) -> None:
    """Talk to a graph in this process: answers as they come, what nodes tell, and the way through the graph.

    Files that the graph names are looked for beside it. Ctrl-C stops an answer, and a second one the program.

    An agent that the graph names (`agent:NAME`) works in this folder, and may do nothing that needs to be allowed. One
    that runs a program or a module of its own has to be named by `--model`.

    \b
    Examples:
      trunkline graph run npc.yaml
      trunkline graph run npc.yaml -m "Who are you?" --record turn.json
      trunkline graph run npc.yaml --engine local --model smollm2-135m
      trunkline graph run speaker.yaml --engine local -m "Good morning" --sound answer.wav
    """
    from trunkline.agents.graph import bundled, yaml_graph

    refuse_to_replace(record, file)
    refuse_to_replace(sound, file)
    try:
        graph = yaml_graph.load(file)
        with asyncio.Runner() as runner, _sounds(sound) as sounds:
            talk = _Talk(graph, bundled.folder_of(file), record, as_json, sounds)
            try:
                runner.run(talk.open(engine, model))
                if message is None:
                    mock = engine == "mock"
                    about = (file, "the mock engine" if mock else model or graph.default_model)
                    code = _converse(runner, talk, about, _MOCK_NOTE if mock else "")
                else:
                    code = runner.run(talk.turn(message))
            finally:
                runner.run(talk.close())
            if sounds is not None and sounds.empty:
                click.echo(printable_line(f"`{sound}` was not written: {_why_mute(graph, engine)}"), err=True)
    except Fault as error:
        hint = f" {_MODELS}" if isinstance(error, ModelError) else ""
        raise click.ClickException(printable_line(str(error)) + hint) from error
    except KeyboardInterrupt:
        code = EXIT_STOPPED
    sys.exit(code)


def _sounds(path: str | None) -> WavWriter | nullcontext[None]:
    """The file that what is said aloud goes to.

    Raises:
        ConfigError: it cannot be written.
    """
    if path is None:
        return nullcontext()
    from trunkline.cli.talk_files import WavWriter

    return WavWriter(path)


def _why_mute(graph: GraphFile, engine: str) -> str:
    """Why nothing was said aloud."""
    from trunkline.agents.graph.spoken import speaks

    if not speaks(graph.graph):
        return "the graph has no node that speaks."
    if engine == "mock":
        return "the mock engine has no voice. `--engine local` has."
    return "no node had anything to say aloud."


def refuse_to_replace(target: str | None, *sources: str | None) -> None:
    """See to it that what is written takes the place of nothing that is read.

    Raises:
        click.UsageError: it would.
    """
    for source in filter(None, sources):
        if (
            target is not None
            and os.path.exists(target)
            and os.path.exists(source)
            and os.path.samefile(target, source)
        ):
            raise click.UsageError(printable_line(f"`{target}` would take the place of `{source}`, which is read."))


def _converse(runner: asyncio.Runner, talk: _Talk, about: Iterable[str], note: str) -> int:
    """Until there is no more to say. Gives the exit code: of what was piped in, that of the last answer."""
    code = 0
    for line in talking.messages(*filter(None, about), note=note):
        if line.strip():
            code = runner.run(talk.turn(line))
            if sys.stdin.isatty():
                code = 0
            elif code == EXIT_STOPPED:
                break
    return code


class _Talk:
    """A conversation."""

    _host: LocalGraphHost | None = None
    _session: SessionHost | None = None
    _agent: GraphAgent

    def __init__(
        self, graph: GraphFile, folder: str, record: str | None, as_json: bool, sounds: WavWriter | None = None
    ) -> None:
        self._sounds = sounds
        self._graph = graph
        self._folder = folder
        self._record = record
        self._as_json = as_json

    async def open(self, engine: str, model: str) -> None:
        """Get models and storages, and make the agent.

        Raises:
            ConfigError: something is not there, or does not work.
        """
        from trunkline.agents.graph.hosting import LocalGraphHost
        from trunkline.agents.graph.pool import ModelPool
        from trunkline.agents.graph.vectors import VectorStore
        from trunkline.base import paths
        from trunkline.core.graph.hosting import HostSettings
        from trunkline.core.graph.ordinals import InferenceEngine
        from trunkline.wires.tryll.errors import described

        cache = paths.cache_dir()
        vectors = VectorStore(os.path.join(cache, "tryll-vectors"))
        mock = engine == "mock"
        pool = ModelPool()
        self._host = LocalGraphHost(self._models(pool, model, check=not mock), self._folder, vectors)
        session = self._session = self._host.open_session(described)
        number = InferenceEngine.MOCK if mock else InferenceEngine.LLAMA_CPP
        voice = InferenceEngine.MOCK if mock else InferenceEngine.SHERPA_ONNX
        session.configure(
            HostSettings(
                inference_engine=number,
                embedding_engine=number,
                stt_engine=voice,
                tts_engine=voice,
                allow_auto_model_downloading=True,
            )
        )
        graph = self._graph
        lines = talking.ProgressLines(each.name for each in graph.knowledge)

        def progress(name: str, done: int, total: int) -> None:
            lines.show(name, 100 * done / total if total else 100)

        for strings in graph.storages:
            await session.create_strings(strings)
        for knowledge in graph.knowledge:
            await session.create_embedded(knowledge, progress)
        self._agent = await session.create_agent(
            graph.graph,
            progress,
            default_model=model or graph.default_model,
            diagnostics=True,
            max_steps=graph.max_steps,
        )

    def _models(self, pool: ModelPool, model: str, *, check: bool) -> AgentModels:
        """The models, with the agents that the graph names among them. `check`: before anything is fetched.

        Raises:
            ConfigError: there is no such agent, or it is not for a file to name it.
            ModelError: there is no such model.
        """
        from trunkline.agents.graph.agent_models import models_for
        from trunkline.cli import opening

        graph, folder = self._graph, os.getcwd()
        return models_for(
            graph.graph,
            pool,
            graph.default_model,
            chosen=model,
            workspace=folder,
            secrets=opening.redactor(),
            check=check,
        )

    async def close(self) -> None:
        """Let go of everything, as far as it was there."""
        if self._session is not None:
            self._session.close()
        if self._host is not None:
            await self._host.close()

    async def turn(self, text: str) -> int:
        """Say something, and show what comes of it. Gives the exit code.

        Raises:
            KeyboardInterrupt: Ctrl-C came twice.
            ConfigError: the turn cannot be recorded.
        """
        from trunkline.base import jsontext

        heard = _Heard(self._as_json, self._sounds)
        stops = await self._run(text, heard)
        found: dict[str, Any] = jsontext.loads(heard.debug_info.encode())
        if self._record is not None:
            _write(self._record, heard.debug_info)
        if self._as_json:
            click.echo(jsontext.dumps({"message": text, **heard.told(), **_summary(found)}).decode())
        else:
            talking.screen.end()
            _show(found, heard.sound_seconds, stopped=bool(stops))
        return EXIT_STOPPED if stops else EXIT_FAILED if found["status"] == "Error" else 0

    async def _run(self, text: str, heard: _Heard) -> int:
        """A turn, which Ctrl-C ends; gives how often that was asked for."""
        from trunkline.base.signals import handled

        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        stops = 0

        def stop() -> None:
            nonlocal stops
            stops += 1
            if stops == 1:
                self._agent.cancel()
            elif task is not None:
                task.cancel()

        numbers = handled((signal.SIGINT,))
        for number in numbers:
            loop.add_signal_handler(number, stop)
        try:
            ending = await self._agent.turn(text, heard)
        except asyncio.CancelledError:
            if stops > 1:
                raise KeyboardInterrupt from None
            raise
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
        heard.debug_info = ending.debug_info
        return stops


class _Heard:
    """A `Listener` that shows what it hears as it comes; or keeps it, for a JSON object."""

    full = False

    def __init__(self, quiet: bool, sounds: WavWriter | None = None) -> None:
        self._quiet = quiet
        self._sounds = sounds
        self._pieces: list[str] = []
        self._events: list[dict[str, Any]] = []
        self.sound_seconds = 0.0
        self.debug_info = ""

    async def room(self) -> None:
        """There always is."""

    def delta(self, text: str) -> None:
        self._pieces.append(text)
        if not self._quiet:
            talking.screen.write(text)

    def whole(self, text: str, final: bool) -> None:
        self.delta(text[sum(map(len, self._pieces)) :])

    def audio(self, pcm: bytes, sample_rate: int) -> None:
        # Nobody plays it here; that there is some is worth knowing.
        self.sound_seconds += len(pcm) / _SAMPLE_BYTES / sample_rate
        if self._sounds is not None:
            from trunkline.wires.tryll.drive import Sound

            self._sounds.write(Sound(pcm, sample_rate))

    def event(self, node: str, type: str, pairs: tuple[tuple[str, str], ...]) -> None:
        self._events.append({"node": node, "type": type, **dict(pairs)})
        if not self._quiet:
            talking.show_event(node, type, pairs)

    def told(self) -> dict[str, Any]:
        """The answer and the events, and how long the answer is aloud."""
        sound = {"sound_seconds": round(self.sound_seconds, 3)} if self.sound_seconds else {}
        return {"answer": "".join(self._pieces), "events": self._events, **sound}


def _summary(found: dict[str, Any]) -> dict[str, Any]:
    kept = {key: found.get(key) for key in ("status", "wall_ms", "ttft_ms", "tokens_generated", "error")}
    return {
        **kept,
        "nodes": [{key: node.get(key) for key in ("name", "type", "exit", "ms")} for node in found["nodes"]],
    }


def _show(found: dict[str, Any], sound_seconds: float, *, stopped: bool) -> None:
    """The way that a turn took, and what went wrong, on standard error."""
    way = " > ".join(f"{node['name']} {node.get('exit', '')}".strip() for node in found["nodes"])
    tokens = found["tokens_generated"]
    sound = f", {sound_seconds:.1f} s of sound" if sound_seconds else ""
    told = f"({way}; {found['wall_ms']:.0f} ms{f', {tokens} tokens' if tokens else ''}{sound})"
    click.echo(click.style(printable_line(told), dim=True), err=True)
    if stopped:
        click.echo("Stopped.", err=True)
    if (error := found["error"]) is not None:
        click.echo(f"Error: {printable_line(error['message'])} [{error['code']}]", err=True)


def _write(path: str, text: str) -> None:
    from trunkline.core.faults import ConfigError

    try:
        with open(path, "w", encoding="utf-8", errors="surrogatepass") as opened:
            opened.write(text + "\n")
    except OSError as error:
        raise ConfigError(f"`{path}` cannot be written: {error.strerror}.") from None
