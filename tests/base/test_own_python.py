"""Programs of ours, started in a directory that somebody else filled: nothing of it is run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.unmeasured import unmeasured
from trunkline.agents import registry
from trunkline.agents.external.jsonstream import JsonStreamAgent
from trunkline.base.own_python import module_command, safe_python

SOURCES = Path(__file__).parents[2] / "src" / "trunkline"

#: What lies about in the repository: ourselves, and what we import late.
TRAPS = ("trunkline", "yaml", "click", "httpx", "mcp", "rich", "msgspec", "asyncio", "json", "pypdf", "sitecustomize")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    here = tmp_path / "repository"
    here.mkdir()
    for name in TRAPS:
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'pwned')!r}, 'a').write({name!r})\n")
    for name in ("trunkline", "codex"):
        program = here / name
        program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'pwned'}\n")
        program.chmod(0o755)
    return here


def run(repository: Path, *command: str, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess[str]:
    environ = {**unmeasured(), "PATH": path, "TRUNKLINE_PROVIDER": "mock"}
    return subprocess.run(
        command, cwd=repository, env=environ, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )


@pytest.mark.process
@pytest.mark.parametrize(
    "arguments",
    [
        ("agentproc", "hub", "doctor", "trunkline", "codex"),
        ("agentproc", "run", "--profile", "trunkline", "--message", "hello"),
        ("chat", "agentproc:trunkline", "--quiet", "-p", "hello"),
    ],
)
# An empty folder of the path, and a dot, are the current directory.
@pytest.mark.parametrize("path", ["/usr/bin:/bin", ":/usr/bin:/bin:", ".:/usr/bin:/bin"])
def test_a_trunkline_in_the_current_directory_is_not_run(
    repository: Path, tmp_path: Path, arguments: tuple[str, ...], path: str
) -> None:
    done = run(repository, *module_command("trunkline", arguments), path=path)
    assert not (tmp_path / "pwned").exists(), done.stderr
    if "codex" not in arguments:
        assert done.returncode == 0, done.stderr


@pytest.mark.process
def test_what_is_imported_late_is_not_looked_for_in_the_current_directory(repository: Path, tmp_path: Path) -> None:
    """Whoever types `python -m trunkline` has Python look there first; from our first line on it does not."""
    (repository / "trunkline.py").unlink()
    for name in ("asyncio", "json", "sitecustomize"):
        (repository / f"{name}.py").unlink()
    done = run(repository, sys.executable, "-m", "trunkline", "agentproc", "hub", "list")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "pwned").exists()


def test_every_start_of_our_python_keeps_the_current_directory_out() -> None:
    """`-P` and `-I` do. A new place that starts a module uses `module_command`."""
    starts = {
        str(path.relative_to(SOURCES)): re.findall(r"sys\.executable,[^)\]]*", text)
        for path in SOURCES.rglob("*.py")
        if "sys.executable," in (text := path.read_text(encoding="utf-8"))
    }
    assert starts.keys() == {"base/own_python.py", "base/process_guard.py"}
    assert all("-I" in start or "*_FLAGS" in start for found in starts.values() for start in found)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python3 -m agent", "python3 -P -m agent"),
        ("/usr/bin/python3.12 -u -X utf8 -m agent -m x", "/usr/bin/python3.12 -P -u -X utf8 -m agent -m x"),
        ("python -um agent", "python -P -um agent"),
        ("python -c code", "python -P -c code"),
        ("env A=b -i python3 -Xutf8 -m agent", "env A=b -i python3 -P -Xutf8 -m agent"),
        ("env -u A -C /tmp B=c python3 -m agent", "env -u A -C /tmp B=c python3 -P -m agent"),
        ("env -u python3", "env -u python3"),
        ("python3 -P -m agent", "python3 -P -m agent"),
        ("python3 -I -m agent", "python3 -I -m agent"),
        ("python3 agent.py -m x", "python3 agent.py -m x"),
        ("python3 -X -m agent.py", "python3 -X -m agent.py"),
        ("agent python3 -m x", "agent python3 -m x"),
        ("nice -n 5 python3 -m agent", "nice -n 5 python3 -P -m agent"),
        ("timeout -k 1 60 env A=b python3 -m agent", "timeout -k 1 60 env A=b python3 -P -m agent"),
        ("nohup stdbuf -oL python3 -c code", "nohup stdbuf -oL python3 -P -c code"),
        ("timeout 60", "timeout 60"),
        ("python3 -", "python3 -P -"),
        ("python3 -u", "python3 -P -u"),
        ("uv run python3 -m agent", "uv run python3 -m agent"),
    ],
)
def test_a_python_of_somebody_takes_no_modules_from_where_it_runs(command: str, expected: str) -> None:
    assert safe_python(command.split()) == tuple(expected.split())


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["env", "-S", "A=b python3 -m agent", "x y"], ["env", "A=b", "python3", "-P", "-m", "agent", "x y"]),
        (["env", "-Spython3 -m 'a b'"], ["env", "python3", "-P", "-m", "a b"]),
        (["env", "--split-string=python3 -I -m agent"], ["env", "python3", "-I", "-m", "agent"]),
        # What only `env` itself can read.
        (["env", "-S", "python3 -m ${AGENT}"], ["env", "-S", "python3 -m ${AGENT}"]),
        (["env", "-S", "python3 'open"], ["env", "-S", "python3 'open"]),
        (["env", "-S"], ["env", "-S"]),
    ],
)
def test_words_that_env_takes_apart_are_looked_at(command: list[str], expected: list[str]) -> None:
    assert safe_python(command) == tuple(expected)


@pytest.mark.process
def test_a_module_that_a_profile_names_is_not_taken_from_a_repository(repository: Path, tmp_path: Path) -> None:
    (repository / "agent.py").write_text((repository / "json.py").read_text())
    profile = tmp_path / "mine.yaml"
    profile.write_text(f"command: {sys.executable} -m agent\n")
    ours = module_command("trunkline", ["agentproc", "run", "--message", "hi", "--profile", str(profile)])
    for where in ((), ("--cwd", str(repository))):
        done = run(repository, *ours, *where)
        assert "No module named agent" in done.stderr
    profile.write_text(f"command: {sys.executable} -m agent\ncwd: repository\n")
    assert not (tmp_path / "pwned").exists()
    # Who names the directory means what lies in it.
    run(repository, *ours)
    assert (tmp_path / "pwned").read_text() == "json"


def test_a_program_that_is_named_on_a_command_line_takes_none_either() -> None:
    agent = registry.make("jsonstream:python3 -m agent --json-stream", {"workspace": "."})
    assert isinstance(agent, JsonStreamAgent)
    assert agent._argv[:4] == ("python3", "-P", "-m", "agent")
