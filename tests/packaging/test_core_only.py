"""Without extras no command ends in a traceback: it works, or says in one line what adds the rest."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import click
import pytest

from tests.packaging.commands import clean_environment
from tests.support.core_only import EVERY_MODULE, core
from trunkline.base import extras
from trunkline.base.extras import lacking, modules
from trunkline.cli.app import app

ROOT = Path(__file__).parents[2]

#: How commands are tried: far enough to need all that they import. `{}` is a folder of its own. Others are tried
#: without arguments.
COMMANDS: dict[str, str] = {
    "agent": "--json-stream --agent echo",
    "agentproc check": "claude-code",
    "agentproc hub doctor": "",
    "agentproc hub list": "",
    "agentproc hub show": "claude-code",
    "agentproc run": "--profile {}/none.yaml --message hello",
    "agentproc serve": "echo",
    "approvals approve": "x",
    "approvals deny": "x",
    "approvals list": "",
    "approvals show": "x",
    "bridge check": "terminal telegram matrix",
    "bridge outbox": "",
    "bridge run": "matrix --agent echo",
    "chat": "--provider mock -p hello",
    "conform agentproc": "--only none -- true",
    "conform jsonstream": "--only none -- true",
    "conform sns": "http://127.0.0.1:1",
    "conform tryll": "127.0.0.1:1",
    "doctor": "--config {}/exchange.toml",
    "explain": "x",
    "graph check": "npc",
    "graph draw": "npc",
    "graph run": "npc -m hello",
    "init": "{}/trunkline.toml",
    "ledger": "",
    "models list": "",
    "models path": "smollm2-135m",
    "models pull": "silero-vad",
    "models rm": "smollm2-135m",
    "network agent list": "--key-file {}/key --url http://127.0.0.1:1",
    "network agent secrets list": "ada --password-file {}/key --key-file {}/key --url http://127.0.0.1:1",
    "network agent secrets set": "ada llmApiKey --file {}/key --password-file {}/key --key-file {}/key",
    "network agent start": "ada --no-secrets --secret-file {}/key --key-file {}/key --url http://127.0.0.1:1",
    "network agent unregister": "ada --yes --key-file {}/key --url http://127.0.0.1:1",
    "network agent update": "ada --handle grace --key-file {}/key --url http://127.0.0.1:1",
    "network community ban": "c ada --key-file {}/key --url http://127.0.0.1:1",
    "network community close": "c --yes --key-file {}/key --url http://127.0.0.1:1",
    "network community list": "--key-file {}/key --url http://127.0.0.1:1",
    "network community show": "c --key-file {}/key --url http://127.0.0.1:1",
    "network community unban": "c ada --key-file {}/key --url http://127.0.0.1:1",
    "network community update": "c --description x --key-file {}/key --url http://127.0.0.1:1",
    "network key keep": "--key-file {}/key",
    "network key show": "--key-file {}/key",
    "network owner draft-issue": "c --key-file {}/key --url http://127.0.0.1:1",
    "network owner reports": "--key-file {}/key --url http://127.0.0.1:1",
    "network owner requests": "--key-file {}/key --url http://127.0.0.1:1",
    "network register agent": "--community c --handle h --key-file {}/key --url http://127.0.0.1:1",
    "network serve": "--listen 127.0.0.1:0 --db sqlite:///{}/network.db",
    "openai serve": "--agent echo --listen 127.0.0.1:0",
    "record": "x",
    "replay": "{}/recorded.yaml",
    "runner approvals": "",
    "runner approve": "x",
    "runner deny": "x",
    "runner once": "--config {}/none.json",
    "runner serve": "--secret 0123456789abcdef0123456789abcdef --listen 127.0.0.1:0",
    "runner start": "",
    "runner status": "",
    "runner stop": "",
    "schema": "sns",
    "sessions export": "none",
    "sessions fork": "none",
    "sessions handover": "none --to echo",
    "sessions list": "",
    "sessions rm": "none",
    "sessions show": "none",
    "shim": "{}/bin",
    "tryll chat": "127.0.0.1:1 --graph npc -p hello",
    # A catalog that cannot be used ends it when all is loaded.
    "tryll serve": "--listen 127.0.0.1:0 --models-dir {}",
    "tryll talk": "127.0.0.1:1 --in {}/none.wav",
    "up": "",
    "usage": "",
}
#: A second way to try one, and how it is called here.
MORE = {"up with a file": "up --config {}/exchange.toml"}
#: Those of the exchange that do what they are asked, or tell that none runs: no extra is needed for either.
EXCHANGE = {
    "init": "Wrote",
    "replay": "You said: hi",
    "doctor": "packages",
    **dict.fromkeys(
        ("approvals list", "approvals show", "usage", "explain", "record", "sessions handover"),
        "No exchange is running here",
    ),
    "sessions fork": "Session 'none' not found",
}
#: Those that are of no use without what an extra brings.
LACKING = {
    "graph check": "graph", "graph draw": "graph", "graph run": "graph", "tryll chat": "graph", "schema": "network",
    "network serve": "network", "runner serve": "runner", "conform sns": "network", "models pull": "voice", "up": "up",
    "up with a file": "exchange", "openai serve": "exchange",
    "network key keep": "network", "network owner requests": "network", "network register agent": "network",
    "network agent secrets list": "network", "network agent secrets set": "network", "network agent list": "network",
    "network community list": "network", "network community show": "network", "network owner draft-issue": "network",
    "network owner reports": "network", "network agent start": "network",
    "network agent unregister": "network", "network agent update": "network", "network community ban": "network",
    "network community close": "network", "network community unban": "network", "network community update": "network",
}  # fmt: skip


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    """All commands that are no groups."""
    if not isinstance(command, click.Group):
        yield " ".join(path)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, (*path, name))


def test_there_are_all_the_commands_that_are_tried() -> None:
    assert sorted(COMMANDS.keys() - set(leaves(app))) == []


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_command_ends_in_a_traceback_with_only_the_core_installed(tmp_path: Path) -> None:
    (tmp_path / "models.json").write_text("{")
    (tmp_path / "key").write_text("0x" + "1" * 64)
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "exchange.toml").write_text("[exchange]\nlisten = '127.0.0.1:0'\n[agents.e]\nagent = 'echo'\n")
    (tmp_path / "recorded.yaml").write_text("turns: [{message: hi, steps: [{text: 'You said: hi'}]}]\n")
    tried = {
        name: [*name.split(), *COMMANDS.get(name, "").replace("{}", str(tmp_path)).split()] for name in leaves(app)
    } | {name: line.replace("{}", str(tmp_path)).split() for name, line in MORE.items()}
    environ = clean_environment() | {
        "HOME": str(tmp_path), "TRUNKLINE_HOME": str(tmp_path / "home"), "TRUNKLINE_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src"))), "NO_COLOR": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.core_only"],
        input="".join(f"{json.dumps(each)}\n" for each in ([EVERY_MODULE], *tried.values())),
        env=environ, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    imported, *found = map(json.loads, done.stdout.splitlines())
    assert (imported["code"], imported["said"]) == (0, "")
    wrong = {
        name: (each["code"], each["said"])
        for name, each in zip(tried, found, strict=True)
        if each["code"] not in (0, 1, 2) or "Traceback" in each["said"] or "ModuleNotFoundError" in each["said"]
    }
    assert wrong == {}
    said = {name: each["said"] for name, each in zip(tried, found, strict=True)}
    assert {name: words for name, words in EXCHANGE.items() if words not in said[name]} == {}
    told = {
        name: each["said"].strip().splitlines()[-1] for name, each in zip(tried, found, strict=True) if each["said"]
    }
    lacks = {name: line for name, line in told.items() if re.search(r"install .*\[[\w-]+\]", line)}
    extra = {name: re.findall(r"\[([\w-]+)\]", line)[-1] for name, line in lacks.items()}
    assert {name: extra.get(name) for name in LACKING} == LACKING


def test_every_module_that_an_extra_brings_is_told_with_its_extra() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    here = packages_distributions()
    base = core("trunkline")
    for extra, brought in modules().items():
        named = {re.split(r"[^\w.-]", each, maxsplit=1)[0].lower().replace("_", "-") for each in declared[extra]}
        for module in brought:
            owners = {owner.lower().replace("_", "-") for owner in here[module]}
            assert owners & named, (extra, module)
            assert module == "markdown_it" or not owners & base


def test_the_part_of_the_program_decides_between_extras_that_bring_the_same() -> None:
    def raised(part: str) -> ModuleNotFoundError:
        try:
            exec("import no_such_module", {"__name__": part})  # as if it were a module of that name
        except ModuleNotFoundError as error:
            error.name = "starlette.requests"
            return error
        raise AssertionError

    assert "[runner]" in (lacking(raised("trunkline.runner.launcher")) or "")
    assert "[network]" in (lacking(raised("trunkline.network.http.app")) or "")
    assert lacking(ModuleNotFoundError("no such thing", name="somebody_elses")) is None
    assert extras.install_hint("graph") in (lacking(ModuleNotFoundError(name="numpy")) or "")
