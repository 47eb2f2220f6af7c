"""What Telegram delivers is read as what somebody said to the bot, or pressed, or as nothing."""

from __future__ import annotations

import copy
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.chat.platform import Inbound, InboundFile, Pressed
from trunkline.chat.telegram import updates

ME = updates.Me(4200, "trunk_bot")
PRIVATE = {"id": 7, "type": "private"}
GROUP = {"id": -10050, "type": "supergroup"}
ADA = {"id": 7, "is_bot": False, "first_name": "Ada", "last_name": "L"}
PHOTO = {"file_id": "p", "width": 90, "height": 90}
BOT = {"id": 4200, "is_bot": True, "first_name": "Trunk"}


def message(chat: dict[str, Any] = PRIVATE, **more: Any) -> dict[str, Any]:
    return {"update_id": 1, "message": {"message_id": 5, "date": 0, "chat": chat, "from": ADA, **more}}


def heard(update: dict[str, Any]) -> Inbound | None:
    read = updates.read(update, ME)
    assert read is None or isinstance(read.item, Inbound)
    return read.item if read else None  # type: ignore[return-value]  # just checked


def text_of(update: dict[str, Any]) -> str | None:
    item = heard(update)
    return item.text if item else None


def test_a_private_message_says_who_wrote_it_and_where() -> None:
    assert heard(message(text="Hi")) == Inbound("7/5", "7", "7", "Hi", (), "Ada L", True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@trunk_bot what time is it", "what time is it"),
        ("@Trunk_Bot: hello", "hello"),
        ("/status", "/status"),
        ("/status@trunk_bot all", "/status all"),
        ("/agent@TRUNK_BOT\nx", "/agent\nx"),
        ("/start", "/help"),
        ("/start payload", "/help payload"),
        ("/etc/passwd is odd", "/etc/passwd is odd"),
        ("/status@other_bot", None),
        ("@trunk_bots hello", None),
        ("good morning", None),
        ("", None),
    ],
)
def test_in_a_group_only_what_is_meant_for_the_bot_is_heard(text: str, said: str | None) -> None:
    assert text_of(message(GROUP, text=text)) == said


def test_a_mention_in_the_middle_is_heard_and_stays() -> None:
    text = "😀 hey @trunk_bot, look"
    entities = [{"type": "mention", "offset": 7, "length": 10}]
    assert text_of(message(GROUP, text=text, entities=entities)) == text


def test_a_mention_by_a_link_is_heard() -> None:
    entities = [{"type": "text_mention", "offset": 0, "length": 5, "user": BOT}]
    assert text_of(message(GROUP, text="Trunk, look", entities=entities)) == "Trunk, look"


def test_an_answer_to_the_bot_is_heard_without_quoting_it() -> None:
    replied = {"message_id": 4, "from": BOT, "text": "Shall I?"}
    assert text_of(message(GROUP, text="yes", reply_to_message=replied)) == "yes"


def test_what_somebody_else_wrote_comes_along_when_it_is_what_the_question_is_about() -> None:
    replied = {"message_id": 4, "from": {"id": 8, "is_bot": False}, "text": "E = mc2\nor so"}
    said = text_of(message(GROUP, text="@trunk_bot is that true?", reply_to_message=replied))
    assert said == "> E = mc2\n> or so\n\nis that true?"


def test_a_command_is_not_hidden_behind_a_quotation() -> None:
    replied = {"message_id": 4, "from": {"id": 8}, "text": "long text"}
    assert text_of(message(text="/stop", reply_to_message=replied)) == "/stop"


def test_bots_and_anonymous_senders_are_not_heard() -> None:
    assert heard(message(text="Hi", **{"from": {**ADA, "is_bot": True}})) is None
    update = message(text="Hi")
    del update["message"]["from"]
    assert heard(update) is None


def test_a_topic_of_a_forum_is_a_chat_of_its_own() -> None:
    item = heard(message(GROUP, text="/help", is_topic_message=True, message_thread_id=9))
    assert item is not None
    assert (item.chat, item.id) == ("-10050:9", "-10050/5")


@pytest.mark.parametrize(
    ("content", "file"),
    [
        (
            {"photo": [{"file_id": "s", "width": 9, "height": 9}, {"file_id": "L", "width": 90, "height": 90},
                       {"file_id": "m", "width": 30, "height": 30}]},
            InboundFile("image", "L", "photo.jpg"),
        ),
        ({"document": {"file_id": "D", "file_name": "a.pdf", "file_size": 3}}, InboundFile("file", "D", "a.pdf", 3)),
        (
            {"document": {"file_id": "D", "file_name": "a.png", "mime_type": "image/png"}},
            InboundFile("image", "D", "a.png"),
        ),
        ({"voice": {"file_id": "V"}}, InboundFile("audio", "V", "voice.ogg")),
        ({"audio": {"file_id": "A", "file_name": "s.mp3"}}, InboundFile("audio", "A", "s.mp3")),
        ({"video": {"file_id": "M"}}, InboundFile("video", "M", "video.mp4")),
        ({"animation": {"file_id": "G"}, "document": {"file_id": "G"}}, InboundFile("video", "G", "animation.mp4")),
        ({"sticker": {"file_id": "S"}}, InboundFile("image", "S", "sticker.webp")),
    ],
)  # fmt: skip
def test_attachments_come_with_their_type_and_without_a_text(content: dict[str, Any], file: InboundFile) -> None:
    item = heard(message(**content))
    assert item is not None
    assert (item.text, item.files) == ("", (file,))


def test_a_caption_is_the_text() -> None:
    assert text_of(message(caption="what is it?", document={"file_id": "D"})) == "what is it?"


def test_what_has_neither_text_nor_file_is_nothing() -> None:
    assert heard(message(new_chat_title="x")) is None
    assert updates.read({"update_id": 3, "poll": {}}, ME) is None


def test_the_pictures_of_an_album_are_one_message() -> None:
    first = message(media_group_id="A", document={"file_id": "D0"})
    second = message(media_group_id="A", document={"file_id": "D1"}, message_id=6, caption="two") | {"update_id": 2}
    batch = [first, second]
    [joined] = updates.joined([read for update in batch if (read := updates.read(update, ME))])
    assert isinstance(joined.item, Inbound)
    assert (joined.item.id, joined.item.text) == ("7/5", "two")
    assert [file.ref for file in joined.item.files] == ["D0", "D1"]


def test_an_album_in_a_group_is_heard_whole_though_one_of_it_has_the_mention() -> None:
    first = message(GROUP, media_group_id="A", document={"file_id": "D0"}, caption="@trunk_bot compare")
    second = message(GROUP, media_group_id="A", document={"file_id": "D1"})
    other = message(GROUP, media_group_id="B", document={"file_id": "D2"})
    albums = updates.albums_for([first, second, other], ME)
    assert [updates.read(update, ME, albums) is not None for update in (first, second, other)] == [True, True, False]


def test_a_pressed_button_says_who_and_under_which_message() -> None:
    query = {"id": "99", "from": ADA, "message": {"message_id": 6, "chat": GROUP}, "data": "yes:1"}
    read = updates.read({"update_id": 4, "callback_query": query}, ME)
    assert read == updates.Update(Pressed("99", "-10050", "7", "-10050/6", "yes:1"))


@pytest.mark.parametrize(
    "update",
    [
        {"message": None},
        {"message": {"message_id": 1, "from": ADA}},
        {"message": {"chat": PRIVATE, "from": ADA, "text": "x"}},
        {"message": {"message_id": 1, "chat": PRIVATE, "from": ADA, "text": "x", "entities": [{}]}},
        {"callback_query": {"id": 1, "data": "x", "message": {}}},
    ],
)
def test_what_has_not_the_documented_shape_is_refused_and_nothing_worse(update: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Error"):
        updates.read({"update_id": 1} | update, ME)


def test_updates_without_a_number_are_left_out_and_the_others_put_in_order() -> None:
    found = [{"update_id": 9}, {"update_id": "x"}, None, {"update_id": 3}]
    assert [update["update_id"] for update in updates.in_order(found)] == [3, 9]
    assert updates.in_order({"no": "list"}) == []


@pytest.mark.parametrize(
    ("date", "at"), [(1700000000, 1700000000.0), (0, None), ("x", None), pytest.param(10**400, None, id="huge")]
)
def test_a_message_says_when_it_was_written(date: Any, at: float | None) -> None:
    item = heard(message(text="Hi", date=date))
    assert item is not None
    assert item.at == at


@pytest.mark.parametrize("chat", [PRIVATE, GROUP])
@pytest.mark.parametrize("field", ["text", "caption"])
def test_a_command_for_another_bot_is_not_heard_anywhere(chat: dict[str, Any], field: str) -> None:
    assert heard(message(chat, **{field: "/stop@other_bot now", "media_group_id": "a"})) is None
    assert text_of(message(PRIVATE, text="/stop@other_bot's are no commands")) is not None


def test_an_odd_picture_of_an_album_is_passed_over_with_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    odd = [{"type": "text_mention", "offset": 0, "length": 2}]
    album = [
        message(GROUP, media_group_id="a", caption="hi", caption_entities=odd),
        message(GROUP, media_group_id="a", caption="@trunk_bot look", photo=[PHOTO]),
    ]
    with caplog.at_level(logging.WARNING):
        found = updates.joined(updates.heard(album, ME))
    assert [update.item.text for update in found if isinstance(update.item, Inbound)] == ["look"]
    assert "cannot be read: KeyError: 'user'" in caplog.text


#: One of everything that is read.
EVERYTHING: list[dict[str, Any]] = [
    message(
        GROUP,
        text="@trunk_bot hi",
        entities=[
            {"type": "mention", "offset": 0, "length": 10},
            {"type": "text_mention", "offset": 1, "length": 2, "user": BOT},
        ],
        quote={"text": "this"},
        reply_to_message={"message_id": 2, "chat": GROUP, "from": BOT, "text": "that"},
        is_topic_message=True,
        message_thread_id=3,
    ),
    message(
        media_group_id="a",
        caption="what is this?",
        caption_entities=[{"type": "text_mention", "offset": 0, "length": 2, "user": BOT}],
        photo=[PHOTO],
        sticker={"file_id": "s", "is_animated": False},
        document={"file_id": "d", "file_name": "x.txt", "mime_type": "text/plain", "file_size": 3},
        voice={"file_id": "v"},
    ),
    {
        "update_id": 2,
        "callback_query": {
            "id": "q",
            "from": ADA,
            "data": "yes",
            "message": {"message_id": 4, "date": 0, "chat": GROUP},
        },
    },
]

ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    # Copied: what is put into an update may be changed there.
    st.sampled_from([[], {}, [None], [[]], {"id": None}, [{}], "\ud800", 10**400, -1]).map(copy.deepcopy),
)  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every member within, as what it is in and its name there."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for name, member in members for place in [(value, name), *places(member)]]


@given(st.data())
def test_whatever_an_update_holds_or_lacks_nothing_is_raised_and_the_others_are_heard(data: st.DataObject) -> None:
    batch = copy.deepcopy(EVERYTHING)
    for _ in range(data.draw(st.integers(1, 3))):
        found = places(batch)
        holder, name = found[data.draw(st.integers(0, len(found) - 1))]
        if data.draw(st.booleans()):
            del holder[name]
        else:
            holder[name] = data.draw(ODD)
    whole = message(text="still here") | {"update_id": 99}
    heard = updates.joined(updates.heard([*updates.in_order(batch), whole], ME))
    assert heard[-1].item.text == "still here"  # type: ignore[union-attr]  # it is an `Inbound`
    for update in heard:
        for file in update.item.files if isinstance(update.item, Inbound) else ():
            assert isinstance(file.ref, str)
            assert file.size is None or isinstance(file.size, int)
