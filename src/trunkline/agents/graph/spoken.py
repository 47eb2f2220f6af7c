"""A graph that was written to be read, made to be heard: whatever it answers, it also says aloud."""

from __future__ import annotations

from collections.abc import Iterator

from trunkline.core.graph.description import (
    CannedResponseParams,
    DirectorParams,
    GenerateAndSpeakParams,
    GenerateParams,
    GraphDescription,
    NodeDescription,
    NodeParams,
    SpeakParams,
    ToolCallParams,
)

#: What is put behind the name of a node, to name the one that says its answer.
_SUFFIX = "_aloud"
#: Characters in front of it: a name has at most 256, and there may be a number behind it.
_STEM = 240


def speaks(graph: GraphDescription) -> bool:
    """Whether it has a node that speaks."""
    return any(isinstance(node.params, SpeakParams | GenerateAndSpeakParams) for node in graph.nodes)


def spoken(graph: GraphDescription, tts_model: str) -> GraphDescription:
    """The same graph, with a voice. One that speaks already knows when: it is given back as it is.

    Each Generate becomes a GenerateAndSpeak, which streams whether or not the former did. A Speak follows each
    CannedResponse, and each ToolCall that may answer where it calls no tool; it leads where those led. All nodes keep
    their names, so templates find what they found before. A turn takes at most twice as many steps.
    """
    if speaks(graph):
        return graph
    taken = {node.name for node in graph.nodes}
    nodes = tuple(each for node in graph.nodes for each in _spoken(node, tts_model, taken))
    return graph.replace(nodes=nodes)


def _spoken(node: NodeDescription, tts_model: str, taken: set[str]) -> Iterator[NodeDescription]:
    """The node, and the one that says its answer if it does not do so itself. A new name is added to those taken."""
    params: NodeParams | None = node.params
    if isinstance(params, GenerateParams):
        yield node.replace(params=_aloud(params, tts_model))
    elif isinstance(params, CannedResponseParams | DirectorParams):
        name = _named(node.name, taken)
        yield node.replace(params=params.replace(default_exit=name))
        yield NodeDescription(name, SpeakParams(tts_model, default_exit=params.default_exit))
    elif isinstance(params, ToolCallParams) and params.generate_on_no_tool:
        name = _named(node.name, taken)
        yield node.replace(params=params.replace(no_tool_called_exit=name))
        yield NodeDescription(name, SpeakParams(tts_model, default_exit=params.no_tool_called_exit))
    else:
        yield node


def _aloud(params: GenerateParams, tts_model: str) -> GenerateAndSpeakParams:
    return GenerateAndSpeakParams(
        model_name=params.model_name,
        tts_model_name=tts_model,
        system_prompt=params.system_prompt,
        template=params.template,
        placement=params.placement,
        sampling=params.sampling,
        default_exit=params.default_exit,
    )


def _named(name: str, taken: set[str]) -> str:
    """A name that no node has."""
    stem = name[:_STEM] + _SUFFIX
    found, number = stem, 1
    while found in taken:
        number += 1
        found = f"{stem}{number}"
    taken.add(found)
    return found
