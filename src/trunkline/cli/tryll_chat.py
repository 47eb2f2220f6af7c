"""`trunkline tryll chat`: `trunkline chat` with a Tryll server, or with a graph that runs there.

Exit codes are those of `trunkline chat`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from trunkline.agents.external.tryll import TryllAgent
from trunkline.base.printable import printable_line
from trunkline.cli import chat, chat_options
from trunkline.cli.chat_session import ChatOptions
from trunkline.cli.graph_options import complete_graph
from trunkline.cli.tryll import DEFAULT_LISTEN
from trunkline.cli.value_completion import models
from trunkline.core.faults import ConfigError, Fault
from trunkline.models.catalog_entry import LLM
from trunkline.wires.tryll.messages import InferenceEngine

if TYPE_CHECKING:
    import ssl

    from trunkline.agents.graph.yaml_graph import GraphFile

TOKEN_VARIABLE = "TRUNKLINE_TRYLL_TOKEN"  # noqa: S105  # its name, not its value

ENGINES = {"mock": InferenceEngine.MOCK, "llama-cpp": InferenceEngine.LLAMA_CPP}
#: A small model that is told nothing about itself answers nonsense.
INSTRUCTIONS = "You are a helpful assistant. Answer briefly, in plain words."

#: Who answers there, in writing or aloud.
server_options = chat_options.all_of(
    click.option(
        "--model",
        metavar="NAME",
        help="The model that answers; one that the server has, by default.",
        shell_complete=models(LLM, "mock"),
    ),
    click.option(
        "--graph",
        "file",
        metavar="FILE",
        help="Talk to this graph (YAML), or to a bundled one: `npc`, `smith`.",
        shell_complete=complete_graph,
    ),
    click.option(
        "--system-prompt",
        metavar="TEXT",
        help="Instructions for the model, where no graph has them. Without this, to be a helpful assistant, and brief.",
    ),
    click.option("--engine", type=click.Choice(list(ENGINES)), help="What runs the models; the real one, by default."),
    click.option(
        "--tls-ca",
        type=click.Path(exists=True, dir_okay=False),
        help="The server speaks TLS, and shows a certificate that this one (PEM) vouches for.",
    ),
)


@click.command("chat")
@click.argument("address", default=DEFAULT_LISTEN, metavar="[HOST:PORT]")
@chat_options.asking
@server_options
@chat_options.keeping
@chat_options.tracing
def command(
    address: str,
    texts: tuple[str, ...],
    as_json: bool,
    as_jsonl: bool,
    file: str | None,
    system_prompt: str | None,
    engine: str | None,
    tls_ca: str | None,
    **given: Any,
) -> None:
    """Talk to the Tryll server at HOST:PORT or ws://HOST:PORT, or to a graph of yours that runs there.

    A model that the server has not got yet is fetched first. A server with a token wants it in TRUNKLINE_TRYLL_TOKEN.
    Keys, commands and flags are those of `trunkline chat`.

    \b
    Examples:
      trunkline tryll chat
      trunkline tryll chat -p "Who are you?"
      trunkline tryll chat --graph npc
      trunkline tryll chat 127.0.0.1:9100 --graph shop.yaml
      trunkline tryll chat ws://127.0.0.1:9101
    """
    try:
        found = TryllAgent.parse(address)
        agent = TryllAgent(
            found.host,
            found.port,
            model=found.model,
            graph=load_graph(file),
            engine=ENGINES[engine] if engine is not None else None,
            token=os.environ.get(TOKEN_VARIABLE, ""),
            ssl=tls_context(tls_ca),
        )
    except Fault as error:
        raise click.ClickException(printable_line(str(error))) from error
    words = [address, *(["--graph", file] if file else []), *(["--engine", engine] if engine else [])]
    words += ["--tls-ca", tls_ca] if tls_ca else []
    options = ChatOptions(
        given=agent,
        command=("trunkline", "tryll", "chat", *words),
        system_prompt=system_prompt or (INSTRUCTIONS if file is None else None),
        notes=(f"The graph `{file}` runs there.",) if file is not None and not texts and sys.stdin.isatty() else (),
        **given,
    )
    chat.start(options, texts, as_json=as_json, as_jsonl=as_jsonl)


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


def load_graph(file: str | None) -> GraphFile | None:
    """A graph, if one is named.

    Raises:
        ConfigError: it cannot be read, or is wrong.
    """
    if file is None:
        return None
    # A client that has no graph of its own needs nothing of what graphs are made with.
    from trunkline.agents.graph import yaml_graph

    return yaml_graph.load(file)
