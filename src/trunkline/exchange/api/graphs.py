"""Graphs: which there are, what their files say, and a text beside one: checked, drawn, tried and saved."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from trunkline.base import shapes
from trunkline.base.extras import lacking
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.exchange import graph_files
from trunkline.exchange.api.auth import browser_secret, token_digest
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.errors import ApiRefused, error
from trunkline.exchange.api.schemas import COUNT, FLAG, TEXT, array, maybe, obj
from trunkline.exchange.graph_files import (
    MAX_BYTES,
    AgentGraph,
    GraphChanged,
    GraphFixed,
    GraphText,
    GraphTooLarge,
)
from trunkline.exchange.graph_tries import TryEngine

if TYPE_CHECKING:
    from trunkline.agents.graph.yaml_check import Finding, GraphReport


class GivenText(Value):
    """What a graph's file might say."""

    text: str


class TriedMessage(Value):
    """A message for a graph, and the text of that graph. `engine`: `mock` needs no model; `models` are the graph's."""

    text: str
    message: str
    engine: TryEngine = "mock"


class SavedText(Value):
    """What a graph's file shall say, and the version that was read. `force`: even if no agent can be made of it."""

    text: str
    version: str
    force: bool = False


async def list_graphs(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/graphs`."""
    found = graph_files.graphs(call.exchange.settings.agents)
    with _installed():
        return {"graphs": [await asyncio.to_thread(_row, graph, call) for graph in found]}


def _row(graph: AgentGraph, call: ApiCall) -> Mapping[str, Any]:
    try:
        report = _report(graph, graph_files.read(graph).text.encode())
        nodes, problems = len(_nodes(report)), len(report.problems)
    except ConfigError:
        nodes, problems = 0, 1
    return {**_about(graph, call), "nodes": nodes, "problems": problems}


async def show_graph(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/graphs/{id}`."""
    graph = found_graph(call)
    return await asyncio.to_thread(_shown, graph, await _read(graph), call)


def _shown(graph: AgentGraph, found: GraphText, call: ApiCall) -> Mapping[str, Any]:
    # Whoever may not save it sees it as all the rest here: without the secrets of the exchange.
    may_save = call.person.may("admin")
    text = found.text if may_save else call.exchange.redactor.lines(found.text)
    with _installed():
        report = _report(graph, text.encode())
        return {
            **_about(graph, call),
            **_findings(report),
            "text": text,
            "version": found.version,
            "writable": may_save and not found.why_fixed,
            "why_fixed": found.why_fixed,
            "svg": _drawn(report),
        }


async def check_text(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/graphs/{id}/check`."""
    graph, given = found_graph(call), await call.body(GivenText)
    with _installed():
        return _findings(await asyncio.to_thread(_report, graph, _data(given.text)))


async def draw_text(call: ApiCall) -> Mapping[str, Any] | Response:
    """`POST /api/graphs/{id}/draw`."""
    graph, given = found_graph(call), await call.body(GivenText)
    with _installed():
        report = await asyncio.to_thread(_report, graph, _data(given.text))
        if report.graph is None:
            return _unsound(report)
        return {"svg": await asyncio.to_thread(_drawn, report)}


async def try_message(call: ApiCall) -> Mapping[str, Any] | Response:
    """`POST /api/graphs/{id}/try`."""
    graph, given = found_graph(call), await call.body(TriedMessage)
    if not given.message.strip():
        raise ApiRefused(400, "There is no message.")
    with _installed():
        report = await asyncio.to_thread(_report, graph, _data(given.text))
        if report.graph is None:
            return _unsound(report)
        turn = await call.exchange.tries.run(
            _who(call),
            graph,
            report.graph,
            given.message,
            given.engine,
            call.exchange.redactor,
            # The mock engine costs nothing.
            None if given.engine == "mock" else call.exchange.budgets.meter(_payer(graph), ""),
            call.person.name,
        )
    return shapes.encode(turn)


def _payer(graph: AgentGraph) -> str:
    """The agent in whose budget a try is; one that no agent has is told by itself."""
    return graph.id if graph.user is None else graph.user.name


async def stop_trying(call: ApiCall) -> Mapping[str, Any]:
    """`DELETE /api/graphs/{id}/try`."""
    found_graph(call)
    return {"stopped": call.exchange.tries.stop(_who(call))}


async def save_text(call: ApiCall) -> Mapping[str, Any] | Response:
    """`POST /api/graphs/{id}`."""
    graph, given = found_graph(call), await call.body(SavedText)
    data = _data(given.text)
    with _installed():
        report = await asyncio.to_thread(_report, graph, data)
    if report.graph is None and not given.force:
        return _unsound(report)
    try:
        version = await asyncio.to_thread(graph_files.save, graph, data, given.version)
    except GraphChanged as fault:
        raise ApiRefused(409, str(fault), code="changed") from None
    except GraphFixed as fault:
        raise ApiRefused(409, str(fault), code="read_only") from None
    renewed = []
    if report.graph is not None:
        for agent in graph.agents:
            call.exchange.directory.renew(agent.name)
            renewed.append(agent.name)
    return {"version": version, "renewed": renewed, **_findings(report)}


# What they share.


def found_graph(call: ApiCall) -> AgentGraph:
    """The graph that the path names.

    Raises:
        ApiRefused: 404, there is none.
    """
    graph = graph_files.find(call.exchange.settings.agents, call.id)
    if graph is None:
        raise ApiRefused(404, f"There is no graph `{call.id[:200]}` here.")
    return graph


async def _read(graph: AgentGraph) -> GraphText:
    try:
        return await asyncio.to_thread(graph_files.read, graph)
    except GraphTooLarge as fault:
        raise ApiRefused(413, str(fault)) from None
    except ConfigError as fault:
        raise ApiRefused(422, str(fault)) from None


def _data(text: str) -> bytes:
    # Half a character is for the check to complain of, with its place.
    data = text.encode(errors="surrogatepass")
    if len(data) > MAX_BYTES:
        raise ApiRefused(413, f"The text has more than {MAX_BYTES} bytes. Put long lists into files beside the graph.")
    return data


@contextmanager
def _installed() -> Iterator[None]:
    """Tells whoever has not installed what graphs need."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (lacks := lacking(missing)) is None:
            raise
        raise ApiRefused(501, lacks) from None


def _report(graph: AgentGraph, data: bytes) -> GraphReport:
    from trunkline.agents.graph.yaml_check import examine_data

    return examine_data(data, graph.path, graph.folder)


def _drawn(report: GraphReport) -> str | None:
    from trunkline.agents.graph.drawing import svg

    return None if report.graph is None else svg.draw(report.graph.graph, page=False)


def _unsound(report: GraphReport) -> Response:
    count = len(report.problems)
    told = f"The graph has {count} problem{'' if count == 1 else 's'}: {_message(report.problems[0])}"
    return error(ApiRefused(422, told, code="problems"), **_findings(report))


def _about(graph: AgentGraph, call: ApiCall) -> Mapping[str, Any]:
    return {
        "id": graph.id,
        "name": graph.name,
        # Which folders this machine has concerns those who run it.
        "path": graph.path if call.person.may("admin") else None,
        "bundled": graph.is_bundled,
        "agents": [each.name for each in graph.agents],
    }


def _findings(report: GraphReport) -> Mapping[str, Any]:
    found = [("problem", each) for each in report.problems] + [("warning", each) for each in report.warnings]
    return {
        "problems": [
            {"line": each.line, "column": each.column, "message": _message(each), "severity": severity}
            for severity, each in sorted(found, key=lambda each: (each[1].line, each[1].column))
        ],
        "start": report.graph.graph.start_node if report.graph is not None else "",
        "nodes": _nodes(report),
    }


def _nodes(report: GraphReport) -> list[Mapping[str, Any]]:
    from trunkline.agents.graph.params import exits_of, rules_of

    nodes = report.graph.graph.nodes if report.graph is not None else ()
    return [
        {
            "name": node.name,
            "type": rules_of(node.params).type,
            "line": report.lines.get(node.name, 0),
            "exits": [{"name": name, "to": to} for name, to in exits_of(node.params).items()],
        }
        for node in nodes
        if node.params is not None
    ]


def _message(found: Finding) -> str:
    """The whole sentence, without its place."""
    return found.told.removeprefix(f"{found.file}:{found.line}:{found.column}: ").removeprefix(f"{found.file}: ")


def _who(call: ApiCall) -> str:
    """Whose try it is: one browser's, or one token's."""
    scope = call.request.scope
    return browser_secret(scope) or token_digest(scope)


_NODE = obj(name=TEXT, type=TEXT, line=COUNT, exits=array(obj(name=TEXT, to=TEXT)))
_PROBLEM = obj(line=COUNT, column=COUNT, message=TEXT, severity={"enum": ["problem", "warning"]})
_ABOUT = {"id": TEXT, "name": TEXT, "path": maybe(TEXT), "bundled": FLAG, "agents": array(TEXT)}
_FOUND = {"problems": array(_PROBLEM), "start": TEXT, "nodes": array(_NODE)}
_NUMBER = {"type": "number"}
_STEP = obj(node=TEXT, type=TEXT, exit=TEXT, ms=_NUMBER, decided=TEXT)

ENDPOINTS = (
    ApiEndpoint(
        "GET", "/api/graphs", list_graphs, "observer", "The graphs of the agents, and those that come with Trunkline",
        answer=obj(graphs=array(obj(**_ABOUT, nodes=COUNT, problems=COUNT))), statuses=(501,),
    ),
    ApiEndpoint(
        "GET", "/api/graphs/{id}", show_graph, "observer", "What a graph's file says, and its picture",
        answer=obj(
            **_ABOUT, **_FOUND, text=TEXT, version=TEXT, writable=FLAG, why_fixed=TEXT, svg=maybe(TEXT),
        ),
        statuses=(404, 413, 422, 501),
    ),
    ApiEndpoint(
        "POST", "/api/graphs/{id}", save_text, "admin", "Save a graph's file", SavedText,
        answer=obj(**_FOUND, version=TEXT, renewed=array(TEXT)), statuses=(404, 409, 413, 422, 501),
    ),
    ApiEndpoint(
        "POST", "/api/graphs/{id}/check", check_text, "admin", "All that is wrong with a text", GivenText,
        answer=obj(**_FOUND), statuses=(404, 413, 501),
    ),
    ApiEndpoint(
        "POST", "/api/graphs/{id}/draw", draw_text, "admin", "A text as an SVG picture", GivenText,
        answer=obj(svg=TEXT), statuses=(404, 413, 422, 501),
    ),
    ApiEndpoint(
        "POST", "/api/graphs/{id}/try", try_message, "admin", "One turn of the graph that a text describes",
        TriedMessage,
        answer=obj(
            outcome=TEXT, answer=TEXT, error=TEXT, ms=_NUMBER, tokens=COUNT, path=array(_STEP),
            tools=array(obj(name=TEXT, arguments={"type": "object"})), svg=TEXT,
        ),
        statuses=(404, 413, 422, 501),
    ),
    ApiEndpoint(
        "DELETE", "/api/graphs/{id}/try", stop_trying, "admin", "Stop the turn that is being tried",
        answer=obj(stopped=FLAG), statuses=(404,),
    ),
)  # fmt: skip
