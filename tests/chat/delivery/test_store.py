"""What the bridge remembers."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import paths
from trunkline.chat.delivery import store as store_module
from trunkline.chat.delivery.store import DEDUP_DAYS, FOR_THE_BRIDGE, ChatStore, KeptChat, Note
from trunkline.chat.platform import Inbound, InboundFile
from trunkline.core.faults import ConfigError


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "chat.db")


def test_a_database_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = str(tmp_path / "file" / "chat.db")
    with pytest.raises(ConfigError, match="cannot be opened") as caught:
        ChatStore(path)
    assert f"`{path}`" in str(caught.value)


@pytest.fixture
def store(path: str) -> Iterator[ChatStore]:
    store = ChatStore(path)
    yield store
    store.close()


def inbound(id: str, chat: str = "c", text: str = "hello") -> Inbound:
    return Inbound(id, chat, "me", text)


def noted(store: ChatStore, id: str, chat: str = "c") -> Note:
    note = store.note("telegram", inbound(id, chat))
    assert note is not None
    return note


def reopened(store: ChatStore) -> ChatStore:
    store.close()
    return ChatStore(store.path)


def test_a_message_that_is_delivered_again_is_noted_once_also_after_a_restart(path: str) -> None:
    store = ChatStore(path)
    assert store.note("telegram", inbound("1")) is not None
    assert store.note("telegram", inbound("1", text="edited on the way")) is None
    store = reopened(store)
    assert store.note("telegram", inbound("1")) is None
    assert store.note("matrix", inbound("1")) is not None
    store.close()


def test_what_is_noted_comes_back_whole_after_a_restart(path: str) -> None:
    store = ChatStore(path)
    files = (InboundFile("image", "ref", "a.png", 5), InboundFile("audio", "ref-2"))
    item = Inbound("id \ud800", "chat \x00", "me", "text \udfff\n", files, "Me", True)
    note = store.note("telegram", item)
    store = reopened(store)
    assert store.waiting("telegram") == [note]
    assert store.waiting("telegram")[0].inbound == item
    store.close()


def test_what_waits_was_never_begun_and_what_was_interrupted_never_ended(store: ChatStore) -> None:
    waiting, begun, done = noted(store, "1"), noted(store, "2"), noted(store, "3")
    later = noted(store, "4")
    for note in (begun, done):
        store.begin(note)
    store.end(done, "success")
    assert store.waiting("telegram") == [waiting, later]
    assert store.interrupted("telegram") == [begun]
    assert store.waiting("matrix") == []


def test_a_message_can_be_refused_without_being_begun(store: ChatStore) -> None:
    store.end(noted(store, "1"), "refused")
    assert store.waiting("telegram") == []
    assert store.note("telegram", inbound("1")) is None


def test_an_outcome_is_not_a_state_of_what_is_open(store: ChatStore) -> None:
    with pytest.raises(ValueError, match="running"):
        store.end(noted(store, "1"), "running")


def test_the_last_message_that_failed_can_be_asked_for_again(store: ChatStore) -> None:
    assert store.last_ended("telegram", "c") is None
    first, second, command = noted(store, "1"), noted(store, "2"), noted(store, "3")
    other, waiting = noted(store, "4", chat="d"), noted(store, "5")
    store.end(first, "error")
    store.end(second, "cancelled")
    store.end(command, FOR_THE_BRIDGE)
    store.end(other, "error")
    assert store.last_ended("telegram", "c") == second.id
    for note in (first, second):
        assert store.failed("telegram", "c", note.id) == note
    for note in (command, other, waiting):
        assert store.failed("telegram", "c", note.id) is None
    store.end(second, "success")
    assert store.failed("telegram", "c", second.id) is None
    assert store.last_ended("telegram", "c") == second.id


def test_a_chat_keeps_what_it_was_given(path: str) -> None:
    store = ChatStore(path)
    assert store.conversation("telegram", "c") == KeptChat()
    store.keep("telegram", "c", KeptChat("coder", "s-1", "agent's own", "auto"))
    store.keep("telegram", "c", KeptChat("coder", "s-2"))
    store.keep("telegram", "d", KeptChat("echo"))
    store = reopened(store)
    assert store.conversation("telegram", "c") == KeptChat("coder", "s-2")
    assert store.conversation("telegram", "d") == KeptChat("echo")
    assert store.conversation("matrix", "c") == KeptChat()
    store.close()


def test_what_another_version_kept_of_a_chat_is_left_out(store: ChatStore) -> None:
    store.keep("telegram", "c", KeptChat("coder"))
    store.execute("UPDATE conversations SET kept = ?", b'{"agent":"coder","colour":"blue"}')
    assert store.conversation("telegram", "c") == KeptChat("coder")


def test_changes_made_together_are_made_all_or_not_at_all(store: ChatStore) -> None:
    note = noted(store, "1")
    told: list[str] = []

    def fail() -> None:
        with store.together():
            store.end(note, "success")
            store.keep("telegram", "c", KeptChat("coder"))
            store.when_kept(lambda: told.append("failed"))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert store.waiting("telegram") == [note]
    assert store.conversation("telegram", "c") == KeptChat()
    with store.together():
        store.end(note, "success")
        with store.together():
            store.keep("telegram", "c", KeptChat("coder"))
            store.when_kept(lambda: told.append("inner"))
        assert told == []
    assert told == ["inner"]
    assert store.waiting("telegram") == []
    store.when_kept(lambda: told.append("at once"))
    assert told == ["inner", "at once"]


def test_old_messages_are_forgotten_except_those_that_are_open(
    store: ChatStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, running = noted(store, "1"), noted(store, "2")
    store.end(done, "success")
    store.begin(running)
    store.execute("UPDATE notes SET noted = noted - ?", (DEDUP_DAYS + 1) * 24 * 3600)
    monkeypatch.setattr(store_module, "PRUNE_EVERY", 1)
    noted(store, "3")
    assert store.note("telegram", inbound("1")) is not None
    assert store.interrupted("telegram") == [running]


def test_the_database_is_private_and_in_the_state_directory_unless_told_otherwise() -> None:
    store = ChatStore()
    noted(store, "1")
    assert store.path == os.path.join(paths.state_dir(), "chat.db")
    for name in os.listdir(paths.state_dir()):
        assert stat.S_IMODE(os.stat(os.path.join(paths.state_dir(), name)).st_mode) == 0o600
    assert store.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()


def test_what_cannot_be_opened_is_explained(tmp_path: Path) -> None:
    (tmp_path / "chat.db").write_bytes(b"not a database, but long enough to look like one" * 40)
    with pytest.raises(ConfigError, match="Move it away"):
        ChatStore(str(tmp_path / "chat.db"))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match="cannot be opened"):
        ChatStore(str(tmp_path / "file" / "chat.db"))


def test_a_database_of_a_newer_version_is_left_alone(path: str) -> None:
    ChatStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ConfigError, match="newer version"):
        ChatStore(path)


def test_a_full_disk_is_a_clear_error_and_leaves_the_store_usable(store: ChatStore) -> None:
    ((pages,),) = store.execute("PRAGMA page_count").fetchall()
    store.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(ConfigError, match="full"):
        store.note("telegram", inbound("1", text="x" * 100_000))
    store.execute("PRAGMA max_page_count = 1000000")
    noted(store, "after")


@pytest.mark.process
def test_no_two_processes_serve_one_platform_from_one_database(store: ChatStore) -> None:
    store.claim("telegram")
    script = (
        "import sys; from trunkline.core.faults import ConfigError\n"
        "from trunkline.chat.delivery.store import ChatStore\n"
        "store = ChatStore(sys.argv[1]); store.claim('matrix')\n"
        "try: store.claim('telegram')\n"
        "except ConfigError as error: print(error)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, store.path], capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert f"Another bridge serves `telegram` from `{store.path}` (process {os.getpid()})" in told.stdout
    # It is over with the process that had it.
    store.claim("matrix")
    store.claim("matrix")
