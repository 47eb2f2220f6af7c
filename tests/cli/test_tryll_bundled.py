"""What the server of a bundle is told."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli.tryll_bundled import PROGRAM, command_line, environment


def test_only_what_the_environment_says_of_the_server_itself_counts() -> None:
    said = {
        "PATH": "/bin", "TRUNKLINE_HOME": "/mine", "TRUNKLINE_CACHE": "/mine/cache", "TRUNKLINE_CONFIG": "/mine/c.toml",
        "TRUNKLINE_AGENT": "coder", "TRUNKLINE_TRYLL_TOKEN": "s3cret", "TRUNKLINE_LOG_FORMAT": "json",
    }  # fmt: skip
    assert environment("/game/server", said) == {
        "PATH": "/bin", "TRUNKLINE_TRYLL_TOKEN": "s3cret", "TRUNKLINE_LOG_FORMAT": "json",
        "TRUNKLINE_HOME": "/game/server/state", "TRUNKLINE_CACHE": "/game/server",
        "TRUNKLINE_CONFIG": "/game/server/tryll.toml", "TRUNKLINE_TRYLL_VECTORS_DIR": "/game/server/state/vectors",
    }  # fmt: skip


def test_what_it_writes_goes_where_the_game_wants_it() -> None:
    found = environment("/game/server", {"TRUNKLINE_BUNDLE_STATE": "/saves"})
    assert (found["TRUNKLINE_HOME"], found["TRUNKLINE_TRYLL_VECTORS_DIR"]) == ("/saves", "/saves/vectors")
    assert found["TRUNKLINE_CACHE"] == "/game/server"


def test_its_flags_are_those_of_serve() -> None:
    assert command_line(["--json"]) == ["trunkline", "tryll", "serve", "--json"]


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["bogus"], 2), (["--no-such-flag"], 2)])
def test_what_it_says_of_itself_names_the_program_that_is_in_its_folder(arguments: list[str], code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trunkline.cli.tryll_bundled", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == code
    said = done.stdout + done.stderr
    assert f"Usage: {PROGRAM} [OPTIONS]" in said
    assert "trunkline tryll" not in said


def test_what_it_lacks_is_not_to_be_installed_into_it() -> None:
    """A game's player has no package index, and what a bundle has was chosen when it was made."""
    script = (
        "import trunkline.cli; from trunkline.base.extras import adding; from trunkline.cli import tryll_bundled\n"
        "trunkline.cli.main = lambda: print(adding('local'))\n"
        "tryll_bundled.main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.stdout == "Make the bundle again with the extra `local` installed.\n", done.stderr
