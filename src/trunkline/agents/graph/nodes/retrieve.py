"""Retrieve: records near to the user's message."""

from __future__ import annotations

from typing import Generic, TypeVar

from trunkline.agents.graph.dialog import Dialog
from trunkline.agents.graph.embedded import EmbeddedStorage, FoundRecord
from trunkline.agents.graph.filters import FilterError, Predicate
from trunkline.agents.graph.host import Host
from trunkline.agents.graph.nodes.base import Node
from trunkline.agents.graph.turn import GraphTurn, Knowledge
from trunkline.core.faults import BadParameter
from trunkline.core.graph.description import ClassifyIntentParams, RetrieveParams

S = TypeVar("S", RetrieveParams, ClassifyIntentParams)


class SearchNode(Node[S], Generic[S]):
    """A node that searches an embedded storage for the user's message."""

    storage: EmbeddedStorage
    _predicate: Predicate | None = None

    def check(self) -> None:
        if not self.params.embedded_string_storage:
            raise self.wrong("no `embedded_string_storage`")

    async def open(self, host: Host, default_model: str) -> None:
        self.storage = await host.embedded(self.params.embedded_string_storage or "")
        self._predicate = self.compile(self.params)

    async def change(self, params: S, host: Host) -> None:
        predicate = self.compile(params)
        self.params, self._predicate = params, predicate

    def compile(self, params: S) -> Predicate | None:
        """The filter of some parameters.

        Raises:
            BadParameter: it does not fit the storage.
        """
        try:
            return self.storage.compile_filter(params.filter or "")
        except FilterError as error:
            raise self.wrong(str(error), BadParameter) from None

    async def search(self, turn: GraphTurn, count: int) -> list[FoundRecord]:
        """The nearest records that fit the filter; none for an empty message.

        Raises:
            NodeFailed: it failed.
        """
        if turn.data is not None:
            turn.data |= {
                "query": turn.text,
                "threshold": f"{self.params.threshold:g}" if self.params.threshold else "inf",
                "filter": self.params.filter or "",
            }
        if not turn.text.strip():
            return []
        try:
            return await self.storage.search(turn.text, count, self._predicate)
        except Exception as error:
            raise self.failed(error) from error

    def near(self, chunk: FoundRecord) -> bool:
        """Whether a record is within the threshold, which is the largest distance; 0 is none."""
        return not self.params.threshold or chunk.distance <= self.params.threshold


class Retrieve(SearchNode[RetrieveParams]):
    """What it finds goes with the turn, even if it is nothing."""

    async def run(self, turn: GraphTurn, dialog: Dialog) -> str:
        found = await self.search(turn, self.params.top_k)
        near = tuple(chunk for chunk in found if self.near(chunk))
        source = self.params.source or self.name
        turn.found(Knowledge(source, near))
        if turn.data is not None:
            turn.data |= {
                "source": source,
                "top_k": str(self.params.top_k),
                "raw_result_count": str(len(found)),
                "filtered_count": str(len(found) - len(near)),
                "result_count": str(len(near)),
            }
            for rank, chunk in enumerate(near):
                turn.data |= {
                    f"result[{rank:03}].id": chunk.id,
                    f"result[{rank:03}].distance": f"{chunk.distance:.6f}",
                    f"result[{rank:03}].text": chunk.text,
                }
        return "found" if near else "not_found"
