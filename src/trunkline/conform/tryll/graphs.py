"""Checks of graphs: what cannot work is refused when the agent is made, with a name."""

from __future__ import annotations

from trunkline.conform.expect import same
from trunkline.conform.tryll.stage import MOCK, Stage
from trunkline.conform.tryll.suite import LINE, canned, check, ended_well, guard
from trunkline.wires.tryll import messages as m

_UNKNOWN_MODEL = "conform-has-no-such-model"


def _graph(*nodes: m.NodeDescription, start: str | None = None) -> m.CreateAgentRequest:
    return m.CreateAgentRequest(0, m.GraphDescription(nodes, nodes[0].name if start is None and nodes else start or ""))


@check("tryll.graph.exit", "MUST", "GraphDescription shape")
async def exit(stage: Stage) -> None:
    """An exit to a missing node is refused with 3008 and a message that names it, even on unreachable nodes."""
    link = await stage.session()
    for request in (
        _graph(canned("say", LINE, exit="nowhere-land")),
        _graph(guard("gate", "x", triggered="say", passed="nowhere-land"), canned("say", LINE)),
        _graph(canned("say", LINE), canned("unreached", LINE, exit="nowhere-land")),
    ):
        await link.refused(request, 3008, why="with an exit to a missing node", named="nowhere-land")


@check("tryll.graph.end", "MUST", "GraphDescription shape")
async def end(stage: Stage) -> None:
    """An exit that is empty or absent ends the turn."""
    link = await stage.session()
    for nothing in (None, ""):
        agent = await link.agent(canned("say", LINE, exit=nothing), canned("other", "Not this."))
        same("the answer", ended_well(await link.say(agent, "hello")).text, LINE)


@check("tryll.graph.cycle", "SHOULD", "Details")
async def cycle(stage: Stage) -> None:
    """A graph may contain a cycle: only a turn that never leaves it fails."""
    link = await stage.session()
    agent = await link.agent(guard("gate", "again", triggered="say", passed=""), canned("say", LINE, exit="gate"))
    same("the answer", ended_well(await link.say(agent, "hello")).text, "")
    ended_well(await link.say(agent, "again"), m.TurnStatus.ERROR)


@check("tryll.graph.shape", "SHOULD", "Details")
async def shape(stage: Stage) -> None:
    """No nodes, a node without name or parameters, a duplicate name, no start node: all are refused with 3003."""
    link = await stage.session()
    wrong = {
        "without a graph": m.CreateAgentRequest(0, None),
        "without nodes": _graph(start="say"),
        "with a node without a name": _graph(canned("", LINE), start="say"),
        "with a duplicate name": _graph(canned("say", LINE), canned("say", LINE)),
        "without a start node": _graph(canned("say", LINE), start=""),
        "with a start node that does not exist": _graph(canned("say", LINE), start="nobody"),
        "with a node without parameters": _graph(m.NodeDescription("say", None)),
    }
    for why, request in wrong.items():
        await link.refused(request, 3003, why=why)


@check("tryll.graph.pattern", "SHOULD", "Details")
async def pattern(stage: Stage) -> None:
    """A guardrail whose pattern is not a valid regular expression is refused with 3003."""
    link = await stage.session()
    await link.refused(_graph(guard("gate", "(unclosed")), 3003, why="with an invalid pattern")


@check("tryll.graph.no-model", "SHOULD", "Details")
async def no_model(stage: Stage) -> None:
    """A node that needs a model, without one of its own or from the agent, is refused with 3003."""
    link = await stage.session()
    await link.refused(_graph(m.NodeDescription("say", m.GenerateParams())), 3003, why="without a model")


@check("tryll.graph.unknown-model", "SHOULD", "Details")
async def unknown_model(stage: Stage) -> None:
    """A model that a real engine does not have is refused by name with 3003 or 6002 (6006 with automatic downloads)."""
    node = m.NodeDescription("say", m.GenerateParams(model_name=_UNKNOWN_MODEL))
    for auto, codes in ((False, (3003, 6002)), (True, (3003, 6002, 6006))):
        link = await stage.session(inference_engine=m.InferenceEngine.LLAMA_CPP, allow_auto_model_downloading=auto)
        await link.refused(_graph(node), *codes, why="with an unknown model", named=_UNKNOWN_MODEL)


@check("tryll.graph.storage-kind", "SHOULD", "Details")
async def storage_kind(stage: Stage) -> None:
    """A node that needs a Map and gets a List is refused with 3011."""
    link = await stage.session()
    await link.ask(m.CreateStringStorageRequest(0, "lines", ("a",)), m.CreateStringStorageResponse)
    node = m.NodeDescription("look", m.IntentToInstructionParams("lines"))
    await link.refused(_graph(node), 3011, why="with a List for a Map")


@check("tryll.graph.storage-path", "SHOULD", "Details")
async def storage_path(stage: Stage) -> None:
    """A path of a node that leaves the storage folder is refused with 3009, and one that does not exist with 3010."""
    link = await stage.session()
    for path in OUTSIDE:
        await link.refused(_graph(canned("say", storage=path)), 3009, why=f"with the path {path!a}")
    await link.refused(
        _graph(canned("say", storage="conform-not-there.txt")), 3010, why="with a file that does not exist"
    )


@check("tryll.graph.range", "SHOULD", "Details", "mock")
async def range_(stage: Stage) -> None:
    """A number out of range is refused with 3007 (or 3003)."""
    link = await stage.session()
    lore = m.CreateEmbeddedStringStorageRequest(0, "lore", strings=("a",), embedding_model=MOCK)
    await link.ask(lore, m.CreateEmbeddedStringStorageResponse)
    for params in (
        m.RetrieveParams("lore", top_k=0),
        m.RetrieveParams("lore", threshold=1.5),
        m.RetrieveParams("lore", threshold=float("nan")),
        m.GenerateParams(MOCK, sampling=m.SamplingOverrides(temperature=-1.0)),
    ):
        await link.refused(_graph(m.NodeDescription("node", params)), 3007, 3003, why=f"with {params!a}")


#: Paths that no server may follow.
OUTSIDE = (
    "../conform.txt",
    "a/../../conform.txt",
    "/etc/passwd",
    "C:\\conform.txt",
    "c:/conform.txt",
    "\\\\host\\share\\conform.txt",
    "..\\conform.txt",
)
