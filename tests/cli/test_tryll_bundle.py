"""A bundle, as a machine without this installation meets it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

import trunkline
from tests.conftest import require
from tests.support import local_model
from tests.support.patience import PATIENCE_SECONDS
from trunkline import ManagedServer, SyncTryll
from trunkline.cli import tryll
from trunkline.cli.bundling import build, interpreter, licences, models, packages, written
from trunkline.core.faults import ConfigError
from trunkline.wires.tryll.messages import (
    ConfigureSessionRequest,
    GenerateParams,
    GraphDescription,
    InferenceEngine,
    NodeDescription,
)

SAY = GraphDescription((NodeDescription("say", GenerateParams(stream=True)),), "say")
#: To copy and to compile it takes half a minute, and more where others are at work.
BUILD_SECONDS = 900


def test_what_cannot_be_bundled_is_told_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("keep me")
    place = str(tmp_path / "bundle")
    for arguments, said in (
        ([str(tmp_path / "mine")], "is not a bundle"),
        ([str(tmp_path / "mine"), "--force"], "is not a bundle"),
        ([place, "--model", "nobody"], "There is no model `nobody`"),
        ([place, "--model", "smollm2-135m"], "`trunkline models pull smollm2-135m`"),
        ([place, "--graph", str(tmp_path / "none.yaml")], "cannot be read"),
    ):
        environ = {"TRUNKLINE_CACHE": str(tmp_path / "cache")}
        result = CliRunner().invoke(tryll.command, ["bundle", *arguments], env=environ)
        assert (result.exit_code, said in result.output) == (1, True), (arguments, result.output)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine"]
    assert (tmp_path / "mine/notes.txt").read_text() == "keep me"


def test_a_bundle_that_cannot_be_finished_leaves_nothing_and_the_old_one_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "bundle"
    place.mkdir()
    (place / written.MANIFEST).write_text('{"name": "trunkline-tryll-server"}')

    def fails(*_: object) -> dict[str, object]:
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "_fill", fails)
    plan = build.planned((), ())
    with pytest.raises(ConfigError, match="--force"):
        build.build(plan, str(place), print)
    with pytest.raises(KeyboardInterrupt):
        build.build(plan, str(place), print, force=True)
    assert [each.name for each in tmp_path.iterdir()] == ["bundle"]
    assert written.is_bundle(str(place))


@pytest.mark.parametrize("name", ["", " "])
def test_a_bundle_without_a_name_is_not_made_of_the_current_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(tryll.command, ["bundle", name])
    assert (result.exit_code, "Name the folder" in result.output) == (2, True), result.output
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_that_cannot_be_written_is_told_by_the_name_that_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    for name in ("file/bundle", "file/in/it/bundle"):
        result = CliRunner().invoke(tryll.command, ["bundle", str(tmp_path / name)])
        assert f"The bundle `{tmp_path}/{name}` cannot be made: Not a directory." in result.output

    def full(plan: object, root: str, report: object) -> dict[str, object]:
        said = f"[Errno 28] No space left on device: '{root}/lib/one'"
        raise shutil.Error([("/usr/lib/one", f"{root}/lib/one", said), ("/usr/lib/two", f"{root}/lib/two", said)])

    monkeypatch.setattr(build, "_fill", full)
    result = CliRunner().invoke(tryll.command, ["bundle", str(tmp_path / "bundle")])
    assert result.output == f"Error: The bundle `{tmp_path}/bundle` cannot be made: No space left on device.\n"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_what_a_package_says_of_its_licence_goes_along_under_whatever_names(tmp_path: Path) -> None:
    info = tmp_path / "thing-1.0.dist-info"
    (info / "licenses/vendored").mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: thing\nVersion: 1.0\nLicense-File: MIT.txt\n")
    for name in ("MIT.txt", "licenses/vendored/zlib.txt", "top_level.txt"):
        (info / name).touch()
    (tmp_path / "thing").mkdir()
    (tmp_path / "thing/COPYING").touch()
    (tmp_path / "thing/licences.py").touch()
    (info / "RECORD").write_text("".join(f"{each.relative_to(tmp_path)},,\n" for each in tmp_path.rglob("*.*")
                                         if each.is_file()) + "thing/COPYING,,\n")  # fmt: skip
    found = packages.texts(metadata.Distribution.at(info))
    assert sorted(name for name, _ in found) == ["MIT.txt", "thing_COPYING", "vendored_zlib.txt"]


def test_a_licence_that_a_text_only_names_goes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    common = tmp_path / "common-licenses"
    common.mkdir()
    (common / "GPL-3").write_text("all of it")
    (common / "LGPL-2.1").write_text("of another")
    (tmp_path / "COPYING").write_text(f"The text is in `{common}/GPL-3'. {common}/no-such-one")
    monkeypatch.setattr(licences, "COMMON", str(common))
    library = str(tmp_path / "libone.so.1")
    monkeypatch.setattr(licences, "_owner", lambda source: ("one", str(tmp_path / "COPYING")))
    licences.collect(str(tmp_path / "root"), {}, {"libone.so.1": library}, ())
    texts = tmp_path / "root/LICENSES"
    assert (texts / "libraries/libone.so.1/copyright").is_file()
    assert [each.name for each in (texts / "common-licenses").iterdir()] == ["GPL-3"]
    assert "in `common-licenses` here" in (texts / "LIST.txt").read_text()


def test_a_bundle_without_a_model_says_how_to_add_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {
        "version": "1",
        "machine": "m",
        "glibc": "2",
        "python": "3",
        "bytes": 1,
        "gpl": [],
        "models": [],
        "files": [],
    }
    monkeypatch.setattr(build, "_fill", lambda plan, root, report: told)
    result = CliRunner().invoke(tryll.command, ["bundle", str(tmp_path / "bundle")])
    assert result.exit_code == 0, result.output
    assert "No model is in it" in result.stderr
    assert "`--model NAME`" in result.stderr


def test_a_bundle_takes_the_place_of_another_when_all_of_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "bundle"
    place.mkdir()
    (place / written.MANIFEST).write_text('{"name": "trunkline-tryll-server"}')

    def fill(plan: object, root: str, report: object) -> dict[str, object]:
        assert written.is_bundle(str(place))
        Path(root, "new").touch()
        return {}

    monkeypatch.setattr(build, "_fill", fill)
    build.build(build.planned((), ()), str(place), print, force=True)
    assert [each.name for each in tmp_path.iterdir()] == ["bundle"]
    assert [each.name for each in place.iterdir()] == ["new"]


def test_whoever_plays_can_read_a_bundle_whose_maker_keeps_models_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(plan: object, root: str, report: object) -> dict[str, object]:
        Path(root, "models").mkdir(0o700)
        for name, mode in (("models/one.gguf", 0o600), ("tryll-server", 0o700)):
            Path(root, name).touch(mode)
        return {}

    monkeypatch.setattr(build, "_fill", fill)
    place = tmp_path / "bundle"
    before = os.umask(0o077)
    try:
        build.build(build.planned((), ()), str(place), print)
    finally:
        os.umask(before)
    modes = {each.name: each.stat().st_mode & 0o777 for each in (place, *place.rglob("*"))}
    assert modes == {"bundle": 0o755, "models": 0o755, "one.gguf": 0o644, "tryll-server": 0o755}


def test_what_is_under_the_gpl_is_taken_only_for_a_model_that_needs_it() -> None:
    without = [packages.described(each) for each in packages.needed("graph", "local", "voice").values()]
    assert packages.copyleft(without) == []
    require("piper-tts", find_spec("piper") is not None, "the extra `voice-gpl` brings it")
    named = packages.copyleft(map(packages.described, packages.needed("graph", "voice-gpl").values()))
    assert "piper-tts" in [each.name for each in named]
    assert "voice-gpl" in models.extras([models.chosen("espeak")])


def test_a_graph_brings_its_models_and_the_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("Nice try.\n")
    (tmp_path / "secret.txt").write_text("not for anybody\n")
    (tmp_path / "npc.yaml").write_text(
        "start: a\ndefault_model: smollm2-135m\nnodes:\n"
        "  a: {type: CannedResponse, string_storage: lines.txt, default: b}\n"
        "  b: {type: Generate, system_prompt: 'See /etc/passwd and ../x.'}\n"
    )
    found = models.graph(str(tmp_path / "npc.yaml"))
    assert (found.name, found.models, found.beside) == ("npc.yaml", ("smollm2-135m",), ("lines.txt",))
    models.copy_graph(found, str(tmp_path / "root"))
    assert sorted(each.name for each in (tmp_path / "root/graphs").iterdir()) == ["lines.txt", "npc.yaml"]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with a model, moved since it was made."""
    place = tmp_path_factory.mktemp("made") / "server"
    local_model.model_path()
    graph = tmp_path_factory.mktemp("graph") / "smith.yaml"
    graph.write_text(f"start: a\ndefault_model: {local_model.MODEL}\nnodes:\n  a: {{type: Generate, stream: true}}\n")
    arguments = [sys.executable, "-m", "trunkline", "tryll", "bundle", str(place), "--json", "--graph", str(graph)]
    environ = os.environ | {"TRUNKLINE_CACHE": local_model.SHARED_CACHE}
    made = subprocess.run(arguments, env=environ, capture_output=True, timeout=BUILD_SECONDS, check=False, text=True)
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    assert (told["models"], told["gpl"]) == ([local_model.MODEL], [])
    assert [each.name for each in place.parent.iterdir()] == ["server"]
    moved = tmp_path_factory.mktemp("else where") / "game's server"
    place.rename(moved)
    return moved


def _hidden(*command: str) -> list[str]:
    """A command that sees nothing of this installation, where the system lets us hide it; else the command."""
    checkout = str(Path(trunkline.__file__).parents[2])
    places = [sys.prefix, sys.base_prefix, checkout]
    mounts = " && ".join(f"mount -t tmpfs none '{place}'" for place in dict.fromkeys(places) if place != "/usr")
    argv = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    tried = subprocess.run([*argv, mounts], capture_output=True, check=False) if shutil.which("unshare") else None
    require("mount namespaces", tried is not None and not tried.returncode, "let users make mount namespaces")
    return [*argv, f'{mounts} && exec "$@"', "sh", *command]


@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(2 * BUILD_SECONDS)
def test_it_answers_with_its_own_model_where_nothing_of_this_installation_is_to_be_seen(
    bundle: Path, tmp_path: Path
) -> None:
    before = _state(bundle)
    command = _hidden("env", "-i", str(bundle / "tryll-server"))
    with (
        ManagedServer.start(command, cwd=str(tmp_path), start_seconds=PATIENCE_SECONDS) as server,
        SyncTryll(server.host, server.port) as client,
    ):
        assert server.version == trunkline.__version__
        agent = client.create_agent(SAY, default_model=local_model.MODEL)
        turn = agent.ask("Say hello.")
        assert turn.tokens_generated > 0
        (info,) = (each for each in client.list_models() if each.name == local_model.MODEL)
        assert info.local_path.startswith(f"{bundle}{os.sep}models{os.sep}")
    assert server.exit_code == 0
    # It has written nothing, in its own folder either.
    assert _state(bundle) == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(2 * BUILD_SECONDS)
def test_its_list_has_every_file_as_it_is_and_every_part_has_its_licence(bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text())
    files = {str(each.relative_to(bundle)) for each in bundle.rglob("*") if each.is_file()}
    assert files - {"manifest.json"} == manifest["files"].keys()
    for name in ("tryll-server", "tryll.toml", "README.txt", f"python/bin/{interpreter.name()}"):
        digest = hashlib.sha256((bundle / name).read_bytes()).hexdigest()
        assert manifest["files"][name] == {"bytes": (bundle / name).stat().st_size, "sha256": digest}
    assert not any("readline" in name or "GPL" in str(each) for name, each in manifest["files"].items())
    assert not [name for name in files if name.endswith(".pyc") and str(Path.home()) in name]
    listed = (bundle / "LICENSES/LIST.txt").read_text()
    for package in manifest["packages"]:
        assert f"package: {package['name']} {package['version']}: " in listed
        assert (bundle / "LICENSES/packages" / f"{package['name']}-{package['version']}").is_dir() or (
            f"{package['name']} {package['version']}: {package['licence']} (no text of it is here)" in listed
        )
    assert any((bundle / "LICENSES/python").iterdir())


@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(2 * BUILD_SECONDS)
def test_what_the_environment_says_of_other_installations_does_not_count(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.toml").write_text('[tryll]\nlisten = "nowhere"\n')
    (tmp_path / "trunkline.toml").write_text("[tryll]\nmode = 7\n")
    environ = {
        "TRUNKLINE_HOME": str(tmp_path), "TRUNKLINE_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path),
        "PYTHONHOME": "/nowhere", "TRUNKLINE_TRYLL_TOKEN": "s3cret", "TRUNKLINE_BUNDLE_STATE": str(tmp_path / "state"),
    }  # fmt: skip
    program = str(bundle / "tryll-server")
    with ManagedServer.start(program, "--sessions", cwd=str(tmp_path), env=environ) as server:
        config = ConfigureSessionRequest(token="s3cret", inference_engine=InferenceEngine.MOCK)
        with SyncTryll(server.host, server.port, config=config) as client:
            assert client.create_agent(SAY, default_model="any").ask("hi").text
    assert (tmp_path / "state/sessions").is_dir()
    assert not (bundle / "state").exists()


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(each): (each.stat().st_size, each.stat().st_mtime_ns) for each in folder.rglob("*")}
