"""Start-up is latency: what the spawned paths may import."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from bench._provider import Format, providing

from tests.packaging.commands import ECHO_AGENT, ECHO_TEXT, clean_environment, echo_turn

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "trunkline"
SCRIPT = Path(sys.executable).with_name("trunkline")
LISTED_IMPORT = re.compile(r"^import time: +\d+ \| +\d+ \| +(\S+)$", re.MULTILINE)


def imported_by(statement: str) -> set[str]:
    """The modules that a fresh Python imports when it runs `statement`, start-up included."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", statement],
        env=clean_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(LISTED_IMPORT.findall(done.stderr))


def foreign(modules: set[str]) -> set[str]:
    """Those that are neither ours nor the standard library's, nor there in any Python of this environment."""
    expected = imported_by("pass")
    known = {"trunkline", *sys.stdlib_module_names}
    return {name for name in modules - expected if name.partition(".")[0] not in known}


def test_the_list_of_imports_is_a_list_of_imports() -> None:
    assert {"json", "json.decoder"} <= imported_by("import json")
    assert foreign(imported_by("import yaml")) >= {"yaml"}


def test_the_command_line_imports_no_third_party_package_and_no_database() -> None:
    modules = imported_by("import trunkline.cli")
    assert "trunkline.cli" in modules
    assert not foreign(modules)
    assert "sqlite3" not in modules


def test_a_group_of_commands_is_imported_without_what_only_a_log_file_needs() -> None:
    modules = imported_by("import trunkline.cli.tryll_serve")
    assert "trunkline.cli.log_options" in modules
    assert "logging.handlers" not in modules


def test_an_echo_turn_imports_nothing_beyond_what_asyncio_json_and_argparse_bring(tmp_path: Path) -> None:
    turn = echo_turn([sys.executable, "-X", "importtime", str(SCRIPT), *ECHO_AGENT], tmp_path)
    assert turn.text.endswith(ECHO_TEXT), turn
    modules = set(LISTED_IMPORT.findall(turn.stderr))
    assert "trunkline.cli" in modules
    # The executor syncs the log: at the end of the first turn, when its answer has long been seen.
    allowed = imported_by("import __future__, argparse, asyncio, concurrent.futures.thread, gc, json")
    assert not {name for name in modules - allowed if name.partition(".")[0] != "trunkline"}


def test_the_coding_agent_is_ready_before_the_event_loop_is_loaded(tmp_path: Path) -> None:
    program = """
import sys
from trunkline.cli import agent, agent_options

def run(work):
    print(*sys.modules, file=sys.stderr)
    return 0

agent_options.run = run
agent.main(["--json-stream"])
"""
    environment = clean_environment() | {"ANTHROPIC_API_KEY": "sk-x", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith('{"type":"ready"')
    loaded = set(done.stderr.split())
    assert "trunkline.agents.coder.settings" in loaded
    assert not {"asyncio", "httpx", "inspect", "socket", "ssl", "subprocess"} & loaded


@pytest.mark.parametrize("form", ["anthropic", "openai"])
def test_a_model_s_first_word_needs_no_library_but_the_one_that_knows_http_1(form: Format, tmp_path: Path) -> None:
    with providing(form) as provider:
        flags = ["--provider", form, "--model", "m", "--base-url", provider.url]
        turn = echo_turn([sys.executable, "-X", "importtime", str(SCRIPT), "agent", "--json-stream", *flags], tmp_path)
    assert turn.text == "w w ", turn
    packages = {name.partition(".")[0] for name in foreign(set(LISTED_IMPORT.findall(turn.stderr)))}
    # The standard library's `copy` looks for the other one in every Python.
    assert packages - {"org"} == {"h11"}


def test_the_mock_of_conversations_brings_nothing_that_only_graphs_need() -> None:
    modules = imported_by("import trunkline.models.mock")
    assert "trunkline.models.mock" in modules
    assert not {name for name in modules if name.startswith(("trunkline.core.graph", "trunkline.models.engines"))}


def test_every_package_that_the_lowest_layers_import_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    declared = {re.split(r"[^\w.-]", name, maxsplit=1)[0].lower().replace("_", "-") for name in wanted}
    provided = packages_distributions()
    undeclared = {
        (name, str(path.relative_to(SOURCES)))
        # Above them, extras bring packages along that are theirs to name.
        for layer in ("base", "core", "store", "wires")
        for path in (SOURCES / layer).rglob("*.py")
        for name in _imports(ast.parse(path.read_text(encoding="utf-8")))
        if name not in sys.stdlib_module_names and name != "trunkline"
        if not declared & {each.lower().replace("_", "-") for each in provided.get(name, [name])}
    }
    assert sorted(undeclared) == []


def _imports(tree: ast.AST) -> Iterator[str]:
    """The packages that a module imports, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            yield node.module.partition(".")[0]


def test_a_users_own_sessions_cost_no_agent_and_no_third_party_package_before_the_first_is_opened() -> None:
    modules = imported_by("import trunkline.cli.own_sessions")
    assert not foreign(modules)
    assert not modules & {"trunkline.core.session", "trunkline.agents.registry", "trunkline.store.files", "sqlite3"}
