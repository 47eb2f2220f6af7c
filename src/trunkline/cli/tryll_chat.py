"""`trunkline tryll chat`: talk to a Tryll server in the terminal, or ask it one thing from a script.

Standard output has the answers, and nothing else if it is no terminal. Exit codes: 0, 1 when the server cannot be
reached or an answer failed, 130 after Ctrl-C at the prompt. Ctrl-C during an answer stops the answer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from trunkline.agents.external.tryll import TryllAgent, is_missing, pick, plain
from trunkline.base.printable import printable_line
from trunkline.cli import talking
from trunkline.cli.tryll import DEFAULT_LISTEN
from trunkline.core.faults import ConfigError, Fault
from trunkline.wires.tryll.drive import appended
from trunkline.wires.tryll.drive.sync import SyncAgent, SyncTryll
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import DownloadProgress, InferenceEngine, NodeEvent

if TYPE_CHECKING:
    import ssl

    from trunkline.agents.graph.yaml_graph import GraphFile

TOKEN_VARIABLE = "TRUNKLINE_TRYLL_TOKEN"  # noqa: S105  # its name, not its value
EXIT_FAILED = 1
EXIT_STOPPED = 130

_ENGINES = {"mock": InferenceEngine.MOCK, "llama-cpp": InferenceEngine.LLAMA_CPP}
_NO_SERVER = 1001
#: A small model that is told nothing about itself answers nonsense.
INSTRUCTIONS = "You are a helpful assistant. Answer briefly, in plain words."

tls_option = click.option(
    "--tls-ca",
    type=click.Path(exists=True, dir_okay=False),
    help="The server speaks TLS, and shows a certificate that this one (PEM) vouches for.",
)


@click.command("chat")
@click.argument("address", default=DEFAULT_LISTEN, metavar="[HOST:PORT]")
@click.option("-p", "--print", "text", metavar="TEXT", help="Ask this, print the answer, and end.")
@click.option(
    "--model", default="", metavar="NAME", help="The model that answers; one that the server has, by default."
)
@click.option(
    "--graph", "file", metavar="FILE", help="Talk to this graph (YAML), or to one that comes along: `npc`, a character."
)
@click.option(
    "--system-prompt",
    default=INSTRUCTIONS,
    metavar="TEXT",
    help="Instructions for the model, where no graph has them. Without this, to be a helpful assistant, and brief.",
)
@click.option("--engine", type=click.Choice(list(_ENGINES)), help="What runs the models; the real one, by default.")
@tls_option
def command(
    address: str,
    text: str | None,
    model: str,
    file: str | None,
    system_prompt: str,
    engine: str | None,
    tls_ca: str | None,
) -> None:
    """Talk to the Tryll server at HOST:PORT, or to a graph of yours that runs there.

    A model that the server has not got yet is fetched first. A server with a token wants it in TRUNKLINE_TRYLL_TOKEN.

    \b
    Examples:
      trunkline tryll chat
      trunkline tryll chat -p "Who are you?"
      trunkline tryll chat --graph npc
      trunkline tryll chat 127.0.0.1:9100 --graph shop.yaml
    """
    try:
        found = TryllAgent.parse(address)
        number = _ENGINES[engine] if engine is not None else None
        config = TryllAgent(engine=number, token=os.environ.get(TOKEN_VARIABLE, "")).config(model)
        # Told before anybody is asked: what is wrong with it is wrong with any server.
        graph = _graph(file)
        with (
            talking.screen.log(),
            SyncTryll(found.host, found.port, config=config, ssl=tls_context(tls_ca)) as tryll,
        ):
            fetch = config.inference_engine != InferenceEngine.MOCK
            agent, chosen = _made(tryll, model, graph, system_prompt, fetch=fetch)
            about = [f"{found.host}:{found.port}", *filter(None, (file, chosen))]
            sys.exit(_ask(agent, text) if text is not None else _converse(agent, about))
    except (Fault, TryllError) as error:
        hint = " `trunkline tryll serve` starts one." if getattr(error, "code", 0) == _NO_SERVER else ""
        raise click.ClickException(printable_line(str(error)) + hint) from error
    except KeyboardInterrupt:
        sys.exit(EXIT_STOPPED)


def tls_context(ca: str | None) -> ssl.SSLContext | None:
    """What a client trusts; None without TLS.

    Raises:
        ConfigError: the file is no certificate.
    """
    if ca is None:
        return None
    import ssl

    try:
        return ssl.create_default_context(cafile=ca)
    except ssl.SSLError:
        raise ConfigError(f"`{ca}` holds no certificate in PEM.") from None


def _graph(file: str | None) -> GraphFile | None:
    if file is None:
        return None
    # A client that has no graph of its own needs nothing of what graphs are made with.
    from trunkline.agents.graph import yaml_graph

    return yaml_graph.load(file)


def _made(
    tryll: SyncTryll, model: str, graph: GraphFile | None, system_prompt: str, *, fetch: bool
) -> tuple[SyncAgent, str]:
    """The agent to talk to, with all that its graph needs, and its model.

    `fetch`: also models that the server has not got yet.
    """
    models = {each.name: each for each in tryll.list_models()}
    chosen = model or (graph.default_model if graph is not None else "") or pick(models.values())
    knowledge = graph.knowledge if graph is not None else ()
    lines = _Lines(each.name for each in knowledge)
    for name in dict.fromkeys([chosen, *(each.embedding_model for each in knowledge)]):
        if fetch and name in models and is_missing(models[name]):
            tryll.ensure_model(name, lines, load=False)
    if graph is not None:
        tryll.bring(*graph.storages, *knowledge, progress=lines)
    agent = tryll.create_agent(
        graph.graph if graph is not None else plain(system_prompt),
        default_model=chosen,
        # They have the sentence that says why a turn failed.
        diagnostics=True,
        max_steps=graph.max_steps if graph is not None else 0,
        progress=lines,
    )
    agent.on_node_event(_show)
    return agent, chosen


def _converse(agent: SyncAgent, about: Iterable[str]) -> int:
    """Until there is no more to say. Gives the exit code: of what was piped in, that of the last answer."""
    code = 0
    for line in talking.messages(*about):
        if line.strip():
            code = _ask(agent, line)
            if sys.stdin.isatty():
                code = 0
            elif code == EXIT_STOPPED:
                break
    return code


def _ask(agent: SyncAgent, text: str) -> int:
    """One message, and its answer as it comes. Gives the exit code."""
    reply = agent.stream(text)
    try:
        with reply:
            for piece in reply:
                talking.screen.write(appended(piece))
    except TryllError as error:
        talking.screen.end()
        click.echo(f"Error: {printable_line(str(error))}", err=True)
        return EXIT_FAILED
    except KeyboardInterrupt:
        talking.screen.end()
        click.echo("Stopped.", err=True)
        return EXIT_STOPPED
    talking.screen.end()
    return 0


def _show(event: NodeEvent) -> None:
    talking.show_event(event.node_name, event.event_type, ((pair.key, pair.value) for pair in event.kv_pairs))


class _Lines(talking.ProgressLines):
    """Progress of a download."""

    def __call__(self, progress: DownloadProgress) -> None:
        self.show(progress.model_name, progress.percent)
