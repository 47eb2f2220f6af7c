"""`trunkline up`: run everything there is, on embedded defaults. Ctrl-C stops all.

`trunkline up --config FILE` runs an exchange, and only what the file names; SIGHUP takes the file up anew.
`trunkline up --tour` shows a conversation over the JSON stream instead, line by line, and ends.

Exit codes: 0 when the conversation was shown, or when Ctrl-C has stopped all that ran, as it should; 1 when something
failed; 130 after Ctrl-C in the conversation, or when something did not stop; 143 after SIGTERM.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence

import click

from trunkline.base.environ_secrets import hide_process
from trunkline.base.extras import adding
from trunkline.base.programs import PROGRAM, own_command_here
from trunkline.base.signals import handled
from trunkline.cli import agent_options, log_format, log_options, opening, table
from trunkline.cli.wrapping import fitted
from trunkline.core.faults import ConfigError, Fault
from trunkline.demo.showcase import play
from trunkline.demo.showcase_view import JsonView, NextStep, PlainView, RichView
from trunkline.exchange.alone import alone, up_home
from trunkline.exchange.process import ExchangeProcess
from trunkline.exchange.service import SENTENCES, Service
from trunkline.exchange.supervisor import Pace, State, Supervisor

EXIT_FAILED = 1
_SIGNAL_EXIT = 128
#: Between the scenes, on a terminal: somebody reads along.
PAUSE_SECONDS = 0.7

#: What is told of services also after a signal.
_AT_THE_END: tuple[State, ...] = ("stopped", "given up", "stuck")

#: The packages of the extra `up` that nothing runs without.
_NEEDED = (
    "eth", "eth_abi", "eth_account", "jinja2", "json_repair", "numpy", "regex", "starlette", "uvicorn", "websockets",
    "xllamacpp",
)  # fmt: skip

Main = Callable[[asyncio.Event], Awaitable[int]]


TRIALS = (
    NextStep(
        "a coding agent in this terminal, with your key, your Ollama or a model that was pulled", "trunkline chat"
    ),
    NextStep(
        "an agent that echoes, as a host would spawn it",
        """echo '{"type":"message","msg_id":"m1","input":"Anybody?"}' | trunkline agent --json-stream --agent echo""",
    ),
    NextStep(
        "the agent of this conversation, with you as its host: type a line such as the ones above",
        "trunkline agent --json-stream --agent scripted --script tour",
    ),
    NextStep(
        "the protocol's requirements, checked one by one against that agent, or against yours",
        "trunkline conform jsonstream -- trunkline agent --json-stream --agent scripted --script conformance",
    ),
    NextStep("every message of the protocol, as JSON Schema", "trunkline schema jsonstream"),
    NextStep("a network of agents that lives: a chain, pages in your browser, and an agent at work", "trunkline up"),
    NextStep("the chat bridge, with this terminal as its chat", "trunkline bridge run terminal --agent echo"),
    NextStep(
        "graph agents on local models, for games and apps; `trunkline tryll chat` talks to them",
        "trunkline tryll serve",
    ),
    NextStep("the command-line agents that it could run, and which of them are here", "trunkline agentproc hub doctor"),
)


@click.command("up")
@click.option(
    "--config", metavar="FILE", type=click.Path(), help="Run the exchange that FILE describes, and nothing else."
)
@click.option("--tour", is_flag=True, help="Show a conversation between an agent and its host instead, and end.")
@click.option("--json", "as_json", is_flag=True, help="With `--tour`: print the conversation as JSON lines.")
@log_options.format_option
def command(config: str | None, tour: bool, as_json: bool) -> None:
    """Run a demonstration of everything: a live network with pages for your browser, and local models.

    A chain in this process with a contract on it, an agent social network, and one scripted agent that tests the
    contract, posts what it finds and asks you a question. Beside them a Tryll server with graph agents on local models;
    a model is fetched when somebody first uses it; and a page where you talk to one with your browser's microphone.
    Ctrl-C stops all and leaves nothing running.

    With `--config` it is an exchange instead: the agents, wires and people that FILE names. `trunkline init` writes
    such a file. A change in it is taken up while the exchange runs.

    \b
    Examples:
      trunkline up
      trunkline up --config trunkline.toml
      trunkline up --tour
    """
    if as_json and not tour:
        raise click.UsageError("`--json` goes with `--tour`.")
    if config is not None and tour:
        raise click.UsageError("`--config` and `--tour` do not go together.")
    if config is not None:
        sys.exit(_exchange(config))
    if tour:
        sys.exit(_run(lambda stop: _showcase(as_json, stop)))
    sys.exit(_run(_everything, ends_by=signal.SIGINT))


def _exchange(path: str) -> int:
    """Run an exchange until a signal comes. A terminal that hangs up ends it; any other SIGHUP is for its file."""
    # Before anything is started: tokens of wires and people are in the environment.
    hide_process()
    redactor = opening.redactor()
    agent_options.log_to_stderr(redactor)
    process = ExchangeProcess(path, lambda text: _tell(f"exchange: {text}"), learn=redactor.learn)
    at_a_terminal = os.isatty(0)

    async def main(stop: asyncio.Event) -> int:
        def on_hangup() -> None:
            if at_a_terminal and not os.isatty(0):
                stop.set()
            else:
                process.ask_to_reload()

        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, on_hangup)
        try:
            await process.run(stop, lambda: _report(process, "reachable", ""))
        except Fault as fault:
            _complain(fault)
            return EXIT_FAILED
        return 0

    return _run(main, ends_by=signal.SIGINT)


async def _showcase(as_json: bool, stop: asyncio.Event) -> int:
    view, pause = _view(as_json)
    playing = asyncio.create_task(play(view, pause=pause), name="showcase")
    stopping = asyncio.create_task(stop.wait(), name="wait for stop")
    try:
        await asyncio.wait({playing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        playing.cancel()
        stopping.cancel()
        await asyncio.wait({playing, stopping})
    if stop.is_set():
        return EXIT_FAILED
    try:
        playing.result()
    except Fault as fault:
        _complain(fault)
        return EXIT_FAILED
    program = own_command_here()
    view.finish(tuple(trial.replace(command=trial.command.replace("trunkline ", f"{program} ")) for trial in TRIALS))
    return 0


def _view(as_json: bool) -> tuple[JsonView | PlainView | RichView, float]:
    """How it looks, and how long the pauses are."""
    if as_json:
        return JsonView(_write), 0.0
    if not sys.stdout.isatty():
        return PlainView(_write), 0.0
    from rich.console import Console

    return RichView(Console(highlight=False)), PAUSE_SECONDS


async def _everything(stop: asyncio.Event) -> int:
    try:
        found = services()
    except Fault as fault:
        _complain(fault)
        return EXIT_FAILED
    try:
        with alone():
            return await _supervise(found, stop)
    except Fault as fault:
        _complain(fault)
        return EXIT_FAILED


async def _supervise(found: Sequence[Service], stop: asyncio.Event, pace: Pace | None = None) -> int:
    _tell("Press Ctrl-C to stop all.")
    missing = {service.name for service in found}

    def report(service: Service, state: State, detail: str) -> None:
        if stop.is_set() and state not in _AT_THE_END:
            # Whoever has pressed Ctrl-C does not want to hear what begins.
            return
        _report(service, state, detail)
        if state == "reachable" and missing:
            missing.discard(service.name)
            if not missing:
                _tell(_overview(found).rstrip("\n"))

    return 0 if await Supervisor(found, report, pace).run(stop) else EXIT_FAILED


def _overview(found: Sequence[Service]) -> str:
    """What is where, once all of it is there."""
    width = max(len(service.where) for service in found)
    longest = width + max(len(service.about) for service in found) + 4
    room = table.room()
    if room is None or longest <= room:
        lines = [f"  {service.where:<{width}}  {service.about}\n" for service in found]
    else:
        lines = [f"  {service.where}\n    {service.about}\n" for service in found]
    # The console leads to all the others.
    links = [service.trial.partition(" ")[2] for service in found if isinstance(service, ExchangeProcess)]
    begin = f"\nStart here, in a browser:\n  {links[0]}\n" if links else ""
    return f"\nAll is up. Ctrl-C stops it.\n{''.join(lines)}{begin}"


def _report(service: Service, state: State, detail: str) -> None:
    if state == "reachable" and log_format.is_json():
        detail = service.where
    elif state == "reachable":
        command, space, rest = service.trial.partition(" ")
        trial = f"    try: {own_command_here() if command == PROGRAM else command}{space}{rest}"
        # A command is copied, and stays in one piece.
        detail = f"{service.where}\n{fitted(trial, sys.stdout) if command in SENTENCES else trial}"
    _tell(f"{service.name}: {state}{'  ' + detail if detail else ''}")


def _complain(fault: Fault) -> None:
    log_options.echo(fitted(f"Error: {fault}", sys.stderr))


def _tell(text: str) -> None:
    """Say what becomes of the services: on standard output, where people look; with a log for programs, in that."""
    if log_format.is_json():
        log_format.tell(text)
    else:
        _write(f"{text}\n")


def _write(text: str) -> None:
    click.echo(text, nl=False)


def _run(main: Main, ends_by: int | None = None) -> int:
    """Run until it ends or a signal comes: the first one asks, a second one insists.

    `ends_by` is the signal that it is meant to end by: what stops properly then has done what it should.
    """
    received: list[int] = []

    async def until_signal() -> int:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        task = asyncio.current_task()

        def on_signal(number: int) -> None:
            received.append(number)
            stop.set()
            if len(received) > 1 and task is not None:
                task.cancel()

        for number in handled():
            loop.add_signal_handler(number, on_signal, number)
        try:
            code = await main(stop)
        except asyncio.CancelledError:
            code = EXIT_FAILED
        proper = received == [ends_by] and code == 0 and asyncio.all_tasks() == {task}
        code = _SIGNAL_EXIT + received[0] if received and not proper else code
        if asyncio.all_tasks() != {task}:
            # Services that ignore even their cancellation would keep the loop, and us, here for ever.
            sys.stdout.flush()
            os._exit(code)
        return code

    # All is closed by then. To look for cycles among all objects of others' packages would take longer than that did.
    atexit.register(gc.freeze)
    return asyncio.run(until_signal())


def services() -> tuple[Service, ...]:
    """All that `up` runs, on embedded defaults: the demonstration's services, and those of the exchange.

    Raises:
        ConfigError: what they need is not installed.
    """
    from importlib.util import find_spec

    missing = [package for package in _NEEDED if find_spec(package) is None]
    if missing:
        raise ConfigError(
            f"What it runs needs packages that are not installed: {', '.join(missing)}.", hint=adding("up")
        )
    from trunkline.demo.services import AgentService, ChainService, NetworkService
    from trunkline.demo.world import World
    from trunkline.exchange import first_file
    from trunkline.exchange.talk.service import TalkService
    from trunkline.exchange.tryll_service import TryllService

    world, tryll = World(up_home()), TryllService()
    others = (ChainService(world), NetworkService(world), AgentService(world), tryll, TalkService(tryll))
    path = first_file.demonstration_path(up_home())
    # What is wrong with a file that is being edited is told where the exchange was started, as everything else of it.
    exchange = ExchangeProcess(
        path, lambda text: _tell(f"exchange: {text}"), write=first_file.demonstrate, any_port=True, beside=others
    )
    return (*others, exchange)
