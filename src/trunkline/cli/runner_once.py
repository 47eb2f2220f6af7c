"""`trunkline runner once`: one cycle of one agent.

The last line of standard output is always one JSON object:

    {"actions": [...], "results": [...], "error": null or a text}

Exit codes: 0 if and only if `error` is null; 1 when the cycle failed or could not begin, 2 for wrong usage, 130 after
Ctrl-C, 143 after SIGTERM. Whatever libraries print goes to standard error.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from trunkline.base import jsontext, paths
from trunkline.base.claim import claim
from trunkline.base.printable import printable
from trunkline.base.regular import open_to_others
from trunkline.base.signals import handled
from trunkline.base.writing import write_all
from trunkline.cli import services
from trunkline.cli.standard_output import unwritten
from trunkline.core import configuration
from trunkline.core.faults import ConfigError, Fault

if TYPE_CHECKING:
    from trunkline.runner.config import RunnerConfig
    from trunkline.runner.cycle import CycleReport, Runner
    from trunkline.runner.holding import Hold

EXIT_FAILED = 1
_SIGNAL_EXIT = 128

#: Far larger than any configuration with its prompts.
MAX_CONFIG = 4 * 1024 * 1024
#: How long a cycle that was told to end may put its things in order, and how long everything may take to let go.
ORDER_SECONDS = 3.0
CLOSE_SECONDS = 5.0

#: Those that were ignored when we were started stay so.
_SIGNALS = handled()


class _Told(BaseException):
    """A signal says to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _OnceCommand(click.Command):
    """Also after wrong usage, the last line is the JSON object."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            _write(1, _line(error.format_message()))
            raise


@click.command("once", cls=_OnceCommand, short_help="Run one cycle and print the result.")
@click.option("--config", "path", metavar="FILE", help="The configuration, as JSON; `-`: standard input.")
@services.agent_option
@services.option("runner", "db", metavar="URL", help="`postgresql://...` that launchers share their agents in.")
def command(path: str | None, agent: str | None, db: str | None) -> None:
    """Run one cycle of one agent: read its context, ask its brain, carry out the decision.

    The last line of standard output is a JSON object with `actions`, `results` and `error`.

    \b
    Examples:
      trunkline runner once --config agent.json
      trunkline runner once --config - < agent.json
      trunkline runner once --agent ada
    """
    if (path is None) == (agent is None):
        told = "Say `--config FILE` or `--agent NAME`."
        _write(1, _line(told))
        raise click.UsageError(told)
    writing = 1
    try:
        for number in _SIGNALS:
            signal.signal(number, _raise)
        given, file = _given(path, agent)
        db = configuration.settled("runner", {"db": db})["db"]
        # From here on nothing but our line is written there.
        writing = claim(needs_input=False)[1]
        sys.exit(_run(_once(given, file, db, writing)))
    except _Told as told:
        _end(writing, f"Interrupted by {signal.Signals(told.number).name}", _SIGNAL_EXIT + told.number)
    except Fault as error:
        _end(writing, str(error), EXIT_FAILED)
    except Exception as error:  # whoever reads the last line gets one, also from a defect of ours
        _end(writing, f"{type(error).__name__}: {error}", EXIT_FAILED)


def _raise(number: int, _: FrameType | None) -> NoReturn:
    raise _Told(number)


def _given(path: str | None, agent: str | None) -> tuple[Any, str]:
    """A configuration, and the file that it stands in."""
    if path is not None:
        return _parsed(_read(path)), path
    return services.configured_agent(str(agent))


async def _once(given: Any, path: str, db: str | None, writing: int) -> int:
    from trunkline.runner.config import normalise
    from trunkline.runner.opening import holding

    config = normalise(given)
    if path != "-" and config.secret_parts() and open_to_others(path):
        _tell(f"Others can read the secrets in `{path}`: `chmod 600` keeps them out.")
    async with holding(config.agent_id, home=paths.state_dir(), db=db) as hold:
        return await _held(config, hold, writing)


async def _held(config: RunnerConfig, hold: Hold, writing: int) -> int:
    from trunkline.runner.opening import open_runner

    runner = open_runner(config, home=paths.state_dir(), hold=hold)
    try:
        came, report = await _cycle(runner)
        if came is not None:
            report = report.replace(error=f"Interrupted by {signal.Signals(came).name}")
        _write(writing, jsontext.dumps(report.line()) + b"\n")
        if report.error is not None:
            _complain(report.error)
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await runner.close()
    if came is not None:
        return _SIGNAL_EXIT + came
    return 0 if report.error is None else EXIT_FAILED


async def _cycle(runner: Runner) -> tuple[int | None, CycleReport]:
    """Run the cycle to its end, or to the first signal; gives that, too."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[int] = loop.create_future()

    def stop(number: int) -> None:
        if not told.done():
            told.set_result(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    task = loop.create_task(runner.cycle(), name="the cycle")
    either: set[asyncio.Future[Any]] = {task, told}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        return None, task.result()
    task.cancel()
    await asyncio.wait({task}, timeout=ORDER_SECONDS)
    return told.result(), runner.progress


async def _threads_ended() -> None:
    """Wait for the threads of the loop, but not for ever. Nothing is cancelled: in Python 3.11 that waits for them."""
    ending = asyncio.create_task(asyncio.get_running_loop().shutdown_default_executor(), name="end the threads")
    await asyncio.wait({ending}, timeout=CLOSE_SECONDS)


def _run(work: Coroutine[Any, Any, int]) -> int:
    """To its exit code, which nothing changes any more: neither a signal, nor a thread that does not end."""
    loop = asyncio.new_event_loop()
    try:
        code = loop.run_until_complete(work)
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        loop.run_until_complete(_threads_ended())
        if any(not task.done() for task in asyncio.all_tasks(loop)):
            os._exit(code)
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        loop.close()
    return code


def _read(path: str) -> bytes:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_CONFIG + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MAX_CONFIG + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"The configuration `{path}` cannot be read: {reason}.") from None
    if len(data) > MAX_CONFIG:
        raise ConfigError(f"The configuration `{path}` has more than {MAX_CONFIG} bytes.")
    return data


def _parsed(data: bytes) -> Any:
    try:
        return jsontext.loads(data)
    except ValueError as error:
        raise ConfigError(f"The configuration is not valid JSON: {error}.") from None


def _end(writing: int, error: str, code: int) -> NoReturn:
    _write(writing, _line(error))
    _complain(error)
    sys.exit(code)


def _line(error: str) -> bytes:
    return jsontext.dumps({"actions": [], "results": [], "error": error}) + b"\n"


def _write(fd: int, data: bytes) -> None:
    try:
        write_all(fd, data)
    except OSError as error:
        # Nobody reads it, or there is no room: the exit code still says what came of the cycle.
        _complain(unwritten(error))


def _complain(text: str) -> None:
    _tell(f"Error: {text}")


def _tell(text: str) -> None:
    try:
        click.echo(printable(text), err=True)
    except OSError:
        return
