from __future__ import annotations

from trunkline.core.usage import Usage
from trunkline.models.messages import Message, Text, ToolResultBlock, ToolUse
from trunkline.models.mock import MockModel
from trunkline.models.model import Answer, Chunk, Request, TextChunk
from trunkline.models.providers import ModelSettings


async def answer(*messages: Message) -> list[Chunk]:
    model = MockModel(ModelSettings("mock"))
    chunks = [chunk async for chunk in model.stream(Request(messages))]
    await model.close()
    return chunks


async def test_it_says_what_it_was_told_word_by_word() -> None:
    *chunks, last = await answer(Message("user", (Text("to be or"),)))
    assert chunks == [TextChunk("to"), TextChunk(" be"), TextChunk(" or")]
    assert last == Answer((Text("to be or"),), "end", Usage(3, 3))


async def test_spaces_are_no_words() -> None:
    *chunks, last = await answer(Message("user", (Text("  to   be" + " " * 100_000),)))
    assert chunks == [TextChunk("  to"), TextChunk("   be" + " " * 100_000)]
    assert isinstance(last, Answer)
    assert last.usage == Usage(2, 2)


async def test_it_calls_a_tool_when_told_to() -> None:
    (last,) = await answer(Message("user", (Text('tool: Read {"file_path": "x"}'),)))
    assert isinstance(last, Answer)
    assert last.content == (ToolUse("call_1", "Read", {"file_path": "x"}),)
    assert last.stop == "tool_use"


async def test_what_an_agent_notes_beside_a_message_is_not_what_it_was_told() -> None:
    (last,) = await answer(Message("user", (Text("[The session is in plan mode.]"), Text("tool: Read {}"))))
    assert isinstance(last, Answer)
    assert last.content == (ToolUse("call_1", "Read", {}),)
    assert (await answer(Message("user", (Text("[alone]"),))))[0] == TextChunk("[alone]")


async def test_it_can_call_badly() -> None:
    (last,) = await answer(Message("user", (Text("tool: Read {broken"),)))
    assert isinstance(last, Answer)
    assert last.content == (ToolUse("call_1", "Read", None, raw="{broken"),)


async def test_it_tells_what_the_tool_gave() -> None:
    said = [
        Message("user", (Text("tool: Read {}"),)),
        Message("assistant", (ToolUse("call_1", "Read", {}),)),
        Message("user", (ToolResultBlock("call_1", "first line\nsecond"),)),
    ]
    assert (await answer(*said))[-1] == Answer((Text("Result: first line"),), "end", Usage(3, 3))


async def test_it_always_says_something() -> None:
    assert isinstance((await answer())[0], TextChunk)
    assert isinstance((await answer(Message("user", (ToolResultBlock("1", ""),))))[0], TextChunk)
