"""Graphs that are given a voice."""

from __future__ import annotations

from trunkline.agents.graph import yaml_graph
from trunkline.agents.graph.plan import make_nodes
from trunkline.agents.graph.spoken import speaks, spoken
from trunkline.wires.tryll import messages as m


def graph(**nodes: m.NodeParams) -> m.GraphDescription:
    return m.GraphDescription(
        tuple(m.NodeDescription(name, params) for name, params in nodes.items()), next(iter(nodes))
    )


def made(**nodes: m.NodeParams) -> dict[str, m.NodeParams | None]:
    """The nodes of such a graph with a voice, of which an agent can be made."""
    found = spoken(graph(**nodes), "joe")
    make_nodes(found, "any")
    assert found.start_node == next(iter(nodes))
    return {node.name: node.params for node in found.nodes}


def test_what_a_model_answers_is_said_by_the_same_node() -> None:
    sampling = m.SamplingOverrides(max_tokens=3)
    placement = m.Placement.AFTER_USER_AS_USER
    for stream in (False, True):
        params = m.GenerateParams("big", "Be kind.", "{{x}}", placement, stream, sampling, "b")
        assert made(a=params, b=m.InstructionParams()) == {
            "a": m.GenerateAndSpeakParams("big", "joe", "Be kind.", "{{x}}", placement, sampling, default_exit="b"),
            "b": m.InstructionParams(),
        }


def test_a_line_from_a_list_is_said_before_it_goes_on() -> None:
    canned = m.CannedResponseParams(inline_strings=("No.",))
    assert made(a=canned.replace(default_exit="b"), b=canned) == {
        "a": canned.replace(default_exit="a_aloud"),
        "a_aloud": m.SpeakParams("joe", default_exit="b"),
        "b": canned.replace(default_exit="b_aloud"),
        "b_aloud": m.SpeakParams("joe"),
    }


def test_who_calls_tools_speaks_only_where_it_answers_instead() -> None:
    tools = m.ToolCallParams(tool_called_exit="b", no_tool_called_exit="b")
    end = m.InstructionParams()
    assert made(a=tools, b=end) == {"a": tools, "b": end}
    answers = tools.replace(generate_on_no_tool=True)
    assert made(a=answers, b=end) == {
        "a": answers.replace(no_tool_called_exit="a_aloud"),
        "a_aloud": m.SpeakParams("joe", default_exit="b"),
        "b": end,
    }


def test_new_names_are_those_of_no_other_node_and_not_too_long() -> None:
    canned, long = m.CannedResponseParams(inline_strings=("No.",)), "x" * 255
    names = list(made(a=canned, a_aloud=canned, a_aloud2=canned, **{f"{long}a": canned, f"{long}b": canned}))
    assert names[:2] == ["a", "a_aloud3"]
    assert len(set(names)) == 10


def test_a_graph_that_speaks_is_left_as_it_is() -> None:
    for params in (m.SpeakParams("ann"), m.GenerateAndSpeakParams(tts_model_name="ann")):
        found = graph(a=m.CannedResponseParams(inline_strings=("No.",), default_exit="b"), b=params)
        assert speaks(found)
        assert spoken(found, "joe") is found


def test_the_character_that_comes_along_can_speak() -> None:
    npc = yaml_graph.load("npc").graph
    assert not speaks(npc)
    names = {node.name for node in spoken(npc, "joe").nodes}
    canned = ("refuse", "agree", "herself", "greet", "unsure")
    assert names == {node.name for node in npc.nodes} | {f"{name}_aloud" for name in canned}
