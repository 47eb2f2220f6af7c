"""A graph as a client describes it, checked: what can be wrong with it before anything is loaded."""

from __future__ import annotations

from typing import Any

from trunkline.agents.graph.nodes import NODES, Node
from trunkline.agents.graph.params import RULES, check_values, models_of
from trunkline.core.faults import BadExit, GraphError
from trunkline.core.graph.description import GraphDescription, NodeDescription

#: Nodes of one graph.
MAX_NODES = 256
#: Characters of a node's name.
MAX_NAME = 256


def make_nodes(graph: GraphDescription, default_model: str) -> dict[str, Node[Any]]:
    """The nodes of a graph by name. The first thing that is wrong is told, with the name of what it is about.

    Raises:
        GraphError: it is no graph.
        BadExit: an exit leads nowhere.
        BadParameter: a value is out of range.
    """
    if not graph.nodes:
        raise GraphError("The graph has no nodes.")
    if len(graph.nodes) > MAX_NODES:
        raise GraphError(f"The graph has {len(graph.nodes)} nodes, and may have {MAX_NODES}.")
    nodes: dict[str, Node[Any]] = {}
    for number, description in enumerate(graph.nodes):
        node = make_node(number, description, default_model)
        if node.name in nodes:
            raise GraphError(f"There are two nodes `{node.name}`.")
        nodes[node.name] = node
    if graph.start_node not in nodes:
        problem = (
            f"the start node `{graph.start_node}` is not one of its nodes" if graph.start_node else "no start node"
        )
        raise GraphError(f"The graph: {problem}.")
    for node in nodes.values():
        for exit_name, target in node.exits.items():
            if target and target not in nodes:
                raise BadExit(
                    f"The exit `{exit_name}` of the node `{node.name}` leads to `{target}`, which is not a node."
                )
    for node in nodes.values():
        check_values(node.name, node.params)
        node.check()
    return nodes


def make_node(number: int, description: NodeDescription, default_model: str) -> Node[Any]:
    """One node, which is the one of that number.

    Raises:
        GraphError: it cannot be one.
    """
    name, params = description.name, description.params
    if not name or len(name) > MAX_NAME:
        raise GraphError(f"The name of node {number} is empty, or longer than {MAX_NAME} characters.")
    if params is None:
        raise GraphError(f"The node `{name}` has no parameters.")
    if type(params) not in RULES:
        raise GraphError(f"The node `{name}` is of an unknown kind.")
    if "" in models_of(params, default_model):
        raise GraphError(f"The node `{name}` has no model, and the agent has no default model.")
    return NODES[type(params)](description, params)
