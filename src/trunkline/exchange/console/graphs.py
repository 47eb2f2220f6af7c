"""Graphs: the list of them, and one with its text, its drawing, and a message tried on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.exchange.api.endpoint import ApiCall
from trunkline.exchange.api.graphs import found_graph, list_graphs
from trunkline.exchange.console.page import ConsolePage


async def graphs(call: ApiCall) -> Mapping[str, Any]:
    """`GET /graphs`."""
    found = (await list_graphs(call))["graphs"]
    return {
        "used": [graph for graph in found if graph["agents"]],
        "others": [graph for graph in found if not graph["agents"]],
    }


async def graph(call: ApiCall) -> Mapping[str, Any]:
    """`GET /graphs/{id}`. Its script asks for what the file says."""
    return {"graph": found_graph(call)}


PAGES = (ConsolePage("/graphs", graphs, "graphs.html"), ConsolePage("/graphs/{id}", graph, "graph.html"))
