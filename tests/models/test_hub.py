"""Models of a hub: which one is meant, and how it comes."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from email.utils import formatdate
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.hub_server import COMMIT, REPOSITORY, Hub, gguf, hub_serving
from trunkline.core.faults import ConfigError, DownloadFailed
from trunkline.models import catalog, catalog_pulled, discover, fetch, fetch_http, hub, local
from trunkline.models.catalog_entry import ENGINE_BYTES, CatalogEntry
from trunkline.models.local import LocalModel
from trunkline.models.providers import ModelSettings

SMALL, LARGE = "tiny-Q4_K_M.gguf", "tiny-Q8_0.gguf"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    files = {"README.md": b"# Tiny", LARGE: gguf("large", 300_000), SMALL: gguf("small")}
    with hub_serving(Hub(**files), monkeypatch) as served:
        yield served


def content(path: str) -> bytes:
    return Path(path).read_bytes()


def damage_record(damage: bytes) -> None:
    (record,) = Path(catalog.models_dir(), catalog_pulled.FOLDER).iterdir()
    record.write_bytes(damage)


async def pulled(name: str = REPOSITORY) -> bytes:
    found = await hub.find(name)
    return content(await fetch.pull(found.entry))


# Which one is meant.


async def test_the_usual_quantisation_is_chosen_and_the_others_are_told(served: Hub) -> None:
    found = await hub.find(REPOSITORY)
    assert found.entry.name == f"{REPOSITORY}:{SMALL}"
    assert found.others == (LARGE,)
    assert (found.entry.licence, found.entry.revision, found.entry.kind) == ("apache-2.0", COMMIT, "llm")
    assert found.entry.files[0].sha256 == sha256(served.files[SMALL]).hexdigest()
    assert found.entry.download == len(served.files[SMALL])


@pytest.mark.parametrize("wanted", [LARGE, "Q8_0", "q8_0"])
async def test_a_file_is_named_by_its_name_or_its_quantisation(served: Hub, wanted: str) -> None:
    found = await hub.find(f"{REPOSITORY}:{wanted}")
    assert (found.entry.name, found.others) == (f"{REPOSITORY}:{LARGE}", ())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a-Q4_K_M.gguf", "Q4_K_M"),
        ("qwen2.5-0.5b-instruct-q4_k_m.gguf", "Q4_K_M"),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "Q4_1"),
        ("Q5_K_S/model-00001-of-00002.gguf", "Q5_K_S"),
        ("a-UD-IQ2_XXS.gguf", "IQ2_XXS"),
        ("a-BF16.gguf", "BF16"),
        ("a.gguf", ""),
        ("faq4you.gguf", ""),
    ],
)
def test_a_quantisation_is_read_from_a_name(name: str, expected: str) -> None:
    assert hub.quantisation(name) == expected


async def test_where_it_is_not_clear_which_is_meant_the_models_are_listed(served: Hub) -> None:
    served.files = {"one-F16.gguf": gguf("1"), "two-F16.gguf": gguf("2"), "mmproj-F16.gguf": gguf("3")}
    with pytest.raises(
        ConfigError, match=r"`one-F16\.gguf` \([\d.]+ kB\), `two-F16\.gguf` .*Name one: `owner/"
    ) as caught:
        await hub.find(REPOSITORY)
    assert "mmproj" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"has no model `one\.gguf`.*Did you mean `owner/tiny-GGUF:one-F16\.gguf`"):
        await hub.find(f"{REPOSITORY}:one.gguf")


async def test_the_parts_of_a_large_model_come_together_or_not_at_all(served: Hub) -> None:
    parts = {f"big-Q4_0-0000{number}-of-00002.gguf": gguf(str(number)) for number in (1, 2)}
    served.files = {**parts, "lost-Q4_K_M-00001-of-00003.gguf": gguf("lost")}
    found = await hub.find(REPOSITORY)
    assert [file.name for file in found.entry.files] == list(parts)
    path = Path(await fetch.pull(found.entry))
    assert [(path.parent / name).read_bytes() for name in parts] == list(parts.values())


async def test_a_repository_without_a_model_says_so(served: Hub) -> None:
    served.files = {"README.md": b"# Nothing", "../evil.gguf": gguf("x"), "/etc/x.gguf": gguf("y")}
    with pytest.raises(ConfigError, match="has no GGUF or ONNX file"):
        await hub.find(REPOSITORY)


@pytest.mark.parametrize(
    ("card", "kind"),
    [
        ({"pipeline_tag": "feature-extraction"}, "embedding"),
        ({"gguf": {"architecture": "nomic-bert", "context_length": 512}}, "embedding"),
        ({"gguf": {"architecture": "llama", "context_length": 8192}}, "llm"),
        ({"gguf": 3, "tags": 5, "cardData": [], "pipeline_tag": {}, "sha": 7}, "llm"),
    ],
)
async def test_a_model_for_vectors_is_told_from_one_that_answers(served: Hub, card: object, kind: str) -> None:
    assert isinstance(card, dict)
    served.card = card
    assert (await hub.find(REPOSITORY)).entry.kind == kind


async def test_an_onnx_model_comes_with_its_tokenizer(served: Hub) -> None:
    served.files = {"onnx/model.onnx": b"m" * 1000, "onnx/model_int8.onnx": b"s" * 500, "tokenizer.json": b"{}"}
    found = await hub.find(REPOSITORY)
    assert (found.entry.kind, found.entry.engine) == ("embedding", "onnx")
    path = Path(await fetch.pull(found.entry))
    assert path.name == "model_int8.onnx"
    assert (path.parent.parent / "tokenizer.json").read_bytes() == b"{}"
    assert catalog.path(catalog.find(found.entry.name)) == str(path)


@pytest.mark.parametrize("body", [b"[]", b"{}", b"<html>", b"\xff"])
async def test_what_is_no_hub_is_an_error(served: Hub, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hub, "told", lambda self: json.loads(body) if body[:1] in b"[{" else body.hex())
    with pytest.raises((ConfigError, DownloadFailed), match=r"does not answer as a hub|has no GGUF"):
        await hub.find(REPOSITORY)


async def test_a_hub_that_is_not_there_is_an_error_that_says_what_to_do(
    served: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DownloadFailed, match="name a mirror in `HF_ENDPOINT`"):
        await hub.find(REPOSITORY)


# How it comes.


async def test_a_model_comes_checked_and_is_listed(served: Hub) -> None:
    assert await pulled() == served.files[SMALL]
    (entry,) = catalog_pulled.entries(catalog.models_dir())
    assert (entry.name, entry.context) == (f"{REPOSITORY}:{SMALL}", 4096)
    # What it needs of memory is reckoned from what its file says of it.
    assert entry.memory == len(served.files[SMALL]) + 4096 * (2 * 2 * 2 * 64) + ENGINE_BYTES
    assert entry in catalog.entries()
    # Its name, or that of its repository, is enough from now on; nobody is asked.
    served.asked.clear()
    assert catalog.find(REPOSITORY) == entry
    assert await fetch.pull(entry) == catalog.path(catalog.find(entry.name))
    assert served.asked == []


async def test_two_models_of_a_repository_are_told_apart(served: Hub) -> None:
    await pulled()
    await pulled(f"{REPOSITORY}:{LARGE}")
    with pytest.raises(ConfigError, match=f"several models of `{REPOSITORY}`.*{SMALL}.*{LARGE}"):
        catalog.find(REPOSITORY)


async def test_what_breaks_off_goes_on_where_it_was(served: Hub) -> None:
    served.cuts = [50_000]
    assert await pulled() == served.files[SMALL]
    assert served.ranges == [None, "bytes=50000-"]


async def test_what_was_stopped_goes_on_in_the_next_pull(served: Hub) -> None:
    served.cuts = [50_000] * 10
    found = await hub.find(REPOSITORY)
    arrived = asyncio.Event()

    def report(what: str, done: int, total: int) -> None:
        if done >= 50_000:
            arrived.set()
            served.go_on.clear()

    pulling = asyncio.create_task(fetch.pull(found.entry, report))
    await arrived.wait()
    pulling.cancel()
    await asyncio.wait([pulling])
    # What was begun can be seen.
    assert catalog.find(found.entry.name) in catalog.entries()
    assert (catalog.path(found.entry), fetch.partial(found.entry)) == (None, True)
    served.go_on.set()
    served.cuts = []
    served.asked.clear()
    assert await pulled() == served.files[SMALL]
    assert served.ranges == ["bytes=50000-"]
    assert not fetch.partial(found.entry)


async def test_a_file_that_changes_meanwhile_is_not_put_together_of_two(served: Hub) -> None:
    served.hashes_told, served.cuts = False, [50_000]
    served.changed = {SMALL: gguf("other")}
    assert await pulled() == gguf("other")


@pytest.mark.parametrize("status", [429, 503])
async def test_a_hub_that_is_busy_is_asked_again_when_it_says(
    served: Hub, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    waits: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await real(0)

    found = await hub.find(REPOSITORY)
    monkeypatch.setattr("trunkline.models.fetch_http.asyncio.sleep", sleep)
    served.cuts = [50_000]
    served.busy = [(status, "7"), (status, formatdate(time.time() + 3600, usegmt=True))]
    assert content(await fetch.pull(found.entry)) == served.files[SMALL]
    asked = [seconds for seconds in waits if seconds > 1]
    assert 7 <= asked[0] <= 9
    assert asked[1] == fetch_http.MAX_WAIT_SECONDS
    # Nothing of what had come was lost by it.
    assert served.ranges == [None, None, None, "bytes=50000-"]


@pytest.mark.parametrize("more", [-10_000, 10_000])
async def test_a_file_of_another_size_than_the_hub_says_is_refused(served: Hub, more: int) -> None:
    served.wrong_size = len(served.files[SMALL]) + more
    reason = r"longer than \d+ bytes" if more < 0 else r"ended after \d+ of \d+ bytes"
    with pytest.raises(DownloadFailed, match=reason):
        await pulled()
    assert catalog.path(catalog.find(REPOSITORY)) is None


async def test_a_small_file_is_checked_against_the_number_that_git_has_for_it(served: Hub) -> None:
    served.files = {"onnx/model.onnx": b"m" * 1000, "tokenizer.json": b"{}"}
    served.blobs = {"tokenizer.json": "0" * 40}
    found = await hub.find(REPOSITORY)
    with pytest.raises(DownloadFailed, match=r"`tokenizer\.json` has the number \w{40} in Git, not 0{40}"):
        await fetch.pull(found.entry)
    served.blobs = {}
    path = Path(await fetch.pull(found.entry))
    assert (path.parent.parent / "tokenizer.json").read_bytes() == b"{}"


async def test_bytes_that_have_another_hash_are_not_kept(served: Hub) -> None:
    served.wrong_hash = "0" * 64
    with pytest.raises(DownloadFailed, match=r"has the SHA-256 \w{64}, not 0{64}; it was deleted"):
        await pulled()
    assert [name for name in os.listdir(catalog.models_dir()) if not name.endswith((".lock", "pulled"))] == []
    assert catalog_pulled.entries(catalog.models_dir()) == []


async def test_where_the_api_tells_no_hash_the_headers_do(served: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    found = await hub.find(REPOSITORY)
    unknown = found.entry.replace(files=tuple(file.replace(sha256="", length=0) for file in found.entry.files))
    served.wrong_hash = "0" * 64
    with pytest.raises(DownloadFailed, match=r"not 0{64}"):
        await fetch.pull(unknown)
    served.wrong_hash = ""
    served.asked.clear()
    assert content(await fetch.pull(unknown)) == served.files[SMALL]
    # The host with the files is asked once: its addresses may be good for no more.
    assert served.ranges == [None]


async def test_a_token_goes_to_the_hub_and_to_nobody_else(served: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    served.token = "hf_secret"
    with pytest.raises(DownloadFailed, match=r"HTTP status 401.*private or gated.*set `HF_TOKEN`"):
        await pulled()
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(DownloadFailed, match="whether the token in `HF_TOKEN` may read it") as caught:
        await pulled()
    assert "hf_wrong" not in str(caught.value)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    served.asked.clear()
    served.cuts = [50_000]
    assert await pulled() == served.files[SMALL]
    assert {(host, token) for host, _, _, token in served.asked} == {("hub", "Bearer hf_secret"), ("files", None)}


async def test_a_model_whose_terms_nobody_accepted_says_where_to_do_so(served: Hub) -> None:
    served.token, served.gated = "hf_secret", True
    with pytest.raises(DownloadFailed, match=f"status 403.*accept its terms at {served.url}/{REPOSITORY}"):
        await pulled()
    assert catalog_pulled.entries(catalog.models_dir()) == []


def test_a_token_is_not_sent_in_the_clear_nor_for_other_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror.example")
    assert hub.headers() == {}
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    assert hub.headers() == {"authorization": "Bearer hf_secret"}
    assert hub.headers(CatalogEntry("w", source="https://elsewhere.example/w.gguf")) == {}


async def test_a_removed_model_leaves_what_another_one_has(served: Hub) -> None:
    await pulled()
    await pulled(f"{REPOSITORY}:{LARGE}")
    small, large = (catalog.find(f"{REPOSITORY}:{name}") for name in (SMALL, LARGE))
    assert await fetch.remove(small)
    assert not await fetch.remove(small)
    assert (catalog.path(small), catalog.entries()[-1:]) == (None, (large,))
    assert catalog.path(large) is not None


async def test_a_newer_version_takes_the_place_of_an_older_one(served: Hub) -> None:
    await pulled()
    served.files[SMALL] = gguf("newer")
    found = await hub.find(REPOSITORY)
    assert content(await fetch.pull(found.entry)) == gguf("newer")
    assert len([name for name in os.listdir(catalog.models_dir()) if len(name) == 64]) == 1


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"source": "a/b", "files": []}', b'{"source": 1, "files": [1]}']
)
async def test_a_record_that_cannot_be_read_is_as_good_as_none(served: Hub, damage: bytes) -> None:
    await pulled()
    damage_record(damage)
    assert catalog_pulled.entries(catalog.models_dir()) == []
    assert await pulled() == served.files[SMALL]


# Who uses it.


async def test_a_pulled_model_is_one_for_the_local_provider(served: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "lacking_engines", lambda engines: None)
    name = f"{REPOSITORY}:{SMALL}"
    with pytest.raises(ConfigError, match=f"Get it with `trunkline models pull {name}`"):
        LocalModel(ModelSettings("local", name))
    await pulled()
    for each in (name, REPOSITORY):
        model = LocalModel(ModelSettings("local", each))
        assert (model._path, model.context_window) == (catalog.path(catalog.find(name)), 4096)


async def test_a_pulled_model_is_found_by_who_has_nothing_else(served: Hub) -> None:
    assert discover._pulled([]) is None
    await pulled()
    found = discover._pulled([])
    assert found is not None
    assert (found.settings.provider, found.settings.model) == ("local", f"{REPOSITORY}:{SMALL}")


def test_a_path_that_looks_like_a_name_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine").write_bytes(gguf("mine"))
    path, entry = local._find("models/mine")
    assert (path, entry.context) == ("models/mine", 4096)
