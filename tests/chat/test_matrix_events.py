"""What is made of the homeserver's words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.chat.matrix.events import (
    EncryptedMessage,
    MatrixMessage,
    Moved,
    Reaction,
    happened,
    media,
    names,
    read,
    since_we_came,
)
from trunkline.chat.platform import InboundFile

ME = "@bot:here"
ANN = "@ann:here"
ROOM = "!room:here"


def event(content: Any, type: str = "m.room.message", **more: Any) -> dict[str, Any]:
    return {"type": type, "event_id": "$1", "sender": ANN, "content": content, **more}


def text(body: str, **more: Any) -> dict[str, Any]:
    return event({"msgtype": "m.text", "body": body, **more})


def member(who: str, membership: str, before: str | None = None) -> dict[str, Any]:
    unsigned = {"prev_content": {"membership": before}} if before else {}
    return event({"membership": membership}, "m.room.member", state_key=who, unsigned=unsigned)


def heard(*events: dict[str, Any]) -> list[Any]:
    return list(happened(ROOM, events, ME))


def said(content: dict[str, Any]) -> Any:
    (message,) = heard(event(content))
    return message


def test_what_somebody_wrote_is_a_message() -> None:
    assert heard(text("hello")) == [MatrixMessage("$1", ROOM, ANN, "hello")]


def test_what_we_wrote_ourselves_and_what_programs_write_is_not_heard() -> None:
    assert heard({**text("hello"), "sender": ME}) == []
    assert heard(event({"msgtype": "m.notice", "body": "beep"})) == []


def test_a_change_of_a_message_is_not_heard_as_another() -> None:
    relation = {"rel_type": "m.replace", "event_id": "$0"}
    new = {"msgtype": "m.text", "body": "helo"}
    assert heard(text("* hello", **{"m.relates_to": relation, "m.new_content": new})) == []


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("> <@bob:here> is it so?\n> really?\n\nyes\n> or no", "yes\n> or no"),
        ("> * <@bob:here> waves\n\nhi", "hi"),
        ("> a quotation of my own\n\nsee?", "> a quotation of my own\n\nsee?"),
    ],
)
def test_the_quotation_at_the_head_of_a_reply_is_left_out(body: str, left: str) -> None:
    assert said({"msgtype": "m.text", "body": body, "m.relates_to": {"m.in_reply_to": {"event_id": "$0"}}}).text == left


def test_a_quotation_stays_where_nothing_is_replied_to() -> None:
    assert said({"msgtype": "m.text", "body": "> <@bob:here> x\n\ny"}).text == "> <@bob:here> x\n\ny"


def test_a_message_in_a_thread_knows_where_the_thread_began() -> None:
    relation = {"rel_type": "m.thread", "event_id": "$root", "m.in_reply_to": {"event_id": "$0"}}
    assert said({"msgtype": "m.text", "body": "x", "m.relates_to": relation}).thread == "$root"


def test_a_file_comes_with_its_name_size_and_caption() -> None:
    content = {"msgtype": "m.image", "url": "mxc://here/abc", "body": "a.png", "info": {"size": 3}}
    file = InboundFile("image", "mxc://here/abc", "a.png", 3)
    assert said(content) == MatrixMessage("$1", ROOM, ANN, "", (file,))
    captioned = {**content, "filename": "a.png", "body": "what is this?"}
    assert said(captioned) == MatrixMessage("$1", ROOM, ANN, "what is this?", (file,))


@pytest.mark.parametrize(
    "ref", ["http://here/abc", "mxc://here/../../x", "mxc://here/a/b", "mxc://he%2Fre/a", "mxc://here/", 7]
)
def test_a_file_that_is_elsewhere_comes_as_one_that_cannot_be_had(ref: Any) -> None:
    message = said({"msgtype": "m.file", "url": ref, "body": "x"})
    assert message == MatrixMessage("$1", ROOM, ANN, "", (InboundFile("file", "", "x"),))
    assert media("") is None


@pytest.mark.parametrize(
    ("stamp", "at"),
    [
        (1700000000500, 1700000000.5),
        (None, None),
        ("1", None),
        (True, None),
        (-1, None),
        (0, None),
        pytest.param(10**400, None, id="huge"),
    ],
)
def test_a_message_says_when_it_was_written_if_that_is_a_time(stamp: Any, at: float | None) -> None:
    (message,) = heard({**text("hello"), "origin_server_ts": stamp})
    assert message.at == at


def test_the_address_of_a_file_has_two_parts() -> None:
    assert media("mxc://matrix.org:8448/aB_-9") == ("matrix.org:8448", "aB_-9")


def test_a_reaction_says_what_was_put_where() -> None:
    relation = {"rel_type": "m.annotation", "event_id": "$0", "key": "👍"}
    assert heard(event({"m.relates_to": relation}, "m.reaction")) == [Reaction("$1", ROOM, ANN, "$0", "👍")]


def test_something_encrypted_is_noticed_unless_it_was_taken_back() -> None:
    assert heard(event({"algorithm": "x"}, "m.room.encrypted")) == [EncryptedMessage("$1", ROOM, ANN)]
    assert heard(event({}, "m.room.encrypted")) == []


def test_people_who_come_and_go_are_noticed() -> None:
    assert heard(member(ANN, "leave")) == [Moved(ROOM)]


def test_what_was_said_before_we_were_invited_is_not_ours_to_hear() -> None:
    events = [text("old"), member(ME, "invite"), text("new"), member(ME, "join", before="invite")]
    assert since_we_came(events, ME) == (2, True)


def test_without_the_invitation_it_begins_with_our_joining() -> None:
    assert since_we_came([text("old"), member(ME, "join"), text("new")], ME) == (2, True)


def test_another_name_of_ours_is_no_joining_and_others_are_not_us() -> None:
    assert since_we_came([text("a"), member(ME, "join", before="join"), member(ANN, "join")], ME) == (0, False)


def test_an_answer_has_rooms_invitations_and_where_to_go_on() -> None:
    state = {"events": [{"type": "m.room.name"}, member(ME, "invite")]}
    timeline = {"events": [text("a"), "junk"], "limited": True, "prev_batch": "p"}
    answer = {
        "next_batch": "n",
        "rooms": {"join": {ROOM: {"timeline": timeline}}, "invite": {"!2": {"invite_state": state}}},
    }
    synced = read(answer, ME)
    assert synced.next == "n"
    assert [(room.id, len(room.events), room.gap) for room in synced.rooms] == [(ROOM, 1, "p")]
    assert [(invite.room, invite.sender) for invite in synced.invites] == [("!2", ANN)]


def test_an_answer_that_does_not_say_where_to_go_on_is_refused() -> None:
    with pytest.raises(ValueError, match="next_batch"):
        read({"rooms": {}}, ME)


def test_members_have_names() -> None:
    assert names({"joined": {ANN: {"display_name": "Ann"}, ME: {"display_name": None}}}) == {ANN: "Ann", ME: ""}


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["m.room.message", "m.text", ANN]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "event_id",
                    "sender",
                    "content",
                    "msgtype",
                    "body",
                    "url",
                    "info",
                    "m.relates_to",
                    "rel_type",
                    "event_id",
                    "key",
                    "rooms",
                    "join",
                    "invite",
                    "invite_state",
                    "events",
                    "timeline",
                    "limited",
                    "prev_batch",
                    "next_batch",
                    "joined",
                    "unsigned",
                    "state_key",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(_JSON)
def test_no_form_of_an_answer_or_an_event_is_an_exception(value: Any) -> None:
    synced = read({"next_batch": "n", "rooms": value}, ME)
    for room in synced.rooms:
        since_we_came(room.events, ME)
    listed = value if isinstance(value, list) else [value]
    list(happened(ROOM, [item for item in listed if isinstance(item, dict)], ME))
    names({"joined": value})
