"""A cluster on this machine: three exchanges, three NATS servers, one PostgreSQL, each a process of its own.

    make cluster          or: .venv/bin/python scripts/cluster.py [--directory DIR]

Prints where each node is, and how to try it. Ctrl-C stops everything; without `--directory`, nothing is left.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

# The tests start the same processes.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.cluster_process import TOKEN, cluster


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--directory", type=Path, help="keep files and logs here")
    given = parser.parse_args()
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    with ExitStack() as stack:
        directory = given.directory or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-")))
        nodes = stack.enter_context(cluster(directory.resolve()))
        for node in nodes.values():
            print(f"node {node.name}   {node.url}   {node.directory}")
        first = nodes["a"]
        print(f"\nThe token is {TOKEN}. Try:\n  cd {first.directory} && TRUNKLINE_HOME=home trunkline cluster status")
        print(
            f"  curl -H 'Authorization: Bearer {TOKEN}' {first.url}/api/cluster\nCtrl-C stops everything.", flush=True
        )
        over.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
