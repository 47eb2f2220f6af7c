"""The command line. This module decides which half of it is needed and imports no more than that.

`trunkline agent`, `acp`, `agentproc run`, `agentproc serve` and `mcp serve` are spawned by programs that wait for them:
they go the short way, without `click` and `rich`.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

from trunkline.base.signals import exit_on_signals, handled

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


def main() -> None:
    """The entry point of `trunkline` and `python -m trunkline`.

    A part of the program whose extra is not installed is told in one line: with which command it comes.
    """
    try:
        _main()
    except ModuleNotFoundError as error:
        from trunkline.base.extras import lacking

        told = lacking(error)
        if told is None:
            raise
        from trunkline.cli.wrapping import fitted

        sys.stderr.write(fitted(f"Error: {told}", sys.stderr) + "\n")
        sys.exit(EXIT_FAILED)


def _main() -> None:
    if sys.argv[1:2] == ["agent"]:
        # Before the imports, which take longer than the rest of the start: a host may change its mind at any moment.
        exit_on_signals()
        # Nothing that the imports make is garbage, and looking for it takes a sixth of the start.
        gc.disable()
        from trunkline.cli.agent import main as agent_main

        agent_main(sys.argv[2:])
    elif sys.argv[1:3] == ["agentproc", "run"]:
        exit_on_signals()
        from trunkline.cli.agentproc_run import main as run_main

        run_main(sys.argv[3:])
    elif sys.argv[1:3] == ["agentproc", "serve"]:
        exit_on_signals()
        from trunkline.cli.agentproc_serve import main as serve_main

        serve_main(sys.argv[3:])
    elif sys.argv[1:2] == ["acp"]:
        exit_on_signals()
        gc.disable()
        from trunkline.cli.acp import main as acp_main

        acp_main(sys.argv[2:])
    elif sys.argv[1:3] == ["mcp", "serve"]:
        exit_on_signals()
        from trunkline.cli.mcp_serve import main as mcp_main

        mcp_main(sys.argv[3:])
    else:
        if sys.argv[1:3] == ["runner", "once"]:
            _end_once_on_signals()
        sys.exit(_serve_people())


def _end_once_on_signals() -> None:
    """`exit_on_signals` for a program whose last line is always a JSON object."""

    def end(number: int, _: object) -> None:
        line = f'{{"actions":[],"results":[],"error":"Interrupted by {signal.Signals(number).name}"}}\n'
        try:
            os.write(1, line.encode())
        finally:
            # Nothing has begun that would have to be put in order.
            os._exit(128 + number)

    for number in handled():
        signal.signal(number, end)


def _serve_people() -> int:
    try:
        _open_streams()
        from trunkline.cli.app import run

        return run()
    except KeyboardInterrupt:
        # So early that no command has begun: there is nothing to put in order, and nothing to explain.
        return EXIT_INTERRUPTED


def _open_streams() -> None:
    """Open standard input and standard error on nothing where they are closed, and watch standard output.

    Else the next file that is opened would take the number of one, and what is meant for people would end up in it.
    """
    for fd, name, mode in ((0, "stdin", "r"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != fd:
                os.dup2(null, fd)
                os.close(null)
            setattr(sys, name, os.fdopen(fd, mode, encoding="utf-8", closefd=False))
    from trunkline.cli import standard_output

    standard_output.watch()
