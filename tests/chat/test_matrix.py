"""A Matrix account as a platform, against a homeserver that answers as told."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require
from tests.support import loop
from tests.support.patience import PATIENCE_SECONDS
from tests.support.synapse_scripted import ME, Answer, Asked, Scripted, scripted
from trunkline.chat.matrix import client, stream
from trunkline.chat.matrix.content import BUTTONS
from trunkline.chat.matrix.platform import ENCRYPTED, MatrixPlatform
from trunkline.chat.platform import Button, Inbound, InboundFile, NotNow, Pressed, SendFailed, Unclear

ROOM = "!room:here"
ANN = "@ann:here"
YES, NO = Button("✅ Approve", "a:1"), Button("❌ Deny", "d:1")
HELLO = {"type": "m.room.message", "event_id": "$hello", "sender": ANN, "content": {"msgtype": "m.text", "body": "hi"}}


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    require("matrix-nio", find_spec("nio") is not None, "pip install -e '.[matrix]'")
    async with scripted() as made:
        made.answers("/send/", lambda asked: (200, {"event_id": f"$event{len(made.requests('/send/'))}"}))
        made.answers("/redact/", lambda _: (200, {"event_id": "$gone"}))
        made.answers("/joined_members", lambda _: (200, {"joined": {ME: {}, ANN: {"display_name": "Ann"}}}))
        yield made


@pytest.fixture
async def platform(server: Scripted, tmp_path: Path) -> AsyncIterator[MatrixPlatform]:
    made = MatrixPlatform(server.url, token="t", state_dir=str(tmp_path / "state"), may_invite=lambda who: who == ANN)
    await made.open()
    yield made
    await made.close()


def news(server: Scripted, *batches: list[dict[str, Any]]) -> None:
    """The rooms' news; then there are none, for as long as anybody waits."""

    def sync(asked: Asked) -> tuple[int, dict[str, Any]]:
        number = int(asked.query.get("since", "0"))
        if number == len(batches):
            server.silent = "/sync"
        timeline = {"timeline": {"events": batches[number - 1] if number else []}}
        return 200, {"next_batch": str(number + 1), "rooms": {"join": {ROOM: timeline}}}

    server.answers("/sync", sync)


def reaction(event: str, message: str, key: str, sender: str = ANN) -> dict[str, Any]:
    relation = {"rel_type": "m.annotation", "event_id": message, "key": key}
    return {"type": "m.reaction", "event_id": event, "sender": sender, "content": {"m.relates_to": relation}}


async def first(platform: MatrixPlatform) -> Inbound | Pressed:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await anext(aiter(platform.receive()))


async def test_a_message_comes_with_its_sender_s_name_and_whether_it_is_private(
    server: Scripted, platform: MatrixPlatform
) -> None:
    news(server, [HELLO])
    assert await first(platform) == Inbound("$hello", ROOM, ANN, "hi", sender_name="Ann", private=True)


async def test_a_room_of_three_is_not_private_and_one_that_nobody_knows_is_not_either(
    server: Scripted, platform: MatrixPlatform
) -> None:
    moved = {"type": "m.room.member", "state_key": "@eve:here", "content": {"membership": "join"}}
    news(server, [HELLO, moved, {**HELLO, "event_id": "$2"}, moved, {**HELLO, "event_id": "$3"}])
    two: dict[str, Any] = {ME: {}, ANN: {}}
    answers: list[Answer] = [(200, {"joined": two}), (200, {"joined": {**two, "@eve:here": {}}}), (500, {})]
    server.answers("/joined_members", lambda _: answers.pop(0))
    receiving = aiter(platform.receive())
    found = [await anext(receiving) for _ in range(3)]
    assert [item.private for item in found if isinstance(item, Inbound)] == [True, False, False]


async def test_a_message_is_sent_under_its_key(server: Scripted, platform: MatrixPlatform) -> None:
    assert await platform.send(ROOM, "**hi**", key="key-1", reply_to="$hello") == "$event1"
    (asked,) = server.requests("/send/")
    assert asked.path == f"/_matrix/client/v3/rooms/{ROOM}/send/m.room.message/key-1"
    assert asked.data["formatted_body"] == "<p><strong>hi</strong></p>"
    assert asked.data["m.relates_to"] == {"m.in_reply_to": {"event_id": "$hello"}}


async def test_a_key_of_any_form_is_one_and_the_same_transaction(server: Scripted, platform: MatrixPlatform) -> None:
    for key in ("../../x", "../../x", "../../y"):
        await platform.send(ROOM, "hi", key=key)
    first_id, again, other = (asked.path.rpartition("/")[2] for asked in server.requests("/send/"))
    assert first_id == again != other
    assert first_id.isalnum()


async def test_an_answer_to_a_message_in_a_thread_stays_in_it(server: Scripted, platform: MatrixPlatform) -> None:
    relation = {"rel_type": "m.thread", "event_id": "$root"}
    news(server, [{**HELLO, "content": {"msgtype": "m.text", "body": "hi", "m.relates_to": relation}}])
    await first(platform)
    await platform.send(ROOM, "ho", key="k", reply_to="$hello")
    assert server.requests("/send/")[0].data["m.relates_to"]["event_id"] == "$root"


async def test_buttons_are_signs_that_come_and_go_with_the_message(server: Scripted, platform: MatrixPlatform) -> None:
    message = await platform.send(ROOM, "ok?", key="k", buttons=[YES, NO])
    put = [asked.data["m.relates_to"]["key"] for asked in server.requests("/send/m.reaction/")]
    assert put == ["✅ Approve", "❌ Deny"]
    await platform.edit(ROOM, message, "ok? (asked again)", buttons=[YES, NO])
    assert len(server.requests("/send/m.reaction/")) == 2
    await platform.edit(ROOM, message, "approved")
    assert [asked.path.split("/")[-2] for asked in server.requests("/redact/")] == ["$event2", "$event3"]


async def test_a_press_is_known_by_its_sign_and_others_are_nothing(server: Scripted, platform: MatrixPlatform) -> None:
    message = await platform.send(ROOM, "ok?", key="k", buttons=[YES, NO])
    news(server, [reaction("$r1", message, "👍"), reaction("$r2", message, "✅\ufe0f Approve")])
    assert await first(platform) == Pressed("$r2", ROOM, ANN, message, "a:1")


async def test_a_press_after_a_restart_is_known_from_the_message_itself(
    server: Scripted, platform: MatrixPlatform
) -> None:
    ours = {"sender": ME, "content": {BUTTONS: {"✅ Approve": "a:1"}}}
    theirs = {"sender": "@eve:here", "content": {BUTTONS: {"✅ Approve": "a:2"}}}
    server.answers("/event/", lambda asked: (200, ours if asked.path.endswith("$ours") else theirs))
    news(server, [reaction("$r1", "$theirs", "✅ Approve"), reaction("$r2", "$ours", "✅ Approve")])
    assert await first(platform) == Pressed("$r2", ROOM, ANN, "$ours", "a:1")


async def test_what_a_stranger_reacts_to_is_not_looked_at(server: Scripted, platform: MatrixPlatform) -> None:
    server.answers("/event/", lambda _: (200, {"sender": ME, "content": {BUTTONS: {"Approve": "a:1"}}}))
    news(server, [reaction("$r1", "$ours", "Approve", "@eve:here"), HELLO])
    assert isinstance(await first(platform), Inbound)
    assert server.requests("/event/") == []


async def test_a_press_is_not_lost_because_the_connection_breaks(
    server: Scripted, platform: MatrixPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "FIRST_WAIT_SECONDS", 0.01)
    answers: list[Answer] = [(503, {}), None, (200, {"sender": ME, "content": {BUTTONS: {"Approve": "a:1"}}})]
    server.answers("/event/", lambda _: answers.pop(0))
    news(server, [reaction("$r1", "$ours", "Approve")])
    assert await first(platform) == Pressed("$r1", ROOM, ANN, "$ours", "a:1")


async def test_a_message_whose_buttons_fail_is_sent_all_the_same(server: Scripted, platform: MatrixPlatform) -> None:
    server.always("/send/m.reaction/", (403, {"errcode": "M_FORBIDDEN"}))
    assert await platform.send(ROOM, "ok?", key="k", buttons=[YES, NO]) == "$event1"


async def test_a_room_is_told_once_that_encrypted_messages_cannot_be_read(
    server: Scripted, platform: MatrixPlatform, tmp_path: Path
) -> None:
    secret = {"type": "m.room.encrypted", "event_id": "$1", "sender": ANN, "content": {"algorithm": "x"}}
    news(server, [secret, {**secret, "event_id": "$2"}, HELLO])
    await first(platform)
    assert [asked.data["body"] for asked in server.requests("/send/")] == [ENCRYPTED]
    async with asyncio.timeout(PATIENCE_SECONDS):
        again = MatrixPlatform(server.url, token="t", state_dir=str(tmp_path / "state"))
        await again.open()
        server.silent = None
        news(server, [], [secret, HELLO])
        await first(again)
        await again.close()
    assert len(server.requests("/send/")) == 1


async def test_each_failure_says_whether_the_message_was_taken(
    server: Scripted, platform: MatrixPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failure() -> SendFailed:
        with pytest.raises(SendFailed) as raised:
            await platform.send(ROOM, "hi", key="k")
        return raised.value

    server.always("/send/", (429, {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 1500}))
    error = await failure()
    assert isinstance(error, NotNow)
    assert error.seconds == 1.5
    for status, code in ((403, "M_FORBIDDEN"), (404, "M_NOT_FOUND"), (413, "M_TOO_LARGE")):
        server.always("/send/", (status, {"errcode": code, "error": "no"}))
        error = await failure()
        assert code in str(error)
        assert not isinstance(error, NotNow | Unclear)
    server.always("/send/", (401, {"errcode": "M_UNKNOWN_TOKEN"}))
    assert isinstance(await failure(), NotNow)
    unclear: list[Answer] = [(502, {}), None, (200, {}), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"]
    for answer in unclear:
        server.always("/send/", answer)
        assert isinstance(await failure(), Unclear), answer
    monkeypatch.setattr(client, "ANSWER_SECONDS", 0.2)
    server.silent = "/send/"
    assert isinstance(await failure(), Unclear)


async def test_a_failure_to_show_that_we_write_is_nobody_s_concern(server: Scripted, platform: MatrixPlatform) -> None:
    await platform.typing(ROOM)
    (asked,) = server.requests("/typing/")
    assert asked.data["typing"] is True


async def test_a_file_is_uploaded_and_then_sent(server: Scripted, platform: MatrixPlatform, tmp_path: Path) -> None:
    server.always("/upload", (200, {"content_uri": "mxc://here/1"}))
    path = tmp_path / "plot.png"
    path.write_bytes(b"x" * 1000)
    await platform.send_file(ROOM, str(path), type="image", name="plot.png", key="k")
    assert server.requests("/upload")[0].body == b"x" * 1000
    assert server.requests("/upload")[0].headers["content-type"] == "image/png"
    (sent,) = server.requests("/send/")
    assert sent.data["url"] == "mxc://here/1"
    assert sent.data["info"] == {"mimetype": "image/png", "size": 1000}


async def test_a_file_that_cannot_be_sent_is_told_from_one_that_may_be_later(
    server: Scripted, platform: MatrixPlatform, tmp_path: Path
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    server.always("/upload", None)
    with pytest.raises(NotNow):
        await platform.send_file(ROOM, str(path), type="file", name="f", key="k")
    path.write_bytes(b"x" * 1001)
    with pytest.raises(SendFailed, match="1001 bytes"):
        await platform.send_file(ROOM, str(path), type="file", name="f", key="k")
    with pytest.raises(SendFailed, match="cannot be read"):
        await platform.send_file(ROOM, str(tmp_path / "none"), type="file", name="f", key="k")
    assert not server.requests("/send/")


async def test_a_file_is_saved_whole_or_not_at_all(server: Scripted, platform: MatrixPlatform, tmp_path: Path) -> None:
    def data(size: int) -> bytes:
        return b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size

    place = tmp_path / "files"
    place.mkdir()
    path = str(place / "a")
    server.always("/media/download/here/1", data(1000))
    await platform.fetch(InboundFile("image", "mxc://here/1"), path)
    assert os.stat(path).st_size == 1000
    os.unlink(path)
    bad: list[tuple[Answer, str]] = [
        (data(1001), "larger"),
        (data(900)[:-1], "was lost"),
        ((404, {"errcode": "M_NOT_FOUND"}), "M_NOT_FOUND"),
    ]
    for answer, problem in bad:
        server.always("/media/download/here/1", answer)
        with pytest.raises(SendFailed, match=problem):
            await asyncio.wait_for(platform.fetch(InboundFile("image", "mxc://here/1"), path), PATIENCE_SECONDS)
    for ref, size in (("mxc://here/../1", None), ("mxc://here/1", 1001)):
        with pytest.raises(SendFailed):
            await platform.fetch(InboundFile("image", ref, size=size), path)
    assert os.listdir(place) == []


async def test_closing_ends_what_waits_and_may_be_repeated(server: Scripted, platform: MatrixPlatform) -> None:
    news(server)
    server.silent = "/sync"
    waiting = asyncio.ensure_future(first(platform))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await loop.until(lambda: server.requests("/sync"))
        await platform.close()
        await platform.close()
        with pytest.raises(StopAsyncIteration):
            await waiting
    with pytest.raises(NotNow):
        await platform.send(ROOM, "hi", key="k")
