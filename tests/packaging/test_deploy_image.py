"""`deploy/Dockerfile`, read by a parser: what it takes is there, what it runs is ours, and nothing runs as root."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from dockerfile_parse import DockerfileParser

from tests.support.commands import is_command
from tests.support.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "Dockerfile"
HEALTH = ["python", "-I", "/usr/local/lib/trunkline/ready.py"]


class Image:
    """The instructions, and what the last stage comes to."""

    def __init__(self, folder: Path) -> None:
        # It wants a folder of its own to write in.
        shutil.copy(FILE, folder / "Dockerfile")
        self.all: list[tuple[str, str]] = [
            (each["instruction"], each["value"])
            for each in DockerfileParser(path=str(folder)).structure
            if each["instruction"] != "COMMENT"
        ]
        last = max(at for at, (word, _) in enumerate(self.all) if word == "FROM")
        self.build, self.final = self.all[:last], self.all[last:]

    def values(self, word: str, stage: list[tuple[str, str]] | None = None) -> list[str]:
        return [value for name, value in (self.all if stage is None else stage) if name == word]

    def copied(self) -> list[tuple[list[str], str]]:
        """What is copied from the checkout, and where to."""
        found = [[word for word in value.split() if not word.startswith("--chmod")] for value in self.values("COPY")]
        return [(words[:-1], words[-1]) for words in found if not words[0].startswith("--from")]


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)


def test_it_is_built_in_one_stage_and_runs_in_another(image: Image) -> None:
    stages = image.values("FROM")
    assert len(stages) == 2
    assert stages[0].endswith(" AS build")
    assert " AS " not in stages[1]
    assert any(value.startswith("--from=build /opt/trunkline ") for value in image.values("COPY", image.final))
    # Neither the sources nor what builds them is part of what runs.
    assert not any("src" in sources for sources, target in image.copied() if target.startswith("/"))


def test_every_file_that_is_copied_is_there_and_is_sent_along(image: Image) -> None:
    sources = [source for sources, _ in image.copied() for source in sources]
    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert "*" in ignored
    assert {source.rstrip("/") for source in sources} == {
        line.removeprefix("!") for line in ignored if line.startswith("!")
    }


def test_it_does_not_run_as_root_and_can_write_where_it_keeps_its_files(image: Image) -> None:
    assert image.values("USER", image.final) == ["10001:10001"]
    after = image.final[[word for word, _ in image.final].index("USER") :]
    assert {"RUN", "COPY", "ADD"}.isdisjoint(word for word, _ in after)
    (made,) = image.values("RUN", image.final)
    assert "--uid 10001" in made
    (home,) = re.findall(r"TRUNKLINE_HOME=(\S+)", " ".join(image.values("ENV", image.final)))
    assert re.search(rf"install --directory --owner=trunkline .* {home}$", made)
    assert image.values("VOLUME", image.final) == [home]


def test_it_says_whether_it_is_healthy_by_a_program_that_is_in_it(image: Image) -> None:
    (health,) = image.values("HEALTHCHECK", image.final)
    assert json.loads(health.partition("CMD ")[2]) == HEALTH
    assert (["deploy/ready.py"], HEALTH[-1]) in image.copied()


def test_what_it_runs_is_a_command_of_ours_under_a_first_process_that_buries_others(image: Image) -> None:
    (entry,), (command,) = ([json.loads(value) for value in image.values(word)] for word in ("ENTRYPOINT", "CMD"))
    assert entry[:2] == ["tini", "--"]
    assert entry[2:] == ["trunkline"]
    assert is_command(command)
    assert " tini " in f" {' '.join(image.values('RUN', image.final))} "


def test_a_cluster_can_be_backed_up_where_its_servers_can_be_reached(image: Image) -> None:
    assert " postgresql-client " in f" {' '.join(image.values('RUN', image.final))} "


def test_the_port_is_the_one_that_the_file_of_a_node_listens_on(image: Image) -> None:
    listen = tomllib.loads((ROOT / "deploy" / "trunkline.toml").read_text(encoding="utf-8"))["exchange"]["listen"]
    assert image.values("EXPOSE") == [listen.rpartition(":")[2]]


def test_its_extras_are_extras_of_the_package(image: Image) -> None:
    (extras,) = re.findall(r"EXTRAS=(\S+)", "\n".join(image.values("ARG", image.build)))
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(extras.split(",")) <= known.keys()
    assert {"otel", "cluster"} <= set(extras.split(","))


def test_its_python_is_one_that_we_say_we_run_with(image: Image) -> None:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (version,) = re.findall(r"PYTHON=(\S+)", "\n".join(image.values("ARG")))
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]


@pytest.mark.wheel
def test_what_is_sent_along_is_enough_to_build_the_package_with_its_version(image: Image, tmp_path: Path) -> None:
    context = tmp_path / "context"
    context.mkdir()
    for value in image.values("COPY", image.build):
        *sources, _ = value.split()
        for source in sources:
            if (ROOT / source).is_dir():
                left_out = shutil.ignore_patterns("__pycache__", "_version.py")
                shutil.copytree(ROOT / source, context / source, ignore=left_out)
            else:
                shutil.copy(ROOT / source, context / source)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path / "dist"), "."],
        cwd=context,
        env={**os.environ, "SETUPTOOLS_SCM_PRETEND_VERSION": "1.2.3"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [wheel.name for wheel in (tmp_path / "dist").iterdir()] == ["trunkline-1.2.3-py3-none-any.whl"]
