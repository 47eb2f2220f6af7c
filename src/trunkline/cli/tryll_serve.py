"""`trunkline tryll serve`: graph agents on local models, until stopped.

Exit codes: 0 when its standard input ended and it was to end with it, 1 when it could not start, 2 for wrong usage, 130
after Ctrl-C, 143 after SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from trunkline.agents import registry
from trunkline.agents.graph.agent_models import HARMLESS, AgentModels, offered
from trunkline.base import config_addresses, log_context, paths
from trunkline.base.config_services import listed
from trunkline.base.config_settled import EffectiveConfig
from trunkline.base.printable import printable_line
from trunkline.base.vocabulary import MODES, Mode
from trunkline.cli import figures, log_options, opening, services, serving, tryll_serving
from trunkline.cli.chat import complete_agent
from trunkline.cli.explained import explanation
from trunkline.cli.tryll_serving import ServePlan, ServerDoors
from trunkline.core.agent import Agent
from trunkline.core.approvals import Policy
from trunkline.core.faults import ConfigError, Fault, NoModel
from trunkline.models import load_configured

if TYPE_CHECKING:
    import ssl

    from trunkline.agents.graph.hosting import Models
    from trunkline.agents.graph.recorded import ConversationRecords
    from trunkline.base.redact import Redactor

#: What `--ws` means without an address.
_NEXT = "next"
_PUBLIC = "Add `--public` if they may, and set TRUNKLINE_TRYLL_TOKEN, or use `--no-token` in a network that you trust."
_EVERYBODY = "Whoever reaches this address can use the server: `--no-token` lets everybody in."
#: Whose log there is. What others log may hold what agents and their tools say.
_LOGGERS = ("trunkline.wires.tryll", "trunkline.agents.graph")


def _websocket(context: click.Context, parameter: click.Parameter, said: str | None) -> str | bool | None:
    if said is not None and said != _NEXT and config_addresses.listening(said) is None:
        raise click.BadParameter(f"`{said}` is not an address such as 127.0.0.1:9101.")
    return True if said == _NEXT else said


def _origins(context: click.Context, parameter: click.Parameter, said: tuple[str, ...]) -> tuple[str, ...]:
    for each in said:
        if config_addresses.origin(each) is None:
            raise click.BadParameter(f"`{each}` is not an origin such as https://game.example.")
    return said


@click.command("serve")
@services.config_option
@services.option("tryll", "listen", metavar="HOST:PORT", help="Port 0 is any free one.")
@click.option(
    "--ws",
    metavar="[HOST:PORT]",
    is_flag=False,
    flag_value=_NEXT,
    callback=_websocket,
    help="Listen for WebSockets, too: there, or without an address at the next port.",
)
@click.option(
    "--ws-origin",
    "ws_origins",
    metavar="ORIGIN",
    multiple=True,
    callback=_origins,
    help="Let pages of this origin open a WebSocket, such as https://game.example; can be given several times. Those "
    "of this machine may.",
)
@click.option(
    "--models-dir",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="A folder with a `models.json`, or with GGUF files. The built-in models are always offered.",
)
@click.option(
    "--storage-root",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="The folder whose files clients may name, and where memories are. Without it they may name none.",
)
@click.option(
    "--agent",
    "agents",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_agent,
    help=f"An agent that clients may use as the model `agent:NAME`; can be given several times. One of "
    f"{', '.join((*registry.names(), *registry.FORMS))}. `{HARMLESS}` is always offered, and no other.",
)
@click.option("--workspace", metavar="DIR", help="The directory that the agents work in (default: the current one).")
@services.option(
    "tryll",
    "mode",
    type=click.Choice(list(MODES)),
    help="What the agents may do without approval. Everything else is denied: there is nobody to ask.",
)
@click.option("--allow", metavar="TOOLS", default="", help="Tools that they may use in any mode, separated by commas.")
@click.option(
    "--sessions", is_flag=True, help="Keep every conversation as a session: `trunkline sessions` lists and shows them."
)
@click.option("--public", is_flag=True, help="Allow an address that other machines can reach.")
@click.option(
    "--no-token", is_flag=True, help="Serve everybody who reaches it: with `--public`, for a network that you trust."
)
@click.option(
    "--tls-cert", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="Speak TLS with this chain (PEM)."
)
@click.option(
    "--tls-key", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="Its key, if it is not in it."
)
@figures.option("tryll")
@services.option(
    "tryll", "max_clients", metavar="N", type=click.IntRange(1), help="Refuse more connections than that at once."
)
@services.option(
    "tryll", "max_agents", metavar="N", type=click.IntRange(1), help="Agents that one connection may have."
)
@services.option(
    "tryll",
    "turns_per_minute",
    metavar="N",
    type=click.IntRange(1),
    help="Turns of one connection that may begin within a minute.",
)
@click.option(
    "--exit-with-stdin",
    is_flag=True,
    help="End as soon as standard input does: a game leaves no server behind, not even when it is killed.",
)
@click.option("--json", "as_json", is_flag=True, help="When ready, print one JSON object on standard output.")
@log_options.log_options
def command(
    listen: str | None,
    ws: str | bool | None,
    ws_origins: tuple[str, ...],
    models_dir: str | None,
    storage_root: str | None,
    agents: tuple[str, ...],
    workspace: str | None,
    mode: Mode | None,
    allow: str,
    sessions: bool,
    public: bool,
    no_token: bool,
    tls_cert: str | None,
    tls_key: str | None,
    metrics: str | None,
    max_clients: int | None,
    max_agents: int | None,
    turns_per_minute: int | None,
    exit_with_stdin: bool,
    as_json: bool,
    log_level: str | None,
    log_file: str | None,
) -> None:
    """Serve until stopped. The server is ready when a connection gets its `SessionReady`.

    A game that starts the server itself adds `--exit-with-stdin --json`: it reads the port from the line that says
    that the server is ready, and the server ends with the game.

    Whoever connects can use every agent that is offered, with all that `--mode` and `--allow` let it do. Its model is
    the one that `trunkline chat` would take: the configured one, or else one that is found here.

    At the level `info` the log has a line for each session and for each turn, with numbers and never what was said.
    `--metrics` tells the same of all of them; with a token, those who ask from other machines must say it.

    \b
    Examples:
      trunkline tryll serve
      trunkline tryll serve --log-level info --log-file tryll.log
      trunkline tryll serve --sessions
      trunkline tryll serve --ws --ws-origin https://game.example
      trunkline tryll serve --listen 0.0.0.0:9100 --public --no-token
      trunkline tryll serve --models-dir ~/models --storage-root ~/game/lore
      trunkline tryll serve --agent coder --workspace ~/project --allow Read,Grep,Glob
      trunkline tryll serve --listen 127.0.0.1:0 --exit-with-stdin --json
      trunkline tryll serve --config tryll.toml --metrics 127.0.0.1:9109 --max-clients 64

    \b
    Environment:
      TRUNKLINE_TRYLL_TOKEN   what clients must say to be served; an address that others reach needs one
    """
    try:
        flags = click.get_current_context().params
        said = {"agents": list(agents), "allow": listed(allow), "ws": ws, "ws_origins": list(ws_origins)}
        found = services.settled("tryll", {**flags, **said})
        host, port = serving.address(found["listen"], public=found["public"], hint=_PUBLIC)
        if (websocket := config_addresses.beside(found["ws"], host, port)) is not None:
            serving.admit(websocket[0], public=found["public"], hint=_PUBLIC)
        token = _token(found)
        tls = _tls(services.existing(found, "tls_cert"), services.existing(found, "tls_key"))
        among = _agents(found, token)
        # How models are loaded: a mistake in that is told now, and not to the first client that wants one.
        load_configured.options_for()
        models = services.existing(found, "models_dir", directory=True)
        storage = services.existing(found, "storage_root", directory=True)
        page = figures.place(found, public=found["public"])
        redactor = opening.redactor(None, *([token] if token else []))
        log_options.begin(found["log_level"], found["log_file"], redactor, _LOGGERS)
        log_context.of_process["wire"] = "tryll"
    except (Fault, OSError) as error:
        raise click.ClickException(printable_line(explanation(error))) from error
    if found["public"] and not token:
        serving.told(_EVERYBODY)
    records = _records(found["workspace"], redactor) if found["sessions"] else None
    plan = ServePlan(
        doors=ServerDoors(host, port, websocket, tuple(found["ws_origins"]), tls),
        models_dir=models,
        storage_root=storage,
        vectors_dir=found["vectors_dir"],
        among=among,
        records=records,
        metrics=page,
        as_json=as_json,
        token=token,
        max_clients=found["max_clients"] or 0,
        max_agents=found["max_agents"] or 0,
        turns_per_minute=found["turns_per_minute"] or 0,
    )
    serving.serve(lambda stop: tryll_serving.serve(plan, stop), with_stdin=exit_with_stdin)


def _records(workspace: str | None, secrets: Redactor) -> ConversationRecords:
    """Where conversations are kept: where all sessions are, and without secrets."""
    from trunkline.agents.graph.recorded import ConversationRecords
    from trunkline.store.files import FileStore

    return ConversationRecords(FileStore(paths.sessions_dir()), os.path.abspath(workspace or "."), secrets)


def _agents(found: EffectiveConfig, token: str) -> Callable[[Models], AgentModels]:
    """Puts the agents that are offered among the models. All of them are made here, so that a wrong name is told now.

    Their own configuration says what they may do for whoever sits in front of them. Here that is somebody else, so it
    does not count.
    """
    mode: Mode = found["mode"]
    folder = opening.directory(found["workspace"])
    agents = _offered(found["agents"], folder)
    allowed = opening.tools_named(",".join(found["allow"]), *agents.values())
    secrets = opening.redactor(None, *([token] if token else []))

    def policy() -> Policy:
        return Policy(mode, allow=allowed, interactive=False)

    return lambda models: AgentModels(models, agents, policy=policy, workspace=folder, secrets=secrets)


def _offered(names: Sequence[str], folder: str) -> dict[str, Agent]:
    """The agents. If nobody told one of a model, it gets the one that is found here, as in `trunkline chat`."""
    try:
        return offered(names, folder)
    except NoModel as missing:
        from trunkline.models.discover import discover

        found = asyncio.run(discover(os.environ, provider=missing.provider, base_url=missing.base_url))
        serving.told(printable_line(f"The agents' model is `{found.settings.model}`: {found.why}."))
        return offered(names, folder, found.options)


def _token(found: EffectiveConfig) -> str:
    if found["no_token"]:
        return ""
    token: str = found["token"] or ""
    if found["public"] and not token:
        raise ConfigError(
            "An address that others reach needs a token.",
            hint="Set TRUNKLINE_TRYLL_TOKEN, and give it to clients; or use `--no-token` in a network that you trust.",
        )
    return token


def _tls(cert: str | None, key: str | None) -> ssl.SSLContext | None:
    if cert is None:
        if key is not None:
            raise ConfigError("`--tls-key` goes with `--tls-cert`.")
        return None
    import ssl

    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        made.load_cert_chain(cert, key)
    except ssl.SSLError as error:
        raise ConfigError(f"`{cert}` and its key cannot be used: {error.reason or 'no PEM'}.") from None
    return made
