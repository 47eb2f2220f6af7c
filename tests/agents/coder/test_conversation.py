"""A conversation with the coding agent: its model is a fake, its tools are real."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.agents.coder.test_history import Notebook
from tests.support.editor import EditorCommand, EditorFiles, EditorTerminal
from tests.support.fake_model import USED, FakeModel, Reply, call, calls, words
from tests.support.loop import until
from trunkline.agents.coder.agent import Coder
from trunkline.agents.coder.conversation import MOST_CLIENTS
from trunkline.agents.coder.options import _check_abilities
from trunkline.agents.coder.settings import CoderSettings
from trunkline.agents.coder.words import COMPACTED
from trunkline.core.agent import (
    AddHistory,
    AddMcpServer,
    Approve,
    Capabilities,
    Change,
    Conversation,
    Deny,
    OpenRequest,
    SetOptions,
    UseClient,
)
from trunkline.core.client_tools import CommandEnd
from trunkline.core.events import (
    Event,
    Failed,
    Notice,
    TextDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    TurnEnded,
    UserMessage,
)
from trunkline.core.fault_table import TABLE
from trunkline.core.faults import ConfigError, Fault, Mistyped, ProviderError, Unsupported
from trunkline.core.usage import NOTHING_USED, Usage
from trunkline.models.messages import Message, Text, ThinkingBlock, ToolResultBlock
from trunkline.models.model import Answer, Request, TextChunk
from trunkline.models.providers import ModelSettings


class Talk:
    """What a test holds in its hands."""

    def __init__(self, conversation: Conversation, models: list[FakeModel], notebook: Notebook) -> None:
        self.conversation = conversation
        self.models = models
        self.notebook = notebook
        self.events: list[Event] = []

    @property
    def model(self) -> FakeModel:
        return self.models[-1]

    async def say(
        self,
        text: str,
        decide: Callable[[ToolRequested], Any] = lambda request: Approve(),
        message_id: str | None = None,
    ) -> list[Event]:
        self.events = []
        async for event in self.conversation.turn(UserMessage(text, id=message_id)):
            self.events.append(event)
            if isinstance(event, ToolRequested):
                await self.conversation.decide(event.call_id, decide(event))
        return self.events


@asynccontextmanager
async def talking(
    workspace: Path,
    *replies: Reply,
    notebook: Notebook | None = None,
    history: tuple[str, ...] = (),
    announce: Callable[[Event], None] | None = None,
    wanted: list[ModelSettings] | None = None,
    **settings: Any,
) -> AsyncIterator[Talk]:
    notebook = notebook or Notebook()
    models: list[FakeModel] = []

    def make_model(asked: ModelSettings) -> FakeModel:
        if wanted is not None:
            wanted.append(asked)
        models.append(FakeModel(*(replies if not models else models[0].replies)))
        models[-1].name = asked.model or "fake"
        return models[-1]

    coder = Coder(CoderSettings(ModelSettings("anthropic"), "a test", **settings), make_model)
    request = OpenRequest(
        "s1", notebook, workspace=str(workspace), history=history, instructions="Speak plainly.", announce=announce
    )
    conversation = await coder.open(request)
    try:
        yield Talk(conversation, models, notebook)
    finally:
        await conversation.close()
        assert all(model.closed for model in models)


def capabilities(talk: Talk) -> Capabilities:
    """What the conversation says it can do now."""
    found = talk.conversation.capabilities  # type: ignore[attr-defined]  # not every conversation has them
    assert isinstance(found, Capabilities)
    return found


def notices(events: list[Event]) -> list[str]:
    return [event.message for event in events if isinstance(event, Notice)]


async def test_the_system_prompt_knows_the_place_the_model_the_user_and_the_project(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    async with talking(tmp_path, words("ok"), instructions="Be kind.") as talk:
        await talk.say("hi")
        system = talk.model.requests[0].system
        for part in (str(tmp_path), "fake", "Be kind.", "Speak plainly.", "Use tabs."):
            assert part in system
        names = [tool.name for tool in talk.model.requests[0].tools]
        bash, rest = ["Bash", "BashOutput", "KillBash"], ["WebFetch", "Spawn", "TodoWrite"]
        assert names == ["Read", "Write", "Edit", "Glob", "Grep", *bash, *rest]


async def test_the_system_prompt_stays_the_same_from_request_to_request(tmp_path: Path) -> None:
    async with talking(tmp_path, words("ok"), words("ok")) as talk:
        await talk.say("one")
        await talk.say("two")
        assert talk.model.requests[0].system == talk.model.requests[1].system
        assert talk.model.asked[0] == Message("user", (Text("one"),))


async def test_an_edit_is_a_diff_for_people_and_a_sentence_for_the_model(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    replies = [
        calls(call("Read", file_path="a.txt")),
        calls(call("Edit", "t2", file_path="a.txt", old_string="x", new_string="y")),
        words("Done."),
    ]
    async with talking(tmp_path, *replies) as talk:
        events = await talk.say("make it y")
        edited = [event for event in events if isinstance(event, ToolFinished)][-1]
        assert edited.output_type == "diff"
        assert "-x\n+y" in edited.output
        assert edited.metadata is not None
        assert edited.metadata["file_path"].endswith("a.txt")
        (result,) = talk.model.asked[-1].content
        assert isinstance(result, ToolResultBlock)
        assert "replaced 1 occurrence" in result.text
        assert (tmp_path / "a.txt").read_text() == "y\n"


async def test_what_came_before_is_told_to_the_model_now_and_after_resuming(tmp_path: Path) -> None:
    async with talking(tmp_path, words("ok"), history=("Rule one.",)) as talk:
        await talk.conversation.configure(AddHistory("Rule two."))
        await talk.say("hi")
        system = talk.model.requests[0].system
        assert system.index("Rule one.") < system.index("Rule two.")


async def test_a_resumed_conversation_goes_on_where_it_was(tmp_path: Path) -> None:
    async with talking(tmp_path, words("I am Bob.")) as talk:
        await talk.say("Who are you?")
        notebook = Notebook(*talk.notebook.kept)
    async with talking(tmp_path, words("Bob."), notebook=notebook) as talk:
        await talk.say("Again?")
        assert talk.model.asked == (
            Message("user", (Text("Who are you?"),)),
            Message("assistant", (Text("I am Bob."),)),
            Message("user", (Text("Again?"),)),
        )


@pytest.mark.process
async def test_a_resumed_conversation_gives_no_id_of_a_background_command_again(tmp_path: Path) -> None:
    begins = calls(call("Bash", command="sleep 600", run_in_background=True))
    async with talking(tmp_path, begins, words("ok")) as talk:
        await talk.say("run it")
        await talk.say("/clear")
        notebook = Notebook(*talk.notebook.kept)
    replies = [calls(call("BashOutput", bash_id="bash_1")), begins, words("ok")]
    async with talking(tmp_path, *replies, notebook=notebook) as talk:
        events = await talk.say("how is it?")
        told, started = [event.output for event in events if isinstance(event, ToolFinished)]
        assert "`bash_1` ended when the session was closed" in told
        assert "bash_id: bash_2" in started


async def test_a_stopped_turn_is_in_order_before_the_next_begins(tmp_path: Path) -> None:
    async with talking(tmp_path, calls(call("Bash", command="sleep 30")), words("Yes?")) as talk:
        started = asyncio.Event()

        async def first() -> None:
            async for event in talk.conversation.turn(UserMessage("sleep")):
                talk.events.append(event)
                if isinstance(event, ToolRequested):
                    await talk.conversation.decide(event.call_id, Approve())
                    started.set()

        running = asyncio.ensure_future(first())
        await started.wait()
        await talk.conversation.cancel()
        await running
        assert talk.events[-1] == TurnEnded("cancelled", USED)
        await talk.say("and now?")
        results = [
            block for message in talk.model.asked for block in message.content if isinstance(block, ToolResultBlock)
        ]
        assert [result.id for result in results] == ["t1"]
        assert talk.model.asked[-1] == Message("user", (Text("and now?"),))


async def test_warnings_of_the_configuration_are_told_once(tmp_path: Path) -> None:
    async with talking(tmp_path, words("a"), words("b"), warnings=("`colour` has no effect.",)) as talk:
        assert notices(await talk.say("one")) == ["`colour` has no effect."]
        assert notices(await talk.say("two")) == []


# Commands


async def test_compact_summarises_and_the_model_goes_on_from_the_summary(tmp_path: Path) -> None:
    async with talking(tmp_path, words("Hi Ann."), words("The user is Ann."), words("Ann.")) as talk:
        await talk.say("I am Ann")
        events = await talk.say("/compact")
        assert "compacted" in notices(events)[0]
        assert events[-1] == TurnEnded("success", USED)
        await talk.say("Who am I?")
        first = talk.model.asked[0].content[0]
        assert isinstance(first, Text)
        assert first.text == f"{COMPACTED}\n\nThe user is Ann."


async def test_a_file_that_was_compacted_away_is_shown_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha\n")
    read = calls(call("Read", file_path="a.txt"))
    async with talking(tmp_path, read, words("ok"), read, words("ok"), words("summary"), read, words("ok")) as talk:
        shown = []
        for text in ("read", "read again", "/compact", "read once more"):
            events = await talk.say(text)
            shown += [event.output for event in events if isinstance(event, ToolFinished)]
        assert ["alpha" in output for output in shown] == [True, False, True]


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        *((text, True) for text in ("/undo", "/UNDO 2", "/rewind", "/memory add x", "/bashes kill 1")),
        *((text, True) for text in ("/mcp login x", "/mcp reconnect x", "/mcp login\tx", "/mcp\nlogin x")),
        *((text, False) for text in ("/diff", "/context", "/help", "/memory", "/mcp", "/mcp x", "/bashes", "/skills")),
        *((text, False) for text in ("/clear", "/compact", " /undo", "undo it", "/undone", "/undo/it", "")),
    ],
)
async def test_commands_that_change_something_are_for_whoever_would_be_asked(
    tmp_path: Path, text: str, needs: bool
) -> None:
    async with talking(tmp_path) as talk:
        assert talk.conversation.needs_approver(text) is needs  # type: ignore[attr-defined]  # not every one has it


@pytest.mark.parametrize(
    ("command", "says"), [("/context", "of 100,000 tokens"), ("/clear", "cleared"), ("/help", "/compact")]
)
async def test_commands_are_answered_without_the_model(tmp_path: Path, command: str, says: str) -> None:
    async with talking(tmp_path) as talk:
        events = await talk.say(command)
        assert says in notices(events)[0]
        assert events[-1] == TurnEnded("success", NOTHING_USED)


@pytest.mark.parametrize("text", ["/frobnicate", "/frobnicate it", "/frobnicate\nit"])
async def test_a_command_that_does_not_exist_is_not_sent_to_the_model(text: str, tmp_path: Path) -> None:
    async with talking(tmp_path, words("What is that?")) as talk:
        with pytest.raises(Mistyped, match=r"There is no command `/frobnicate`\.") as caught:
            await talk.say(text)
        # The host has only passed on what a person typed: it did nothing wrong.
        assert TABLE[caught.value.kind].jsonstream == "config_error"
        await talk.say(f" {text}")
        assert talk.model.asked == (Message("user", (Text(f" {text}"),)),)


async def test_a_command_that_is_misspelt_is_told_with_the_one_that_is_meant(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        with pytest.raises(Mistyped, match=r"Did you mean `/compact`\?"):
            await talk.say("/compcat")


@pytest.mark.parametrize("text", ["/clear the build directory", "/help me fix this\nTraceback", "/compact\tnow"])
async def test_words_behind_a_command_that_takes_none_are_not_thrown_away(text: str, tmp_path: Path) -> None:
    async with talking(tmp_path, words("Hello Ann."), words("As you say.")) as talk:
        await talk.say("I am Ann")
        with pytest.raises(Mistyped, match=r"takes no arguments.*put a space before it"):
            await talk.say(text)
        await talk.say(f" {text}")
        assert Message("user", (Text("I am Ann"),)) in talk.model.asked
        assert talk.model.asked[-1] == Message("user", (Text(f" {text}"),))


@pytest.mark.parametrize("text", ["/context ", "/CONTEXT", "/context\t\n"])
async def test_a_command_may_be_written_in_any_case_with_blanks_behind_it(text: str, tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        assert "of 100,000 tokens" in notices(await talk.say(text))[0]


@pytest.mark.parametrize("text", ["/etc/hosts is what?", "/", "/2 is half", "// or #?", "/usr is full", "/.profile"])
async def test_a_path_is_a_message_like_any_other(text: str, tmp_path: Path) -> None:
    async with talking(tmp_path, words("It is.")) as talk:
        await talk.say(text)
        assert talk.model.asked == (Message("user", (Text(text),)),)


# Changes


async def test_another_model_answers_from_the_next_message_on(tmp_path: Path) -> None:
    thought = [Answer((ThinkingBlock("hm", "signed"), Text("one")), "end", USED)]
    async with talking(tmp_path, thought, words("two")) as talk:
        await talk.say("hi")
        first = talk.model
        await talk.conversation.configure(
            SetOptions({"model": "claude-opus-5", "effort": "high", "thinking": "enabled"})
        )
        assert first.closed
        await talk.say("hi again")
        request = talk.model.requests[0]
        assert talk.model.name == "claude-opus-5"
        assert "claude-opus-5" in request.system
        assert (request.effort, request.thinking_budget) == ("high", 10_000)
        assert len(request.messages) == 3
        assert "signed" not in str(request.messages)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"effort": "enormous"}, "`effort` is low, medium or high, not `enormous`"),
        ({"thinking": "maybe"}, "`thinking` is enabled or disabled, not `maybe`"),
        ({"thinking_budget": -1}, "`thinking_budget` is a number of tokens"),
        ({"image_input": "sometimes"}, "`image_input` is supported, unsupported or unknown, not `sometimes`"),
        ({"compaction": "very"}, "`compaction` is off, safe or full, not `very`"),
        ({"model": " "}, "`model` is empty"),
    ],
)
async def test_a_value_that_means_nothing_is_refused_and_changes_nothing(
    tmp_path: Path, options: dict[str, Any], complaint: str
) -> None:
    async with talking(tmp_path, words("ok")) as talk:
        first = talk.model
        with pytest.raises(ConfigError, match=re.escape(complaint)):
            await talk.conversation.configure(SetOptions({"model": "claude-opus-5", "compaction": "off", **options}))
        await talk.say("hi")
        assert first.requests[0].thinking_budget is None


@pytest.mark.parametrize("options", [{"effort": "low"}, {"thinking": "enabled"}, {"thinking_budget": 2000}])
async def test_what_the_model_cannot_do_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    async with talking(tmp_path, words("ok")) as talk:
        with pytest.raises(ConfigError, match="the model `claude-3-5-haiku` "):
            await talk.conversation.configure(SetOptions({"model": "claude-3-5-haiku", **options}))
        await talk.say("hi")
        assert talk.models[0].requests


async def test_a_host_says_whether_the_model_can_see_and_only_of_that_model(tmp_path: Path) -> None:
    wanted: list[ModelSettings] = []
    async with talking(tmp_path, wanted=wanted) as talk:
        configure = talk.conversation.configure
        await configure(SetOptions({"image_input": "unsupported"}))
        assert wanted[-1].compat == {"image_input": "unsupported"}
        made = len(wanted)
        await configure(SetOptions({"image_input": "unsupported"}))
        assert len(wanted) == made
        await configure(SetOptions({"model": "other"}))
        assert wanted[-1].compat == {}


def test_pictures_are_not_promised_of_a_model_that_cannot_be_shown_any() -> None:
    for provider, refused in (("local", True), ("mock", False)):
        model = ModelSettings(provider, "any", compat={"image_input": "supported"})
        with pytest.raises(ConfigError, match=r"`image_input`.*no pictures") if refused else nullcontext():
            _check_abilities({"image_input": "supported"}, model)


async def test_thinking_is_turned_off_by_a_budget_of_nothing(tmp_path: Path) -> None:
    async with talking(tmp_path, words("one"), words("two"), thinking_budget=5000) as talk:
        await talk.say("hi")
        await talk.conversation.configure(SetOptions({"thinking_budget": 0}))
        await talk.say("hi")
        assert [request.thinking_budget for request in talk.model.requests] == [5000, None]


async def test_what_the_agent_can_do_follows_its_model(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        always = Capabilities(approval=True, resume=True, continues=True, steerable=True, sandbox=False)
        assert capabilities(talk) == always.replace(thinking=True, images=True, effort_levels=("low", "medium", "high"))
        await talk.conversation.configure(SetOptions({"model": "claude-3-5-haiku", "image_input": "unsupported"}))
        assert capabilities(talk) == always.replace(model="claude-3-5-haiku")


async def test_there_are_servers_if_some_are_configured_whether_they_come_or_not(tmp_path: Path) -> None:
    servers = (AddMcpServer("clock", "stdio", command="/no/such/program"),)
    async with talking(tmp_path, mcp_servers=servers) as talk:
        assert capabilities(talk).mcp
    async with talking(tmp_path) as talk:
        assert not capabilities(talk).mcp


async def test_a_server_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        with pytest.raises(Fault, match="`clock`"):
            await talk.conversation.configure(AddMcpServer("clock", "stdio", command="/no/such/program"))


async def test_a_change_that_nobody_knows_is_unsupported(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        with pytest.raises(Unsupported):
            await talk.conversation.configure(Change())


async def test_each_message_is_answered_with_the_files_and_the_terminal_of_its_own_client(tmp_path: Path) -> None:
    path = str(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_text("on the disk")
    one, other = EditorFiles(**{path: "in one editor"}), EditorFiles(**{path: "in another"})
    terminal = EditorTerminal(EditorCommand("seen", CommandEnd(0)))
    reading = calls(call("Read", file_path="a.txt"))
    replies = [reading, calls(call("Bash", "t2", command="make")), words("1"), reading, words("2"), reading, words("3")]
    async with talking(tmp_path, *replies) as talk:
        # Both are told before the first message is answered, as when the second one waits.
        await talk.conversation.configure(UseClient("m1", one, terminal))
        await talk.conversation.configure(UseClient("m2", other))
        found = [await talk.say(text, message_id=id) for text, id in (("1", "m1"), ("2", "m2"), ("3", None))]
        outputs = [[event.output for event in events if isinstance(event, ToolFinished)] for events in found]
        assert "in one editor" in outputs[0][0]
        assert "seen" in outputs[0][1]
        assert "in another" in outputs[1][0]
        assert "on the disk" in outputs[2][0]
        assert [call_id for *_, call_id in terminal.created] == ["t2"]


async def test_of_messages_that_never_come_the_clients_are_forgotten(tmp_path: Path) -> None:
    path = str(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_text("on the disk")
    reading = calls(call("Read", file_path="a.txt"))
    async with talking(tmp_path, reading, words("1"), reading, words("2")) as talk:
        for number in range(MOST_CLIENTS + 1):
            files = EditorFiles(**{path: f"in editor {number}"})
            await talk.conversation.configure(UseClient(f"m{number}", files))
        found = [await talk.say("go", message_id=f"m{number}") for number in (0, MOST_CLIENTS)]
        outputs = [event.output for events in found for event in events if isinstance(event, ToolFinished)]
        assert "on the disk" in outputs[0]
        assert f"in editor {MOST_CLIENTS}" in outputs[1]


# Sub-agents


def spawn(*names: str) -> Reply:
    return calls(call("Spawn", tasks=[{"name": name, "prompt": f"Do {name}."} for name in names]))


def by_task(**replies: list[Any]) -> Callable[[Request], list[Any]]:
    """Sub-agents ask in no fixed order: answer by what each was told."""

    def answer(request: Request) -> list[Any]:
        first = request.messages[0].content[0]
        assert isinstance(first, Text)
        return replies[first.text.removeprefix("Do ").removesuffix(".")].pop(0)  # type: ignore[no-any-return]

    return answer


async def test_sub_agents_work_on_their_own_and_only_their_answers_come_back(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha\n")
    answer = by_task(
        one=[calls(call("Read", "t1", file_path="a.txt")), words("It is alpha.")],
        two=[calls(call("Read", "t1", file_path="a.txt")), words("Alpha, too.")],
    )
    async with talking(tmp_path, spawn("one", "two"), *[answer] * 4, words("Both agree.")) as talk:
        events = await talk.say("ask two")
        assert [event.text for event in events if isinstance(event, TextDelta)] == ["Both", "agree."]
        requested = {event.call_id: event.name for event in events if isinstance(event, ToolRequested)}
        assert requested == {"t1": "Spawn", "sub1.t1": "Read", "sub2.t1": "Read"}
        (result,) = talk.model.asked[-1].content
        assert isinstance(result, ToolResultBlock)
        assert "## one [OK]\nIt is alpha.\n[turns: 1 | tokens: 20 in / 10 out]" in result.text
        assert "## two [OK]\nAlpha, too." in result.text
        assert events[-1] == TurnEnded("success", Usage(60, 30))
        subs = [request for request in talk.model.requests if "Do one." in str(request.messages[0])]
        assert "Spawn" not in [tool.name for tool in subs[0].tools]


async def test_a_sub_agent_has_read_nothing_yet(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha\n")
    edit = call("Edit", "t2", file_path="a.txt", old_string="alpha", new_string="beta")
    answer = by_task(one=[calls(edit), words("I may not.")])
    replies = [
        calls(call("Read", file_path="a.txt"), call("Spawn", "t3", tasks=[{"name": "one", "prompt": "Do one."}]))
    ]
    async with talking(tmp_path, *replies, answer, answer, words("ok")) as talk:
        events = await talk.say("go")
        edited = next(event for event in events if isinstance(event, ToolFinished) and event.name == "Edit")
        assert "You must Read" in edited.output
        assert (tmp_path / "a.txt").read_text() == "alpha\n"


async def test_a_sub_agent_knows_neither_spawn_nor_what_came_before(tmp_path: Path) -> None:
    answer = by_task(one=[words("Fine.")])
    async with talking(tmp_path, spawn("one"), answer, words("ok"), history=("Rule one.",)) as talk:
        events = await talk.say("go")
        mine, theirs = talk.model.requests[0].system, talk.model.requests[1].system
        assert "Spawn" in mine
        assert "Rule one." in mine
        assert "Spawn" not in theirs
        assert "Rule one." not in theirs
        assert events[-1].outcome == "success"  # type: ignore[attr-defined]


async def test_a_sub_agent_s_requests_name_it(tmp_path: Path) -> None:
    answer = by_task(one=[calls(call("Bash", command="true")), words("Done.")])
    async with talking(tmp_path, spawn("one"), answer, answer, words("ok")) as talk:
        events = await talk.say("go")
        asked = [event.description for event in events if isinstance(event, ToolRequested)]
        assert asked == ["Spawn: one", "one: Execute: true"]


async def test_a_sub_agent_s_answer_is_whole_though_it_came_in_two(tmp_path: Path) -> None:
    answer = by_task(one=[words("first half, ", "max_tokens"), words("second half")])
    async with talking(tmp_path, spawn("one"), answer, answer, words("ok")) as talk:
        await talk.say("go")
        assert "first half, second half" in str(talk.model.asked[-1])


async def test_a_sub_agent_that_fails_does_not_fail_the_turn(tmp_path: Path) -> None:
    answer = by_task(one=[[ProviderError("Overloaded")]], two=[words("Fine.")])
    async with talking(tmp_path, spawn("one", "two"), answer, answer, words("One failed.")) as talk:
        events = await talk.say("ask two")
        assert not any(isinstance(event, Failed) for event in events)
        (result,) = talk.model.asked[-1].content
        assert isinstance(result, ToolResultBlock)
        assert not result.is_error
        assert "## one [ERROR]\nOverloaded" in result.text


async def test_a_denial_reaches_the_sub_agent_that_asked(tmp_path: Path) -> None:
    answer = by_task(one=[calls(call("Bash", command="true")), words("Not allowed.")])
    async with talking(tmp_path, spawn("one"), answer, answer, words("ok")) as talk:
        events = await talk.say("go", lambda request: Deny("no") if request.name == "Bash" else Approve())
        assert ToolCancelled("sub1.t1", "no") in events
        assert "Tool denied: no" in str(talk.model.requests[2].messages)


async def test_too_many_sub_agents_are_refused(tmp_path: Path) -> None:
    async with talking(tmp_path, spawn(*"abcdef"), words("Then not.")) as talk:
        events = await talk.say("ask six")
        finished = next(event for event in events if isinstance(event, ToolFinished))
        assert finished.status == "error"
        assert "at most 5" in finished.output


async def test_a_stop_ends_the_sub_agents_too(tmp_path: Path) -> None:
    answer = by_task(one=[[TextChunk("hm"), asyncio.Event()]])
    async with talking(tmp_path, spawn("one"), answer) as talk:
        saying = asyncio.ensure_future(talk.say("go"))
        await until(lambda: talk.model.open_streams and len(talk.model.requests) == 2)
        await talk.conversation.cancel()
        assert (await saying)[-1].outcome == "cancelled"  # type: ignore[attr-defined]
        assert talk.model.open_streams == 0
