"""Completion of words with a colon, in a real bash and as it asks for them."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import CompletionItem

from tests.cli.terminal.emulator import Emulator
from trunkline.cli.bash_completion import ColonBashComplete

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash"),
]

PATIENCE_SECONDS = 25.0
TAB, CTRL_U = "\t", "\x15"


class Bash:
    """A shell at a terminal, with completion as the help says."""

    def __init__(self) -> None:
        self._master, slave = pty.openpty()
        self.terminal = Emulator(200, 50)
        environ = {**os.environ, "TERM": "dumb", "PS1": "> ", "PATH": f"{Path(sys.executable).parent}:{os.defpath}"}
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environ,
            start_new_session=True,
        )
        os.close(slave)
        self.type(
            'bind "set enable-bracketed-paste off"; eval "$(_TRUNKLINE_COMPLETE=bash_source trunkline)"; echo READY\n'
        )
        self.sees("\nREADY")

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def sees(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in self.terminal.screen:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} was never seen:\n{self.terminal.screen}"
            if select.select([self._master], [], [], left)[0]:
                self.terminal.feed(os.read(self._master, 65536).decode(errors="replace"))

    def close(self) -> None:
        os.close(self._master)
        self.process.kill()
        self.process.wait()


@pytest.fixture
def bash() -> Iterator[Bash]:
    shell = Bash()
    yield shell
    shell.close()


def test_what_stands_behind_a_colon_is_completed(bash: Bash) -> None:
    for typed, whole in (
        ("trunkline chat graph:sm", "trunkline chat graph:smith "),
        ("trunkline chat agentproc:claude", "trunkline chat agentproc:claude-code "),
        ("trunkline chat ech", "trunkline chat echo "),
        ("trunkline sess", "trunkline sessions "),
    ):
        bash.type(f"{typed}{TAB}|")
        bash.sees(f"> {whole}|")
        bash.type(CTRL_U)
    # All that can follow the colon, without what stands in front of it.
    bash.type(f"trunkline chat graph:{TAB}{TAB}")
    bash.sees("npc    smith")


@pytest.mark.parametrize(
    ("typed", "breaks", "offered"),
    [
        ("trunkline chat graph:sm", " :", "smith"),
        ("trunkline chat graph:sm", " ", "graph:smith"),
        # In quotes bash breaks no words.
        ('trunkline chat "graph:sm', " :", "graph:smith"),
        # Bash counts bytes.
        ("trunkline -p ää chat graph:sm", " :", "smith"),
    ],
)
def test_bash_is_offered_what_it_will_replace(
    monkeypatch: pytest.MonkeyPatch, typed: str, breaks: str, offered: str
) -> None:
    monkeypatch.setenv("COMP_LINE", f"{typed} and the rest")
    monkeypatch.setenv("COMP_POINT", str(len(typed.encode())))
    monkeypatch.setenv("COMP_BREAKS", breaks)
    complete = ColonBashComplete(click.Command("trunkline"), {}, "trunkline", "_TRUNKLINE_COMPLETE")
    words, incomplete = complete.get_completion_args()
    assert (words[-1], incomplete) == ("chat", "graph:sm")
    assert complete.format_completion(CompletionItem("graph:smith")) == f"plain,{offered}"
