"""The bridge's memory on a server that several machines share: the same as a file, and only for who serves now."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support import postgres
from tests.support.chat_platform import LIMITS, MemoryPlatform
from tests.support.loop import until
from trunkline.chat.delivery import shared
from trunkline.chat.delivery.database import Fence
from trunkline.chat.delivery.outbox import Outbox
from trunkline.chat.delivery.rows import Rows, TextBody
from trunkline.chat.delivery.shared import SharedChat
from trunkline.chat.delivery.states import MessageState
from trunkline.chat.delivery.store import ChatStore, ChatStoreLost, KeptChat
from trunkline.chat.platform import Inbound, InboundFile
from trunkline.core.faults import ConfigError
from trunkline.store.database.postgres import connect

pytestmark = pytest.mark.process

Open = Callable[[int], ChatStore]


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Postgres]:
    with postgres.server() as server:
        yield server


@pytest.fixture
def url(server: postgres.Postgres) -> Iterator[str]:
    with server.database() as url:
        yield url


@pytest.fixture
def opened(url: str) -> Iterator[Open]:
    """Opens the store as the machine with that fence."""
    made: list[ChatStore] = []

    def open_store(number: int, epoch: int = 1) -> ChatStore:
        made.append(ChatStore(database=SharedChat.opened(url, "telegram", Fence(epoch, number))))
        return made[-1]

    yield open_store
    for store in made:
        store.close()


def inbound(id: str, text: str = "hello") -> Inbound:
    return Inbound(id, "c", "me", text)


def test_what_one_machine_has_noted_the_next_one_knows(opened: Open) -> None:
    first = opened(1)
    files = (InboundFile("image", "ref", "a.png", 5), InboundFile("audio", "ref-2"))
    item = Inbound("id \ud800", "chat \x00", "me", "text \udfff\n", files, "Me", True)
    note, begun, done = (first.note("telegram", each) for each in (item, inbound("2"), inbound("3")))
    assert note is not None
    assert begun is not None
    assert done is not None
    first.begin(begun)
    first.end(done, "error")
    first.keep("telegram", "c", KeptChat("helper", "s1", seen=7))
    first.close()
    second = opened(2)
    assert second.note("telegram", item) is None
    assert second.waiting("telegram") == [note]
    assert second.interrupted("telegram") == [begun]
    assert second.failed("telegram", "c", done.id) == done
    assert second.last_ended("telegram", "c") == done.id
    assert second.conversation("telegram", "c") == KeptChat("helper", "s1", seen=7)
    second.end(begun, "success")
    assert second.interrupted("telegram") == []


def test_what_is_written_together_is_written_whole_or_not_at_all(opened: Open) -> None:
    store = opened(1)

    def fail() -> None:
        with store.together():
            store.note("telegram", inbound("1"))
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()
    assert store.waiting("telegram") == []
    with store.together():
        store.note("telegram", inbound("1"))
        store.note("telegram", inbound("2"))
    assert [note.inbound.id for note in store.waiting("telegram")] == ["1", "2"]


def test_a_machine_that_was_overtaken_writes_nothing_any_more(opened: Open) -> None:
    first = opened(1)
    note = first.note("telegram", inbound("1"))
    assert note is not None
    second = opened(2)
    with pytest.raises(ChatStoreLost):
        first.note("telegram", inbound("2"))
    with pytest.raises(ChatStoreLost):
        first.begin(note)
    with pytest.raises(ChatStoreLost), first.together():
        pytest.fail("it was begun")
    with pytest.raises(ChatStoreLost):
        opened(1)
    assert [each.inbound.id for each in second.waiting("telegram")] == ["1"]


def test_nobody_overtakes_in_the_middle_of_a_transaction(opened: Open, url: str) -> None:
    first = opened(1)
    with connect(url, shared.SCHEMA) as other, first.together():
        first.note("telegram", inbound("1"))
        other.execute("SET lock_timeout = 100")
        with pytest.raises(Exception, match="lock timeout"):
            other.execute("UPDATE platforms SET fence = 2")
    assert [each.inbound.id for each in opened(2).waiting("telegram")] == ["1"]


def test_fences_of_a_new_stream_count_from_the_beginning(opened: Callable[..., ChatStore]) -> None:
    opened(70, 1)
    assert opened(3, 2).waiting("telegram") == []
    with pytest.raises(ChatStoreLost):
        opened(71, 1)


async def test_a_server_that_does_not_answer_is_not_waited_for_long_and_what_was_refused_can_be_tried_again(
    opened: Open, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(1)
    monkeypatch.setattr(shared, "ANSWER_SECONDS", 0.1)
    with connect(url, shared.SCHEMA) as other, other.transaction():
        other.execute("SELECT * FROM platforms FOR UPDATE")
        for _ in range(3):
            with pytest.raises(ConfigError, match="cannot be used now") as caught:
                store.note("telegram", inbound("1"))
            assert caught.value.retryable
    monkeypatch.setattr(shared, "ANSWER_SECONDS", 60)

    def tried() -> bool:
        try:
            return store.note("telegram", inbound("1")) is not None
        except ConfigError:
            return False

    await until(tried)
    assert [each.inbound.id for each in store.waiting("telegram")] == ["1"]


def test_a_run_is_over_when_it_is_not_known_whether_something_was_written(
    opened: Open,
) -> None:
    store = opened(1)
    database = store.database
    assert isinstance(database, SharedChat)

    def broken() -> None:
        with store.together():
            store.note("telegram", inbound("1"))
            # The connection breaks before the commit.
            database._session.break_off()

    with pytest.raises(ChatStoreLost, match="not known"):
        broken()
    with pytest.raises(ChatStoreLost):
        store.waiting("telegram")
    assert opened(1).note("telegram", inbound("1")) is not None


async def test_messages_that_one_machine_left_are_sent_by_the_next_and_none_twice(opened: Open) -> None:
    rows = Rows(opened(1))
    kept = [rows.add("telegram", "c", TextBody(text)) for text in ("pending", "being sent", "sent")]
    rows.save(kept[1].replace(state=MessageState.SENDING, problem="a \0 and a \ud800"))
    rows.save(kept[2].replace(state=MessageState.SENT, shown=kept[2].body, message="m1"))
    rows.prune()
    platform = MemoryPlatform(LIMITS.replace(idempotent=False))
    platform.name = "telegram"
    outbox = Outbox(platform, opened(2))
    await outbox.start()
    await until(lambda: "pending" in platform.shown("c"))
    assert await outbox.drained(60)
    assert [row.body for row in outbox.unsettled()] == [TextBody("being sent")]
    assert "being sent" not in platform.shown("c")
    outbox._rows.tell([row.id for row in outbox.unsettled()])
    assert outbox._rows.untold("telegram", "c") == []
    assert outbox._rows.drop(outbox.unsettled()[0].id) is not None
    assert not outbox._rows.has_unsettled("telegram")
    await outbox.close()


def test_what_a_platform_remembers_is_there_for_the_next_machine(opened: Open) -> None:
    first = opened(1).database
    assert isinstance(first, SharedChat)
    assert first.recall() == b""
    first.remember(b"since 7")
    second = opened(2).database
    assert isinstance(second, SharedChat)
    assert second.recall() == b"since 7"
    with pytest.raises(ChatStoreLost):
        first.remember(b"since 8")
