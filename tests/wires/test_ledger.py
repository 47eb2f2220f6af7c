"""The ledger says what the wire does, and the wire serves every agent there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.support import spawned
from tests.support.loop import run
from tests.support.served import Served, served
from trunkline.agents import registry
from trunkline.core import agent as core_agent
from trunkline.core import events as core
from trunkline.core.agent import AddHistory, Approve, Deny, SetOptions
from trunkline.core.fault_table import TABLE
from trunkline.core.usage import Usage
from trunkline.wires.jsonstream import codec, messages
from trunkline.wires.jsonstream.serve import to_message
from trunkline.wires.ledger import CONCEPTS, WIRES, cell

JSONSTREAM = WIRES["jsonstream"]
NAMES = [concept.name for concept in CONCEPTS]

#: An event for each row of the group `events`, with everything in it that the type can hold.
SAMPLES: dict[str, core.Event] = {
    "TurnStarted": core.TurnStarted(core.UserMessage("hello", ("a.png",), "m1")),
    "Steered": core.Steered(core.UserMessage("meanwhile", ("b.png",), "m2", "ana")),
    "TextDelta": core.TextDelta("text"),
    "ThinkingDelta": core.ThinkingDelta("thought"),
    "ToolRequested": core.ToolRequested("c1", "Write", "edit", {"file_path": "a.txt"}, "Write to a.txt"),
    "ToolAnswered": core.ToolAnswered("c1", True, "ana"),
    "ToolStarted": core.ToolStarted("c1", "Write"),
    "ToolFinished": core.ToolFinished("c1", "Edit", "success", "+x", "diff", {"file_path": "a.txt"}),
    "ToolCancelled": core.ToolCancelled("c1", "no"),
    "Progress": core.Progress("still here", "c1"),
    "Notice": core.Notice("by the way"),
    "Plan": core.Plan((core.PlanEntry("look around", "high", "in_progress"), core.PlanEntry("write", "low"))),
    "Audio": core.Audio(b"\0\0", 16_000),
    "Extension": core.Extension("node", {"name": "generate"}),
    "Extension (mcp_ready)": core.Extension("mcp_ready", {"name": "files", "tools": ["read"]}),
    "SessionIdentified": core.SessionIdentified("its-own-id"),
    "Failed": core.Failed("provider", "Rate limit exceeded", True),
    "TurnEnded": core.TurnEnded("success", Usage(1, 2, 3, 4)),
    "ModeChanged": core.ModeChanged("yolo"),
    "Granted": core.Granted("edit"),
    "GrantRevoked": core.GrantRevoked("edit"),
    "HistoryInjected": core.HistoryInjected("before"),
    "ToolJudged": core.ToolJudged("c1", "Read", "info", {"file_path": "a.txt"}, "Read a.txt", "allow"),
    "StopAsked": core.StopAsked("ana"),
    "Journaled": core.Journaled({"block": 1}),
    "JournalReplaced": core.JournalReplaced(({"block": 1},)),
    "Checkpointed": core.Checkpointed({"turns": 1}),
}


@pytest.mark.parametrize("wire", WIRES)
def test_every_wire_has_a_cell_for_every_concept_and_no_other(wire: str) -> None:
    assert list(WIRES[wire]) == NAMES


def test_every_event_type_of_the_core_has_a_row_of_its_name() -> None:
    rows = {concept.name.partition(" (")[0] for concept in CONCEPTS if concept.group == "events"}
    assert rows == {kind.__name__ for kind in core.EVENTS}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("concept", NAMES)
def test_what_is_lost_is_told_where_something_is_degraded_and_nowhere_else(wire: str, concept: str) -> None:
    found = cell(wire, concept)
    assert found.how
    assert (found.lost is not None) == (found.fate == "degraded")
    assert not (found.fate == "refused" and found.lines)


def test_every_message_of_the_json_stream_is_in_the_ledger_and_no_invented_one() -> None:
    named = {line for found in JSONSTREAM.values() for line in found.lines}
    assert named == {*messages.EVENTS, *messages.COMMANDS}


@pytest.mark.parametrize("concept", [concept.name for concept in CONCEPTS if concept.group == "events"])
def test_the_json_stream_does_with_each_event_what_the_ledger_says(concept: str) -> None:
    event, found = SAMPLES[concept], JSONSTREAM[concept]
    assert type(event).__name__ == concept.partition(" (")[0]
    message = to_message(event, "m1")
    assert found.lines == (() if message is None else (message.type,))
    assert (message is None) == (found.fate == "refused")


def fields_in(value: Any) -> list[Any]:
    """Every leaf of what a line says."""
    if isinstance(value, Mapping):
        return [leaf for member in value.values() for leaf in fields_in(member)]
    return [leaf for member in value for leaf in fields_in(member)] if isinstance(value, list | tuple) else [value]


#: What the samples hold that the wire need not repeat: the host said it, or asked for it.
KNOWN_TO_THE_HOST = {"TurnStarted": {"hello", "a.png"}}


@pytest.mark.parametrize("concept", SAMPLES)
def test_what_is_carried_is_whole_and_what_is_degraded_is_not(concept: str) -> None:
    from trunkline.base import jsontext, shapes

    event, fate = SAMPLES[concept], JSONSTREAM[concept].fate
    message = to_message(event, "m1")
    if message is None:
        return
    said = fields_in(jsontext.loads(codec.encode(message)))
    # The kind of an extension is the type of its line.
    wanted = set(fields_in(shapes.encode(event))) - KNOWN_TO_THE_HOST.get(concept, set())
    assert (wanted <= set(said)) == (fate == "carried")


def test_faults_share_the_codes_of_the_json_stream() -> None:
    codes = {form.jsonstream for form in TABLE.values()}
    assert JSONSTREAM["faults"].fate == "degraded"
    assert len(codes) < len(TABLE)


def test_outcomes_other_than_error_look_alike() -> None:
    assert JSONSTREAM["outcome"].fate == "degraded"
    outcomes: tuple[core.Outcome, ...] = ("success", "cancelled", "unknown")
    assert len({to_message(core.TurnEnded(outcome), "m1") for outcome in outcomes}) == 1


def test_the_capabilities_that_the_ledger_calls_lost_are_those_that_are_not_announced() -> None:
    announced = {
        "tool_approval": "approval",
        "thinking": "thinking",
        "mcp": "mcp",
        "image_input": "images",
        "effort_levels": "effort_levels",
        "steering": "steerable",
        "sandbox": "sandbox",
    }
    assert announced.keys() <= set(messages.Capabilities.__fields__)
    lost = set(core_agent.Capabilities.__fields__) - set(announced.values())
    assert JSONSTREAM["capabilities"].lost == "resume, voice, going on with a turn, and which model and effort hold"
    assert lost == {"resume", "voice", "continues", "model", "effort"}


def ask(world: Served) -> None:
    world.fake.say(SAMPLES["ToolRequested"])


def heard(world: Served) -> Any:
    return [(message.text, message.files) for message in world.fake.heard]


#: For each command: what the host sends, and how one sees that it arrived.
EFFECTS: dict[str, tuple[dict[str, Any], Callable[[Served], Any], Any]] = {
    "message": ({"msg_id": "m2", "input": "more", "files": ["b"]}, heard, [("hello", ()), ("more", ("b",))]),
    "stop": ({}, lambda world: world.host.ends, {"m1": 1}),
    "tool_approve": ({"call_id": "c1"}, lambda world: world.fake.decisions, [("c1", Approve("once"))]),
    "tool_deny": ({"call_id": "c1", "reason": "no"}, lambda world: world.fake.decisions, [("c1", Deny("no"))]),
    "set_mode": ({"mode": "yolo"}, lambda world: world.session.mode, "yolo"),
    "ping": ({}, lambda world: world.host.lines[-1], {"type": "pong"}),
    "init_history": ({"text": "before"}, lambda world: world.fake.changes, [AddHistory("before")]),
    "set_config": ({"model": "m"}, lambda world: world.fake.changes, [SetOptions({"model": "m"})]),
    "add_mcp_server": (
        {"name": "files", "transport": "stdio", "command": "files"},
        lambda world: world.fake.changes,
        [core_agent.AddMcpServer("files", "stdio", "files")],
    ),
}
BETWEEN_TURNS = ("init_history", "set_config", "add_mcp_server")


@pytest.mark.parametrize("command", messages.COMMANDS)
def test_every_command_that_the_ledger_names_reaches_the_agent(command: str) -> None:
    members, effect, expected = EFFECTS[command]

    async def scene() -> None:
        async with served() as world:
            if command not in BETWEEN_TURNS:
                world.host.message("m1")
                await world.settle()
                ask(world)
                await world.settle()
            world.host.send(type=command, **members)
            await world.settle()
            if command == "message":
                world.host.send(type="tool_deny", call_id="c1")
                world.fake.say(core.TurnEnded("success"))
                await world.settle()
            assert effect(world) == expected
            world.host.send(type="stop")
            await world.session.at_rest()

    run(scene())


#: How to start each agent, and what to say to it. An agent that is added to the registry must be added here.
CONVERSATIONS: dict[str, tuple[list[str], list[str]]] = {
    "coder": (["--provider", "mock"], ["hello there", 'tool: Read {"file_path": "/nowhere"}']),
    "echo": ([], ["hello there", "and again"]),
    "scripted": (["--script", "tour"], ["hello", "create hello.py", "check it", "clean up", "what else"]),
}


@pytest.mark.process
@pytest.mark.parametrize("name", registry.names())
def test_every_agent_there_is_can_be_served_over_the_json_stream(name: str) -> None:
    flags, said = CONVERSATIONS[name]
    talk = spawned.converse(["--agent", name, *flags], said)
    assert talk.exit_code == 0
    assert talk.lines[0]["type"] == "ready"
    assert [line["msg_id"] for line in talk.of("stream_end")] == [f"m{number}" for number in range(1, len(said) + 1)]
    assert talk.text
    named = {line for found in JSONSTREAM.values() for line in found.lines}
    assert {line["type"] for line in talk.lines} <= named
