"""ClassifyIntent: the label of the record that is nearest to the user's message."""

from __future__ import annotations

from trunkline.agents.graph.dialog import Dialog
from trunkline.agents.graph.host import Host
from trunkline.agents.graph.nodes.retrieve import SearchNode
from trunkline.agents.graph.turn import GraphTurn, NodeNotice
from trunkline.core.faults import BadParameter, GraphError
from trunkline.core.graph.description import ClassifyIntentParams

#: What the event of both nodes that classify is called.
INTENT_EVENT = "intent_classified"


class ClassifyIntent(SearchNode[ClassifyIntentParams]):
    """The label is what the record holds in `metadata_field`."""

    async def open(self, host: Host, default_model: str) -> None:
        await super().open(host, default_model)
        self._check_field(self.params, GraphError)

    async def change(self, params: ClassifyIntentParams, host: Host) -> None:
        self._check_field(params, BadParameter)
        await super().change(params, host)

    def _check_field(self, params: ClassifyIntentParams, kind: type[GraphError]) -> None:
        column = self.storage.records.columns.get(params.metadata_field or "")
        if column is None:
            raise self.wrong(f"the storage has no field `{params.metadata_field or ''}` (`metadata_field`)", kind)
        if column.field.type != "string":
            told = f"the field `{params.metadata_field}` (`metadata_field`) is {column.field.type}, and must be string"
            raise self.wrong(told, kind)

    async def run(self, turn: GraphTurn, dialog: Dialog) -> str:
        params = self.params
        found = await self.search(turn, params.diagnostic_topk if turn.data is not None else 1)
        nearest = found[0] if found else None
        label = None
        if nearest is not None and self.near(nearest):
            label = self.storage.field(params.metadata_field or "", nearest.index) or None
        if turn.data is not None:
            turn.data["metadata_field"] = params.metadata_field or ""
            for rank, chunk in enumerate(found):
                turn.data[f"candidate[{rank:03}]"] = f"{chunk.distance:.6f} {chunk.text}"
            if nearest is not None:
                turn.data |= {
                    "raw_distance": f"{nearest.distance:.6f}",
                    "result.intent": label or "",
                    "result.record_index": str(nearest.index),
                    "result.id": nearest.id,
                    "result.text": nearest.text,
                }
        if nearest is None or label is None:
            return "not_found"
        turn.intent = label
        if params.notify_client:
            pairs = (
                ("intent", label),
                ("record_id", nearest.id),
                ("record_index", str(nearest.index)),
                ("distance", f"{nearest.distance:.6f}"),
            )
            turn.events.append(NodeNotice(self.name, INTENT_EVENT, pairs))
        return "found"
