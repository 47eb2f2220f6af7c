"""What a graph asks for that not every server knows: one that does not would pass over it, and answer otherwise."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import NodeDescription, NodeParams, SamplingOverrides

#: Fields of nodes, and of their `sampling`, by the extension that brought them.
_TIMINGS = ("timings", "pronunciations")
_GENERATION = ("stop", "json_schema", "logit_bias", "lora")


def check_known(nodes: Iterable[NodeDescription], extensions: Collection[str]) -> None:
    """See to it that a server with these extensions does all that the nodes ask for.

    Raises:
        TryllError: 5002, it does not.
    """
    for node in nodes:
        for extension, field in _asked(node.params):
            if extension not in extensions:
                raise TryllError(5002, f"This server does not know `{field}`, which the node `{node.name}` has.")


def _asked(params: NodeParams | None) -> Iterator[tuple[str, str]]:
    """What is asked for: the extension and the field."""
    for field in _TIMINGS:
        if getattr(params, field, None):
            yield "timings", field
    sampling = getattr(params, "sampling", None)
    if isinstance(sampling, SamplingOverrides):
        for field in _GENERATION:
            if getattr(sampling, field):
                yield "generation", f"sampling.{field}"
