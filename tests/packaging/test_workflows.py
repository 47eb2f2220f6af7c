"""The files that others run for us, pre-commit and CI: they name what there is, and run what `make` runs."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import lock

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_verbs_and_scripts_that_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    jobs = read(path)["jobs"].values()
    matrix = {verb for job in jobs for verb in job.get("strategy", {}).get("matrix", {}).get("verb", [])}
    verbs = set(re.findall(r"run: make ([a-z-]+)", text)) | matrix
    assert {verb for verb in verbs if not re.search(rf"^{verb}:", MAKEFILE, re.MULTILINE)} == set()
    assert {name for name in re.findall(r"scripts/[\w.-]+", text) if not (ROOT / name).exists()} == set()


def test_ci_runs_all_tests_with_every_python_that_we_support() -> None:
    supported = {name.rsplit(" ", 1)[1] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)}
    jobs = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    for name in ("check", "test"):
        assert set(jobs[name]["strategy"]["matrix"]["python"]) == supported
    assert set(jobs["test"]["strategy"]["matrix"]["verb"]) == {"test", "test-long", "coverage"}


def test_hooks_run_what_lint_runs_from_the_same_environment() -> None:
    (repository,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    entries = [hook["entry"] for hook in repository["hooks"]]
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}
    assert all(entry.startswith(".venv/bin/") for entry in entries)
    hooked = {entry.split()[0].rpartition("/")[2] for entry in entries}
    linted = set(re.findall(r"\$\(BIN\)/([\w-]+)", MAKEFILE.partition("\nlint:")[2].partition("\n\n")[0]))
    assert linted <= hooked


def test_every_package_of_this_environment_has_one_locked_version() -> None:
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)$", lock.LOCK.read_text(encoding="utf-8"), re.MULTILINE))
    needs = [need for extra in PROJECT["optional-dependencies"].values() for need in extra]
    declared = {re.split(r"[^\w.-]", need)[0].lower().replace("_", "-") for need in needs}
    assert declared - locked.keys() == {"trunkline"}
    for name in ("ruff", "mypy", "pytest", "import-linter"):
        assert importlib.metadata.version(name) == locked[name], "`make` installs what requirements-dev.lock says"


def test_a_lock_is_one_line_for_each_package_but_ours() -> None:
    report = {"install": [{"metadata": {"name": n, "version": "1"}} for n in ("b_b", "Trunkline", "A")]}
    assert lock.locked(report) == f"{lock.HEADER}a==1\nb-b==1\n"
