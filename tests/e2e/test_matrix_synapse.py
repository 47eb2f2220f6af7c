"""The Matrix platform against a real homeserver, with people who write by plain HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require
from tests.support.mcp_environment import INSTALL_SECONDS
from tests.support.patience import PATIENCE_SECONDS
from tests.support.synapse import MOST_UPLOAD_BYTES, Person, Server, homeserver
from trunkline.chat.matrix.content import TEXT_BYTES
from trunkline.chat.matrix.platform import ENCRYPTED, MatrixPlatform
from trunkline.chat.platform import Button, Inbound, NotNow, Pressed, SendFailed
from trunkline.core.faults import ConfigError

# The first run makes the environment.
pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(2 * INSTALL_SECONDS)]

TEXT = "**Done.** See:\n\n```py\nprint(1 < 2)\n```"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    require("matrix-nio", find_spec("nio") is not None, "pip install -e '.[matrix]'")
    with homeserver(tmp_path_factory.mktemp("synapse")) as made:
        yield made


@pytest.fixture
async def ann(server: Server) -> AsyncIterator[Person]:
    async with await server.person("ann") as person:
        yield person


@pytest.fixture
async def bot(server: Server) -> AsyncIterator[Person]:
    async with await server.person("bot") as person:
        yield person


class Received:
    """A platform that is open, and what it brings."""

    def __init__(self, platform: MatrixPlatform) -> None:
        self.platform = platform
        self._items = aiter(platform.receive())

    async def next(self) -> Inbound | Pressed:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await anext(self._items)

    async def message(self) -> Inbound:
        item = await self.next()
        assert isinstance(item, Inbound)
        return item

    async def texts(self, number: int) -> list[str]:
        return [(await self.message()).text for _ in range(number)]


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "state")


@asynccontextmanager
async def opened(server: Server, state: str, friend: Person, **credentials: Any) -> AsyncIterator[Received]:
    platform = MatrixPlatform(server.url, state_dir=state, may_invite=lambda sender: sender == friend.id, **credentials)
    try:
        await platform.open()
        yield Received(platform)
    finally:
        await platform.close()


@asynccontextmanager
async def in_a_room(server: Server, state: str, ann: Person, bot: Person) -> AsyncIterator[tuple[Received, str]]:
    """The bot in a room with somebody who has said hello."""
    async with opened(server, state, ann, token=bot.token) as received:
        room = await ann.make_room(bot.id)
        await ann.say(room, "hello")
        assert await received.texts(1) == ["hello"]
        yield received, room


async def test_an_invited_bot_comes_and_hears_what_was_said_since(
    server: Server, state: str, ann: Person, bot: Person
) -> None:
    room = await ann.make_room()
    await ann.say(room, "before it was there")
    async with opened(server, state, ann, token=bot.token) as received:
        await ann.do(room, "invite", bot.id)
        event = await ann.say(room, "welcome")
        message = await received.message()
    assert message.id == event
    assert (message.chat, message.sender, message.text) == (room, ann.id, "welcome")
    assert message.private
    assert message.sender_name == ann.id[1:].partition(":")[0]


async def test_a_stranger_s_invitation_is_declined(server: Server, state: str, ann: Person, bot: Person) -> None:
    async with await server.person("eve") as eve, in_a_room(server, state, ann, bot) as (received, room):
        other = await eve.make_room(bot.id)
        await ann.say(room, "still there?")
        assert await received.texts(1) == ["still there?"]
        left = await eve.hear(other, lambda event: event.get("state_key") == bot.id and event["sender"] == bot.id)
    assert left["content"]["membership"] == "leave"


async def test_an_answer_is_formatted_sent_once_and_changed(
    server: Server, state: str, ann: Person, bot: Person
) -> None:
    async with in_a_room(server, state, ann, bot) as (received, room):
        hello = next(event for event in await ann.timeline(room) if event["content"].get("body") == "hello")
        first = await received.platform.send(room, TEXT, key="k-1", reply_to=hello["event_id"])
        again = await received.platform.send(room, TEXT, key="k-1", reply_to=hello["event_id"])
        await received.platform.edit(room, first, "Done *twice*.")
        said, changed = await ann.messages(room, bot.id)
    assert first == again
    assert said["formatted_body"].endswith('<pre><code class="language-py">print(1 &lt; 2)\n</code></pre>')
    assert said["m.relates_to"]["m.in_reply_to"]["event_id"] == hello["event_id"]
    assert changed["m.relates_to"] == {"rel_type": "m.replace", "event_id": first}
    assert changed["m.new_content"]["formatted_body"] == "<p>Done <em>twice</em>.</p>"


async def test_a_key_is_known_after_a_restart_too(server: Server, state: str, ann: Person, bot: Person) -> None:
    async with in_a_room(server, state, ann, bot) as (received, room):
        first = await received.platform.send(room, "once", key="k-1")
    async with opened(server, state, ann, user=bot.id, password=bot.password) as received:
        one = await received.platform.send(room, "by password", key="k-2")
    async with opened(server, state, ann, user=bot.id, password=bot.password) as received:
        assert await received.platform.send(room, "by password", key="k-2") == one
    async with opened(server, state, ann, token=bot.token) as received:
        assert await received.platform.send(room, "once", key="k-1") == first
    assert [content["body"] for content in await ann.messages(room, bot.id)] == ["once", "by password"]


@pytest.mark.parametrize("unit", ["<", "🙂"])
async def test_the_longest_text_is_taken_also_as_a_change(
    server: Server, state: str, ann: Person, bot: Person, unit: str
) -> None:
    text = unit * (TEXT_BYTES // len(unit.encode()))
    async with in_a_room(server, state, ann, bot) as (received, room):
        message = await received.platform.send(room, text, key="k", buttons=[Button("Go", "g")])
        await received.platform.edit(room, message, text, buttons=[Button("Go", "g")])


async def test_people_see_that_it_writes(server: Server, state: str, ann: Person, bot: Person) -> None:
    async with in_a_room(server, state, ann, bot) as (received, room):
        await received.platform.typing(room)
        await ann.hear(room, lambda event: event["type"] == "m.typing" and bot.id in event["content"]["user_ids"])


async def test_a_button_is_pressed_also_after_a_restart(server: Server, state: str, ann: Person, bot: Person) -> None:
    buttons = [Button("✅ Approve", "a:1"), Button("❌ Deny", "d:1")]
    async with in_a_room(server, state, ann, bot) as (received, room):
        message = await received.platform.send(room, "May I?", key="k", buttons=buttons)
        press = await ann.react(room, message, "✅ Approve")
        assert await received.next() == Pressed(press, room, ann.id, message, "a:1")
    async with opened(server, state, ann, token=bot.token) as received:
        # It was not confirmed.
        assert await received.next() == Pressed(press, room, ann.id, message, "a:1")
        press = await ann.react(room, message, "❌ Deny")
        assert await received.next() == Pressed(press, room, ann.id, message, "d:1")


async def test_buttons_go_with_the_decision(server: Server, state: str, ann: Person, bot: Person) -> None:
    async with in_a_room(server, state, ann, bot) as (received, room):
        message = await received.platform.send(room, "May I?", key="k", buttons=[Button("Approve", "a:1")])
        (sign,) = [event for event in await ann.timeline(room) if event["type"] == "m.reaction"]
        assert sign["content"]["m.relates_to"]["key"] == "Approve"
        await received.platform.edit(room, message, "Approved.")
        (sign,) = [event for event in await ann.timeline(room) if event["type"] == "m.reaction"]
        assert sign["content"] == {}
    # Another run knows only what the message says now.
    async with opened(server, state, ann, token=bot.token) as received:
        await ann.react(room, message, "Approve")
        await ann.say(room, "fine")
        texts = [item.text for item in [await received.next(), await received.next()] if isinstance(item, Inbound)]
        assert texts == ["hello", "fine"]


async def test_files_go_both_ways(server: Server, state: str, ann: Person, bot: Person, tmp_path: Path) -> None:
    async with in_a_room(server, state, ann, bot) as (received, room):
        platform = received.platform
        assert platform.limits.file_bytes == MOST_UPLOAD_BYTES
        ref = await ann.upload(b"\x89PNG data", "image/png")
        await ann.send(room, {"msgtype": "m.image", "body": "cat.png", "url": ref, "info": {"size": 9}})
        message = await received.message()
        (file,) = message.files
        assert (message.text, file.type, file.name, file.size) == ("", "image", "cat.png", 9)
        await platform.fetch(file, str(tmp_path / "got"))
        (tmp_path / "report.txt").write_bytes(b"r" * 100_000)
        await platform.send_file(room, str(tmp_path / "report.txt"), type="file", name="report.txt", key="k")
        (sent,) = await ann.messages(room, bot.id)
        assert sent["msgtype"] == "m.file"
        assert await ann.download(sent["url"]) == b"r" * 100_000
    assert (tmp_path / "got").read_bytes() == b"\x89PNG data"


async def test_a_restart_loses_nothing_and_repeats_only_what_was_not_taken(
    server: Server, state: str, ann: Person, bot: Person
) -> None:
    async with in_a_room(server, state, ann, bot) as (received, room):
        await ann.say(room, "one")
        await ann.say(room, "two")
        assert await received.texts(2) == ["one", "two"]
        await ann.say(room, "three")
        assert await received.texts(1) == ["three"]
    # More than one answer to `/sync` holds.
    said = [f"while it was away {number}" for number in range(130)]
    for text in said:
        await ann.say(room, text)
    async with opened(server, state, ann, token=bot.token) as received:
        assert await received.texts(131) == ["three", *said]
        await ann.say(room, "and now")
        assert await received.texts(1) == ["and now"]
    async with opened(server, state, ann, token=bot.token) as received:
        assert await received.texts(1) == ["and now"]


async def test_its_own_words_notices_and_changes_are_not_heard(
    server: Server, state: str, ann: Person, bot: Person
) -> None:
    async with in_a_room(server, state, ann, bot) as (received, room):
        await received.platform.send(room, "my own", key="k")
        await ann.send(room, {"msgtype": "m.notice", "body": "beep"})
        event = await ann.say(room, "helo")
        relation = {"rel_type": "m.replace", "event_id": event}
        new = {"msgtype": "m.text", "body": "hello"}
        await ann.say(room, "* hello", **{"m.relates_to": relation, "m.new_content": new})
        quoting = {"m.in_reply_to": {"event_id": event}}
        await ann.say(room, f"> <{ann.id}> helo\n\nwell", **{"m.relates_to": quoting})
        assert await received.texts(2) == ["helo", "well"]


async def test_an_encrypted_room_is_told_once(server: Server, state: str, ann: Person, bot: Person) -> None:
    encryption = {"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}
    async with in_a_room(server, state, ann, bot) as (received, room):
        secret = await ann.make_room(bot.id, initial_state=[encryption])
        cipher = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x", "session_id": "s", "sender_key": "k"}
        for _ in range(2):
            await ann.send(secret, cipher, "m.room.encrypted")
        await ann.hear(secret, lambda event: event.get("state_key") == bot.id)
        waiting = asyncio.ensure_future(received.texts(1))
        await ann.hear(secret, lambda event: event["content"].get("body") == ENCRYPTED)
        await ann.say(room, "here then")
        assert await waiting == ["here then"]
        (told,) = await ann.messages(secret, bot.id)
    assert told["msgtype"] == "m.notice"


async def test_too_many_messages_are_refused_for_now_with_a_time(
    server: Server, state: str, ann: Person, bot: Person
) -> None:
    async with await server.person("root", admin=True) as root, in_a_room(server, state, ann, bot) as (received, room):
        limit = {"messages_per_second": 1, "burst_count": 1}
        await root.call("POST", f"/_synapse/admin/v1/users/{bot.id}/override_ratelimit", limit)

        async def insist() -> None:
            for number in range(20):
                await received.platform.send(room, "again", key=f"k{number}")

        with pytest.raises(NotNow) as raised:
            await insist()
        assert raised.value.seconds is not None
        assert 0 < raised.value.seconds <= 60


async def test_a_room_that_it_was_thrown_out_of_takes_nothing_and_others_go_on(
    server: Server, state: str, ann: Person, bot: Person
) -> None:
    async with in_a_room(server, state, ann, bot) as (received, room):
        other = await ann.make_room(bot.id)
        await ann.do(room, "kick", bot.id)
        with pytest.raises(SendFailed, match="M_FORBIDDEN") as raised:
            await received.platform.send(room, "hello?", key="k")
        assert type(raised.value).__mro__[1] is SendFailed
        await ann.say(other, "over here")
        message = await received.message()
        assert (message.chat, message.text) == (other, "over here")


async def test_a_wrong_token_and_a_wrong_password_are_said_so(server: Server, state: str, ann: Person) -> None:
    with pytest.raises(ConfigError, match="does not accept the access token"):
        async with opened(server, state, ann, token="syt_nobody"):
            pass
    with pytest.raises(ConfigError, match="rejected the login"):
        async with opened(server, state, ann, user=ann.id, password="wrong"):
            pass


async def test_a_token_that_is_taken_back_ends_it(server: Server, state: str, ann: Person, bot: Person) -> None:
    async with in_a_room(server, state, ann, bot) as (received, _):
        await bot.call("POST", "/_matrix/client/v3/logout/all", {})
        with pytest.raises(ConfigError, match="does not accept the access token"):
            await received.next()


async def test_a_password_gets_another_token(server: Server, state: str, ann: Person, bot: Person) -> None:
    async with opened(server, state, ann, user=bot.id, password=bot.password) as received:
        room = await ann.make_room(bot.id)
        await ann.say(room, "hello")
        assert await received.texts(1) == ["hello"]
        await bot.call("POST", "/_matrix/client/v3/logout/all", {})
        await ann.say(room, "still there?")
        assert await received.texts(1) == ["still there?"]
        await received.platform.send(room, "yes", key="k")
        assert [content["body"] for content in await ann.messages(room, bot.id)] == ["yes"]
