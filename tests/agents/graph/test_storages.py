"""String storages, and the folder that they cannot leave."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.graph import confined, storages
from trunkline.agents.graph.confined import MAX_PARTS, MAX_PATH_BYTES
from trunkline.agents.graph.embedded import EmbeddedStorage
from trunkline.agents.graph.host import LocalHost
from trunkline.agents.graph.shelf import MAX_NAME, Shelf
from trunkline.agents.graph.shelf_files import StorageFiles
from trunkline.agents.graph.storages import StringStorage
from trunkline.core.fault_table import form_of
from trunkline.core.faults import BadStorageName, Fault, OutsideStorage, StorageError, StorageExists, StorageMissing
from trunkline.core.graph.hosting import EmbeddedStorageDescription, StringStorageDescription
from trunkline.models.engines import Vector
from trunkline.wires.tryll.messages import (
    StringStorageKind,
)

LIST, MAP, MULTIMAP = StringStorageKind.LIST, StringStorageKind.MAP, StringStorageKind.MULTIMAP


def strings(
    name: str, *values: str, file: str = "", kind: int = LIST, keys: tuple[str, ...] = ()
) -> StringStorageDescription:
    return StringStorageDescription(name, values, file, kind, keys)


def test_maps_are_sorted_by_key_and_multimaps_keep_the_order_within_one() -> None:
    found = StringStorage("m", MULTIMAP, ["3", "1", "2"], ["b", "a", "b"])
    assert (found.keys, found.lines) == (("a", "b", "b"), ("1", "3", "2"))
    assert (found.find_first("b"), found.find_first("c")) == ("3", None)
    assert StringStorage("l", LIST, ["b", "a"]).lines == ("b", "a")


@pytest.mark.parametrize(
    "request_",
    [
        strings("s"),
        strings("s", "a", file="a.txt"),
        strings("s", "a", keys=("k",)),
        strings("s", "a", kind=MAP),
        strings("s", "a", "b", kind=MAP, keys=("k", "k")),
        strings("s", "a", "b", kind=MULTIMAP, keys=("k",)),
        strings("s", "a", kind=9),
        strings("s", file="missing.txt"),
        strings("s", file="empty.txt"),
        strings("s", file="a.png"),
        strings("s", file="bad.json"),
        strings("s", file="twice.json", kind=MAP),
        strings("s", file="lines.txt", kind=MAP),
        strings("s", file="."),
    ],
)
def test_strings_that_fit_no_storage_are_refused(tmp_path: Path, request_: StringStorageDescription) -> None:
    for name, text in {
        "empty.txt": "\n# only a remark\n", "a.png": "x", "bad.json": '[{"id": 1}]', "lines.txt": "a",
        "twice.json": '[{"id":"a","text":"1"},{"id":"a","text":"2"}]',
    }.items():  # fmt: skip
        (tmp_path / name).write_text(text)
    with pytest.raises(Fault) as caught:
        Shelf(str(tmp_path)).create_strings(request_)
    assert form_of(caught.value.kind).tryll == 7003


def test_files_are_of_the_kind_that_their_names_tell(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\n\r\n# no\r\n two \r\nthree")
    (tmp_path / "m.json").write_text('[{"id":"b","text":"2"},{"id":"a","text":"1","metadata":{}}]')
    (tmp_path / "m.mm.json").write_text('[{"id":"b","text":"2"},{"id":"b","text":"1"}]')
    assert storages.load(str(tmp_path), "a.txt").lines == ("one", " two ", "three")
    assert storages.load(str(tmp_path), "m.json").kind == MAP
    multimap = storages.load(str(tmp_path), "m.mm.json")
    assert (multimap.kind, multimap.keys, multimap.lines) == (MULTIMAP, ("b", "b"), ("2", "1"))


def test_a_file_is_of_the_kind_that_was_asked_for(tmp_path: Path) -> None:
    for name in ("m.json", "m.mm.json"):
        (tmp_path / name).write_text(
            '[{"id":"b","text":"2"},{"id":"a","text":"1","metadata":{}},{"id":"b","text":"3"}]'
        )
    shelf = Shelf(str(tmp_path))
    for name in ("m.json", "m.mm.json"):
        many = shelf.create_strings(strings(f"many {name}", file=name, kind=MULTIMAP))
        assert (many.kind, many.keys, many.lines) == (MULTIMAP, ("a", "b", "b"), ("1", "2", "3"))
        # A client that says none means a List: the texts, as they stand there.
        plain = shelf.create_strings(strings(f"plain {name}", file=name))
        assert (plain.kind, plain.keys, plain.lines) == (LIST, (), ("2", "1", "3"))
        with pytest.raises(StorageError):
            shelf.create_strings(strings(f"one each {name}", file=name, kind=MAP))


def test_names_are_one_of_a_kind_and_free_again_after_their_storage(tmp_path: Path) -> None:
    shelf = Shelf(str(tmp_path))
    (tmp_path / "file.txt").write_text("x")
    for name, code in (("", 7001), ("__x", 7001), ("a\nb", 7001), ("x" * (MAX_NAME + 1), 7001), ("file.txt", 7004)):
        with pytest.raises(Fault) as caught:
            shelf.create_strings(strings(name, "a"))
        assert form_of(caught.value.kind).tryll == code
    held = shelf.create_strings(strings("s", "a"))
    with pytest.raises(StorageExists):
        shelf.create_strings(strings("s", "b"))
    shelf.destroy_strings("s")
    with pytest.raises(BadStorageName):
        shelf.destroy_strings("s")
    assert shelf.create_strings(strings("s", "b")).lines == ("b",)
    assert held.lines == ("a",)


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ("[]", "not in an object"),
        ('{"records": [], "more": 1}', "not in an object"),
        ("{", "not JSON"),
        ('{"records": []}', "at least one"),
        ('{"records": [7]}', "record 0"),
        ('{"records": [{"text": "a", "metadata": {"x": 1}}], "fields": [{"name": "x", "type": "string"}]}', "default"),
        (f'{{"records": {[0] * 10_001}}}', "at most 10000 records"),
        (
            '{"records": ['
            + ",".join(['{"text": ""}'] * 4000)
            + '], "fields": ['
            + ",".join(f'{{"name": "f{each}", "type": "int", "default": 1}}' for each in range(51))
            + "]}",
            "more than 200000 values",
        ),
    ],
    ids=range(8),
)
async def test_records_that_a_client_sends_are_looked_at_and_have_limits(records: str, told: str) -> None:
    host = LocalHost()
    with pytest.raises(Fault, match=told) as caught:
        await host.shelf.create_embedded(
            EmbeddedStorageDescription("s", embedding_model="m", records_json=records), host.embedding
        )
    assert form_of(caught.value.kind).tryll == 8003
    both = EmbeddedStorageDescription("s", "", ("a",), "m", '{"records": [{"text": "a"}]}')
    with pytest.raises(Fault, match="needs either"):
        await host.shelf.create_embedded(both, host.embedding)


OUTSIDE = ["../secret.txt", "/etc/passwd", "C:\\x.txt", "c:x.txt", "\\\\host\\share\\x.txt", "a/../../secret.txt",
           "..\\secret.txt", "link.txt", "dir/secret.txt", "/"]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
async def test_no_path_leads_out_of_the_folder(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    os.symlink(tmp_path / "secret.txt", root / "link.txt")
    os.symlink(tmp_path, root / "dir")
    host = LocalHost(Shelf(str(root)))
    with pytest.raises(OutsideStorage):
        await host.strings(path)
    with pytest.raises(OutsideStorage):
        await host.embedded(path)
    with pytest.raises(OutsideStorage):
        host.shelf.create_strings(strings("s", file=path))
    with pytest.raises(OutsideStorage):
        await host.shelf.create_embedded(EmbeddedStorageDescription("s", path), host.embedding)


async def test_what_is_inside_and_missing_is_not_found(tmp_path: Path) -> None:
    host = LocalHost(Shelf(str(tmp_path)))
    (tmp_path / "file.txt").write_text("one")
    for path in ("none.txt", "sub/none.txt", "nul\0.txt", "x" * 256, "x/" * 5000, "file.txt/none.txt"):
        for look in (host.strings, host.embedded):
            with pytest.raises(StorageMissing):
                await look(path)
    with pytest.raises(StorageMissing):
        await LocalHost().strings("none.txt")


LONGEST = "x/" * (MAX_PARTS - 1)
#: Each as long as a path may be, and with as many parts.
AT_THE_LIMIT = ["/".join(["é" * 127] * 15) + "/" + "x" * (MAX_PATH_BYTES - 15 * 255), f"{LONGEST}y"]


@pytest.mark.parametrize("path", AT_THE_LIMIT)
def test_a_path_at_the_limit_is_looked_up(tmp_path: Path, path: str) -> None:
    assert confined.resolve(str(tmp_path), path) == str(tmp_path / path)


@pytest.mark.parametrize(
    "path", [f"{AT_THE_LIMIT[0]}x", f"{LONGEST}y/z", f"{LONGEST}y\\z", "../" * MAX_PARTS, "d/" * 500_000 + "x.jsonl"]
)
async def test_a_path_that_is_longer_is_not_looked_up_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    def never(path: str) -> str:
        raise AssertionError("looked up")

    for name in ("realpath", "normpath"):
        monkeypatch.setattr(os.path, name, never)
    for root in (str(tmp_path), None):
        for look in (confined.resolve, confined.state):
            with pytest.raises(StorageMissing, match=r"A path of more than \d+ (bytes|parts)"):
                look(root, path)
        assert not confined.exists(root, path)


async def test_a_file_is_read_once_for_all_who_hold_it_and_links_inside_are_fine(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("one")
    os.symlink("../a.txt", tmp_path / "sub" / "b.txt")
    files = StorageFiles()
    shelf, other = (Shelf(str(tmp_path), None, files) for _ in range(2))
    held = [await shelf.strings("a.txt"), await shelf.strings("sub/../a.txt"), await other.strings("sub\\b.txt")]
    held += [shelf.create_strings(strings(name, file="a.txt")) for name in ("x", "y")]
    assert held[3] is not held[4]
    assert len({id(each.lines) for each in held}) == 1
    # A name is enough to hold it.
    del held
    gc.collect()
    assert (await other.strings("a.txt")).lines is (await shelf.strings("x")).lines
    shelf.destroy_strings("x")
    shelf.destroy_strings("y")
    await until(lambda: not files._strings)


async def test_a_file_that_has_changed_is_seen_by_whoever_comes_and_not_by_whoever_is_there(tmp_path: Path) -> None:
    (tmp_path / "lore.json").write_text('{"embedding_model": "m", "records_file": "records.json"}')
    shelf, host = Shelf(str(tmp_path)), LocalHost()
    seen: list[tuple[StringStorage, EmbeddedStorage]] = []
    for time, text in enumerate(("one", "two")):
        (tmp_path / "a.txt").write_text(text)
        (tmp_path / "records.json").write_text(f'[{{"id": "0", "text": "{text}"}}]')
        for name in ("a.txt", "records.json"):
            os.utime(tmp_path / name, (time, time))
        seen.append((await shelf.strings("a.txt"), await shelf.embedded("lore.json", host.embedding)))
    assert [(lines.lines, records.records.texts) for lines, records in seen] == [(("one",),) * 2, (("two",),) * 2]
    assert await shelf.embedded("lore.json", host.embedding) is seen[1][1]


async def test_records_of_a_file_are_there_once_and_with_the_engine_that_each_asks_for(tmp_path: Path) -> None:
    (tmp_path / "lore.json").write_text('{"embedding_model": "m", "records_file": "records.json"}')
    (tmp_path / "records.json").write_text('[{"id": "0", "text": "one"}]')
    files = StorageFiles()
    shelf, other = (Shelf(str(tmp_path), None, files) for _ in range(2))
    mock, real = LocalHost(), LocalHost(embedding=Real)
    found = [await each.embedded("lore.json", mock.embedding) for each in (shelf, other)]
    assert found[0] is found[1]
    found.append(await shelf.embedded("lore.json", real.embedding))
    found.append(await shelf.create_embedded(EmbeddedStorageDescription("named", "lore.json"), real.embedding))
    assert [each.dimensions for each in found] == [384, 384, 3, 3]
    assert (found[3] is found[2], found[3].size) == (False, 0)
    assert len({id(each.records) for each in found}) == 1
    del found
    shelf.destroy_embedded("named")
    await until(lambda: not files._records)


class Real:
    """An engine that is not the mock."""

    fingerprint = "real"
    dimensions = 3

    def __init__(self, name: str) -> None:
        self.name = name

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [(1.0, 0.0, 0.0) for _ in texts]


async def test_two_models_of_one_sort_do_not_share_their_vectors_and_two_askers_do(tmp_path: Path) -> None:
    (tmp_path / "lore.json").write_text('{"embedding_model": "m", "records_file": "records.json"}')
    (tmp_path / "records.json").write_text('[{"id": "0", "text": "one"}]')
    shelf = Shelf(str(tmp_path))
    engines = [Real("m"), Real("other"), Real("m")]
    engines[2].fingerprint = "another file"

    async def of(engine: Real) -> EmbeddedStorage:
        async def engine_of(name: str) -> Real:
            return engine

        return await shelf.embedded("lore.json", engine_of)

    found = [await of(engine) for engine in engines]
    assert len(set(map(id, found))) == 3
    del found
    gc.collect()
    # Both begin before one of them is done.
    one, other = await asyncio.gather(of(engines[0]), of(engines[0]))
    assert one is other
    assert await of(engines[0]) is one


async def test_two_who_read_a_file_at_once_have_one_storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("one")
    both = threading.Barrier(2)

    def load(*arguments: Any) -> StringStorage:
        both.wait(PATIENCE_SECONDS)
        return really(*arguments)

    really = storages.load
    monkeypatch.setattr(storages, "load", load)
    shelf = Shelf(str(tmp_path))
    one, other = await asyncio.gather(shelf.strings("a.txt"), shelf.strings("a.txt"))
    assert one is other
    assert await shelf.strings("a.txt") is one


async def test_a_pipe_is_no_storage(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.txt")
    with pytest.raises(StorageError):
        await Shelf(str(tmp_path)).strings("p.txt")
