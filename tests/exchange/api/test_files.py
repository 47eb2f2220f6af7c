"""Files that are brought to a session over HTTP."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.exchange.api_world import world
from trunkline.exchange.api import files
from trunkline.exchange.api.files import MAX_FILE, SHOWN_NAME_CHARS


def kept(directory: str) -> dict[str, bytes]:
    """The files in a directory, by path; none if there is no directory."""
    return {str(path): path.read_bytes() for path in Path(directory).glob("*")}


async def test_a_file_is_kept_with_the_session_and_goes_with_it(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        found = await net.post(f"/api/sessions/{id}/files?name=photo.png", content=b"\x89PNG", who="talker")
        assert found.status_code == 200
        told = found.json()
        directory = net.exchange.switchboard.store.files_of(id)
        assert kept(directory) == {told["path"]: b"\x89PNG"}
        assert (told["path"][-4:], told["name"], told["size"]) == (".png", "photo.png", 4)
        assert await net.say(id, "Look", who="talker", files=[told["path"]]) == 1
        assert (await net.ask("DELETE", f"/api/sessions/{id}")).status_code == 200
        assert kept(directory) == {}


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/cron.d/x",
        "..\\..\\x.bat",
        "a\0b.png",
        "x" * 5000,
        "-rf",
        ".",
        "..",
        "<img src=x>.p ng",
        "‮gpj.exe",
    ],
)
async def test_a_name_leads_nowhere(tmp_path: Path, name: str) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        found = await net.post(f"/api/sessions/{id}/files", params={"name": name}, content=b"x")
        assert found.status_code == 200, found.text
        told = found.json()
        assert kept(net.exchange.switchboard.store.files_of(id)) == {told["path"]: b"x"}
        assert os.path.basename(told["path"]).isascii()
        assert told["name"].isprintable()
        assert len(told["name"]) <= SHOWN_NAME_CHARS + 40


async def test_a_file_needs_no_name(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        assert (await net.post(f"/api/sessions/{id}/files", content=b"")).json()["size"] == 0


async def test_a_file_may_be_so_large_and_no_larger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_FILE == 20 * 1024 * 1024
    monkeypatch.setattr(files, "MAX_FILE", 1000)
    async with world(tmp_path) as net:
        id = await net.session()
        assert (await net.post(f"/api/sessions/{id}/files?name=a", content=b"x" * 1000)).status_code == 200
        refused = await net.post(f"/api/sessions/{id}/files?name=a", content=b"x" * 1001)
        assert (refused.status_code, refused.json()["error"]["message"]) == (
            413,
            "The body must have 1000 bytes or fewer.",
        )


async def test_who_may_only_watch_brings_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        assert (await net.post(f"/api/sessions/{id}/files?name=a", content=b"x", who="observer")).status_code == 403
        assert (await net.post("/api/sessions/none/files?name=a", content=b"x")).status_code == 404
        assert kept(net.exchange.switchboard.store.files_of(id)) == {}
