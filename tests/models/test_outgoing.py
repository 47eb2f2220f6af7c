from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.counting import calls
from trunkline.models.messages import Block, Message, Text, ThinkingBlock, ToolResultBlock, ToolUse
from trunkline.models.outgoing import MAX_CONVERSATIONS, RequestWriter, repaired


def user(*blocks: Block | str) -> Message:
    return Message("user", _blocks(blocks))


def assistant(*blocks: Block | str) -> Message:
    return Message("assistant", _blocks(blocks))


def _blocks(blocks: tuple[Block | str, ...]) -> tuple[Block, ...]:
    return tuple(Text(block) if isinstance(block, str) else block for block in blocks)


def call(id: str) -> ToolUse:
    return ToolUse(id, "Read", {})


def result(id: str) -> ToolResultBlock:
    return ToolResultBlock(id, "text")


SOUND = [
    user("q"),
    assistant("a", call("1"), call("2")),
    user(result("1"), result("2"), "and"),
    assistant("b"),
    user("r"),
]


def test_a_sound_conversation_is_left_as_it_is() -> None:
    found = repaired(SOUND)
    assert len(found) == len(SOUND)
    assert all(left is right for left, right in zip(found, SOUND, strict=True))


@pytest.mark.parametrize(
    ("broken", "mended"),
    [
        ([], [user(".")]),
        ([assistant("a"), user("q")], [user("."), assistant("a"), user("q")]),
        ([user("q"), assistant("a")], [user("q"), assistant("a"), user(".")]),
        ([user("a"), user("b")], [user("a", "b")]),
        ([user("q"), assistant("a"), assistant("b"), user("r")], [user("q"), assistant("a", "b"), user("r")]),
        ([user("q"), assistant("a", call("1")), user("r")], [user("q"), assistant("a"), user("r")]),
        ([user("q"), assistant(call("1")), user("r")], [user("q", "r")]),
        ([user("q"), assistant(ThinkingBlock("t", "s"), call("1")), user("r")], [user("q", "r")]),
        ([user("q"), assistant("a"), user(result("1"), "r")], [user("q"), assistant("a"), user("r")]),
        ([user(result("1"), "q")], [user("q")]),
        (
            [user("q"), assistant(call("1"), call("2")), user(result("2"), result("1"))],
            [user("q"), assistant(call("1"), call("2")), user(result("1"), result("2"))],
        ),
        (
            [user("q"), assistant(call("1")), user("r", result("1"))],
            [user("q"), assistant(call("1")), user(result("1"), "r")],
        ),
        (
            [user("q"), assistant(call("1")), user(result("1"), ToolResultBlock("1", "again"))],
            [user("q"), assistant(call("1")), user(result("1"))],
        ),
        (
            [user("q"), assistant(call("1")), user(result("1")), assistant(call("1")), user(result("1"))],
            [user("q"), assistant(call("1")), user(result("1")), assistant(call("1")), user(result("1"))],
        ),
        (
            [user("q"), assistant("a"), user(result("9")), assistant(call("1")), user(result("1"))],
            [user("q"), assistant("a", call("1")), user(result("1"))],
        ),
        ([user("q"), assistant(), user("r")], [user("q", "r")]),
    ],
)
def test_whatever_is_broken_is_mended(broken: list[Message], mended: list[Message]) -> None:
    assert repaired(broken) == mended


ids = st.sampled_from("123")
blocks = st.one_of(
    st.just(Text("t")),
    st.just(ThinkingBlock("h", "s")),
    ids.map(call),
    ids.map(result),
    st.just(ToolResultBlock("1", "x", True)),
)
conversations = st.lists(
    st.builds(Message, st.sampled_from(["user", "assistant"]), st.lists(blocks, max_size=4).map(tuple)), max_size=8
)


def assert_accepted(messages: list[Message]) -> None:
    """What providers insist on."""
    assert [message.role for message in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"]
    calls: list[str] = []
    for message in messages:
        assert message.content
        results = [block.id for block in message.content if isinstance(block, ToolResultBlock)]
        assert results == calls
        assert [isinstance(block, ToolResultBlock) for block in message.content[: len(results)]] == [True] * len(
            results
        )
        calls = [block.id for block in message.content if isinstance(block, ToolUse)]
        assert len(set(calls)) == len(calls)
        assert not calls or message.role == "assistant"


@given(conversations)
def test_any_conversation_becomes_one_that_providers_accept(messages: list[Message]) -> None:
    assert_accepted(repaired(messages))


def encode_like_a_format(message: Message) -> bytes:
    return b"" if message.role == "assistant" and all(isinstance(b, ThinkingBlock) for b in message.content) else b"x"


@given(conversations)
def test_what_is_sent_is_accepted_whether_it_had_to_be_mended_or_not(messages: list[Message]) -> None:
    sent = [one.message for one in RequestWriter(encode_like_a_format).sent(messages)]
    # What the user says in two messages may stay two, and nothing may stay nothing: the formats see to both.
    said = [message if message.content else user(".") for message in sent]
    assert_accepted(repaired(said))
    assert _all_blocks(said) == _all_blocks(repaired(said))


def _all_blocks(messages: list[Message]) -> list[Block]:
    return [block for message in messages for block in message.content]


def test_a_message_is_written_once_however_often_it_is_sent() -> None:
    written: list[Message] = []

    def encode(message: Message) -> bytes:
        written.append(message)
        return b"x"

    outgoing = RequestWriter(encode)
    for _ in range(3):
        outgoing.sent(SOUND)
    assert written == SOUND
    outgoing.sent([*SOUND, assistant("new"), user("newer")])
    assert written == [*SOUND, assistant("new"), user("newer")]


def test_what_is_no_longer_sent_is_forgotten() -> None:
    outgoing = RequestWriter(lambda message: b"x")
    outgoing.sent(SOUND)
    outgoing.sent(SOUND[:1])
    (talk,) = outgoing._conversations.values()
    assert len(talk.known) == len(talk.messages) == 1


def test_a_conversation_that_went_another_way_is_looked_at_again() -> None:
    outgoing = RequestWriter(lambda message: message.role.encode())
    outgoing.sent(SOUND)
    other = [*SOUND[:2], user(result("1"), "no second")]
    assert [one.message for one in outgoing.sent(other)] == repaired(other)
    assert [one.message for one in outgoing.sent(SOUND)] == SOUND


def test_a_few_conversations_are_remembered_side_by_side_and_no_more() -> None:
    written: list[Message] = []

    def encode(message: Message) -> bytes:
        written.append(message)
        return b"x"

    outgoing = RequestWriter(encode)
    many = [[user(str(number))] for number in range(MAX_CONVERSATIONS)]
    for conversation in many * 2:
        outgoing.sent(conversation)
    assert len(written) == MAX_CONVERSATIONS
    outgoing.sent([user("one more")])
    assert len(outgoing._conversations) == MAX_CONVERSATIONS


def test_a_long_conversation_costs_no_more_than_a_short_one_the_second_time() -> None:
    def again(length: int) -> int:
        messages = [Message("assistant" if number % 2 else "user", (Text("x" * 1000),)) for number in range(length)]
        outgoing = RequestWriter(lambda message: message.content[0].text.encode())  # type: ignore[attr-defined]
        assert calls(lambda: outgoing.sent(messages)) > length
        return calls(lambda: outgoing.sent(messages))

    assert again(1001) == again(11)
