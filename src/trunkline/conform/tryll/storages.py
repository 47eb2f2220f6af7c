"""Checks of string storages: kinds, names, files."""

from __future__ import annotations

from trunkline.base import jsontext
from trunkline.conform.expect import expect, same
from trunkline.conform.tryll.graphs import OUTSIDE
from trunkline.conform.tryll.link import Link
from trunkline.conform.tryll.stage import MOCK, Stage
from trunkline.conform.tryll.suite import canned, check, ended_well
from trunkline.wires.tryll import messages as m

_LIST, _MAP, _MULTIMAP = m.StringStorageKind.LIST, m.StringStorageKind.MAP, m.StringStorageKind.MULTIMAP


async def _make(link: Link, name: str, *strings: str, kind: int = _LIST, keys: tuple[str, ...] = (),
                file: str = "") -> None:  # fmt: skip
    request = m.CreateStringStorageRequest(0, name, strings, file, kind, keys)
    same("the name in the response", (await link.ask(request, m.CreateStringStorageResponse)).name, name)


async def _lines(link: Link, storage: str, count: int) -> list[str]:
    """The first lines that an agent reads from a storage."""
    agent = await link.agent(canned("say", storage=storage))
    return [ended_well(await link.say(agent, "next")).text for _ in range(count)]


@check("tryll.storage.list", "MUST", "String storage")
async def lists(stage: Stage) -> None:
    """A List consists of strings, and nodes find it by its name, in its order."""
    link = await stage.session()
    await _make(link, "lines", "b", "c", "a")
    same("the lines", await _lines(link, "lines", 4), ["b", "c", "a", "b"])


@check("tryll.storage.map", "MUST", "String storage")
async def maps(stage: Stage) -> None:
    """A Map and a Multimap consist of keys and strings; only a Multimap may repeat a key (7003)."""
    link = await stage.session()
    await _make(link, "map", "1", "2", kind=_MAP, keys=("a", "b"))
    await _make(link, "multimap", "1", "2", kind=_MULTIMAP, keys=("a", "a"))
    request = m.CreateStringStorageRequest(0, "twice", ("1", "2"), "", _MAP, ("a", "a"))
    await link.refused(request, 7003, why="as a Map with a duplicate key")


@check("tryll.storage.sorted", "SHOULD", "Details")
async def in_order(stage: Stage) -> None:
    """Used as a list, a Map and a Multimap are sorted by key."""
    link = await stage.session()
    await _make(link, "map", "for c", "for a", "for b", kind=_MAP, keys=("c", "a", "b"))
    await _make(link, "multimap", "b1", "a1", "b2", kind=_MULTIMAP, keys=("b", "a", "b"))
    same("the lines of the Map", await _lines(link, "map", 3), ["for a", "for b", "for c"])
    same("the lines of the Multimap", await _lines(link, "multimap", 3), ["a1", "b1", "b2"])


@check("tryll.storage.data", "MUST", "String storage")
async def data(stage: Stage) -> None:
    """A List with keys, keys that do not match, no strings, and an unknown kind are refused with 7003."""
    link = await stage.session()
    wrong = {
        "as a List with keys": (("1",), _LIST, ("a",)),
        "as a Map without keys": (("1",), _MAP, ()),
        "with more strings than keys": (("1", "2"), _MAP, ("a",)),
        "with more keys than strings": (("1",), _MULTIMAP, ("a", "b")),
        "without strings": ((), _LIST, ()),
        "as an empty Map": ((), _MAP, ()),
    }
    for why, (strings, kind, keys) in wrong.items():
        await link.refused(m.CreateStringStorageRequest(0, "wrong", strings, "", kind, keys), 7003, why=why)
    unknown = m.CreateStringStorageRequest(0, "wrong", ("1",), "", 200, ())
    await link.refused(unknown, 7003, 5001, why="of an unknown kind")


@check("tryll.storage.name", "MUST", "Error responses")
async def name(stage: Stage) -> None:
    """An empty name is refused with 7001, and a name that is taken with 7002."""
    link = await stage.session()
    await link.refused(m.CreateStringStorageRequest(0, "", ("1",)), 7001, why="without a name")
    await _make(link, "lines", "a")
    await link.refused(m.CreateStringStorageRequest(0, "lines", ("b",)), 7002, why="with a name that is taken")
    same("the lines", await _lines(link, "lines", 1), ["a"])


@check("tryll.storage.destroy", "MUST", "String storage")
async def destroy(stage: Stage) -> None:
    """`DestroyStringStorageRequest` is answered with `Ack`; agents keep what they have, and the name is free again."""
    link = await stage.session()
    await _make(link, "lines", "old")
    agent = await link.agent(canned("say", storage="lines"))
    await link.ask(m.DestroyStringStorageRequest(0, "lines"), m.Ack)
    same("the line of an agent that had it", ended_well(await link.say(agent, "hello")).text, "old")
    await link.refused(m.DestroyStringStorageRequest(0, "lines"), 7000, why="for a destroyed storage")
    await _make(link, "lines", "new")
    same("the line of a new agent", await _lines(link, "lines", 1), ["new"])


@check("tryll.storage.unknown", "SHOULD", "Details")
async def unknown(stage: Stage) -> None:
    """Destroying a storage that never existed is refused: 7xxx for strings, 8xxx for embedded ones."""
    link = await stage.session()
    await link.refused(m.DestroyStringStorageRequest(0, "never"), 7000, why="for a storage that never existed")
    await link.refused(m.DestroyEmbeddedStringStorageRequest(0, "never"), 8000, why="for a storage that never existed")


@check("tryll.storage.outside", "SHOULD", "Details")
async def outside(stage: Stage) -> None:
    """Paths that are absolute on any system, or leave the storage folder, are refused with 3009."""
    link = await stage.session()
    for path in OUTSIDE:
        await link.refused(m.CreateStringStorageRequest(0, "lines", (), path), 3009, why=f"with {path!a}")
        request = m.CreateEmbeddedStringStorageRequest(0, "lore", path)
        await link.refused(request, 3009, why=f"with {path!a}")


@check("tryll.storage.missing", "MUST", "Error responses")
async def missing(stage: Stage) -> None:
    """A file that does not exist is refused: 7003 or 3010 for strings, 8003 or 3010 for embedded ones."""
    link = await stage.session()
    request = m.CreateStringStorageRequest(0, "lines", (), "conform-not-there.txt")
    await link.refused(request, 7003, 3010, why="with a file that does not exist")
    embedded = m.CreateEmbeddedStringStorageRequest(0, "lore", "conform-not-there.json")
    await link.refused(embedded, 8003, 3010, why="with a file that does not exist")


@check("tryll.storage.files", "MUST", "String storage", "files")
async def files(stage: Stage) -> None:
    """A `.txt` file is a List; a `.json` file of `{id, text}` is a Map or a Multimap, which may repeat an id."""
    folder, at = stage.folder()
    records = [{"id": "b", "text": "for b"}, {"id": "a", "text": "for a"}]
    (folder / "lines.txt").write_bytes(b"\xef\xbb\xbffirst\r\n\n# a remark\nsecond\n")
    (folder / "map.json").write_bytes(jsontext.dumps(records))
    (folder / "many.json").write_bytes(jsontext.dumps([*records, {"id": "a", "text": "also a"}]))
    (folder / "twice.json").write_bytes(jsontext.dumps([records[0], records[0]]))
    (folder / "torn.json").write_bytes(b'[{"id": ')
    link = await stage.session()
    await _make(link, "lines", file=f"{at}/lines.txt")
    await _make(link, "map", kind=_MAP, file=f"{at}/map.json")
    await _make(link, "many", kind=_MULTIMAP, file=f"{at}/many.json")
    same("the lines of the .txt file", await _lines(link, "lines", 3), ["first", "second", "first"])
    same("the lines of the .json file", await _lines(link, "map", 2), ["for a", "for b"])
    same("the lines of the Multimap", await _lines(link, "many", 3), ["for a", "also a", "for b"])
    for name in ("twice.json", "torn.json"):
        request = m.CreateStringStorageRequest(0, name, (), f"{at}/{name}", _MAP)
        await link.refused(request, 7003, why=f"with the file {name}")


@check("tryll.storage.paths", "SHOULD", "Details", "files")
async def paths(stage: Stage) -> None:
    """A node may name a file, whose kind follows from its name: `.mm.json`, for example, is a Multimap."""
    folder, at = stage.folder()
    records = [{"id": "b", "text": "for b"}, {"id": "a", "text": "for a"}, {"id": "b", "text": "also b"}]
    (folder / "lines.txt").write_bytes(b"first\nsecond\n")
    (folder / "many.mm.json").write_bytes(jsontext.dumps(records))
    link = await stage.session()
    same("the lines of the .txt file", await _lines(link, f"{at}/lines.txt", 2), ["first", "second"])
    same("the lines of the .mm.json file", await _lines(link, f"{at}/many.mm.json", 3), ["for a", "for b", "also b"])


@check("tryll.storage.links", "SHOULD", "Details", "files")
async def links(stage: Stage) -> None:
    """A link out of the storage folder is refused with 3009; one that stays inside is followed."""
    folder, at = stage.folder()
    (folder / "lines.txt").write_bytes(b"first\n")
    (folder / "inside.txt").symlink_to(folder / "lines.txt")
    (folder / "outside.txt").symlink_to("/etc/hostname")
    (folder / "up").symlink_to("/etc")
    link = await stage.session()
    await _make(link, "inside", file=f"{at}/inside.txt")
    for path in (f"{at}/outside.txt", f"{at}/up/hostname"):
        await link.refused(m.CreateStringStorageRequest(0, "out", (), path), 3009, why=f"with {path!a}")


@check("tryll.storage.shadow", "SHOULD", "Error responses", "files")
async def shadow(stage: Stage) -> None:
    """A storage of inline strings cannot have the name of a file in the storage folder: 7004."""
    folder, at = stage.folder()
    (folder / "lines.txt").write_bytes(b"first\n")
    link = await stage.session()
    request = m.CreateStringStorageRequest(0, f"{at}/lines.txt", ("a",))
    await link.refused(request, 7004, why="with the name of a file")


# Embedded ones. Their engine is the Mock one, which takes any model.


@check("tryll.embedded.create", "SHOULD", "Details", "mock")
async def embedded(stage: Stage) -> None:
    """An embedded storage of strings reports its numbers of records and of dimensions."""
    link = await stage.session()
    request = m.CreateEmbeddedStringStorageRequest(0, "lore", strings=("a mill", "a bridge"), embedding_model=MOCK)
    made = await link.ask(request, m.CreateEmbeddedStringStorageResponse)
    same("the storage", (made.name, made.record_count), ("lore", 2))
    expect(made.embedding_dim > 0, f"it has {made.embedding_dim} dimensions")
    await link.ask(m.DestroyEmbeddedStringStorageRequest(0, "lore"), m.Ack)
    await link.ask(request, m.CreateEmbeddedStringStorageResponse)


@check("tryll.embedded.refused", "MUST", "Error responses", "mock")
async def embedded_refused(stage: Stage) -> None:
    """Without a name it gets 8001, with a name that is taken 8002, without records 8003."""
    link = await stage.session()
    request = m.CreateEmbeddedStringStorageRequest(0, "lore", strings=("a",), embedding_model=MOCK)
    await link.refused(request.replace(name=""), 8001, why="without a name")
    await link.ask(request, m.CreateEmbeddedStringStorageResponse)
    await link.refused(request, 8002, why="with a name that is taken")
    await link.refused(request.replace(name="none", strings=()), 8003, why="without records")


@check("tryll.embedded.filter", "SHOULD", "Details", "mock", "files")
async def filtered(stage: Stage) -> None:
    """A filter is applied before the nearest records are chosen; one that does not match the fields gets 3007."""
    folder, at = stage.folder()
    records = [
        {"id": str(level), "text": f"the old mill {level}", "metadata": {"level": level}} for level in range(1, 6)
    ]
    fields = [{"name": "level", "type": "int", "default": 0}]
    config = {"version": 1, "embedding_model": MOCK, "records_file": "records.json", "fields": fields}
    (folder / "records.json").write_bytes(jsontext.dumps(records))
    (folder / "lore.json").write_bytes(jsontext.dumps(config))
    link = await stage.session()
    wanted = '{"op": "ge", "lhs": {"knowledge": "level"}, "rhs": {"value": 5}}'

    def node(filter: str) -> m.NodeDescription:
        return m.NodeDescription("find", m.RetrieveParams(f"{at}/lore.json", 3, 0.0, filter=filter))

    agent = await link.agent(node(wanted), enable_diagnostics=True)
    told = ended_well(await link.say(agent, "the old mill 1")).complete.debug_info
    expect("the old mill 5" in told and "the old mill 2" not in told, "records were found that the filter excludes")
    for wrong in (wanted.replace("level", "size"), wanted.replace("ge", "like"), "{", wanted.replace("5", '"five"')):
        request = m.CreateAgentRequest(0, m.GraphDescription((node(wrong),), "find"))
        await link.refused(request, 3007, why=f"with the filter {wrong!a}")
