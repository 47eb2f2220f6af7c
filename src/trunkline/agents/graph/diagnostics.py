"""The `debug_info` of a turn: one JSON object that names the nodes run.

    {"status": "Success", "wall_ms": 12.5, "ttft_ms": 3.1, "tokens_generated": 4, "error": null,
     "nodes": [{"name": "lore", "type": "Retrieve", "exit": "found", "ms": 1.2, "data": {"result_count": "1", ...}}],
     "interaction": [{"_type": "HumanMessage", "text": "..."}, {"_type": "KnowledgeComponent", ...}],
     "lore.result_count": "1"}

Every value of a node's `data` is a text. The same values stand at the top, as `NODE.KEY`, for readers that look for one
of them; of a node that ran twice the last ones. `interaction` is the message and all that the nodes have added to it,
in their order. What would not fit into a frame is cut, longest texts first, and `truncated` says so.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

from trunkline.agents.graph.interaction import Interaction
from trunkline.agents.graph.turn import AnswerSound, Delta, GraphTurn, TurnEvent, Whole
from trunkline.base import jsontext
from trunkline.core.faults import Fault
from trunkline.core.graph.ordinals import TurnStatus
from trunkline.core.graph.turns import DescribeError

#: Bytes of the whole: the rest of its frame, and what escapes add, has room beside it.
MAX_BYTES = 640 * 1024
#: What is left of a long text when all of them together are too much: first this much, then less.
_CUTS = (4000, 400, 40)
#: Characters of all data that are kept while a turn runs: what comes after them is not written down.
MAX_KEPT = 4 * 1024 * 1024
#: And values: with their names, and each of them twice, more would not fit, and would take long to find out.
MAX_VALUES = 10_000

_STATUS = {TurnStatus.SUCCESS: "Success", TurnStatus.ERROR: "Error", TurnStatus.CANCELLED: "Cancelled"}


class Diary:
    """What is written down about one turn."""

    def __init__(self, turn: GraphTurn, describe: DescribeError) -> None:
        self._describe = describe
        self._interaction = Interaction(turn)
        self._kept = self._values = 0
        self._full = False
        self._begun = perf_counter()
        self._first_text: float | None = None
        self._heard = False
        self._nodes: list[dict[str, Any]] = []
        self._since = self._begun

    def node(self, name: str, kind: str) -> dict[str, Any]:
        """A node begins; gives what it may write its data into."""
        self._since = perf_counter()
        data: dict[str, Any] = {}
        self._nodes.append({"name": name, "type": kind, "exit": "", "ms": 0.0, "data": data})
        return data

    def left(self, exit_name: str) -> None:
        """The node is done. Without an exit it was cut off, which is known at the end."""
        if not exit_name:
            return
        self._nodes[-1]["exit"] = exit_name
        self._nodes[-1]["ms"] = _ms(perf_counter() - self._since)
        self._settle()

    def _settle(self) -> None:
        """The last node has written all that it will."""
        if not self._nodes:
            return
        self._interaction.update()
        data = self._nodes[-1]["data"]
        if self._full:
            data.clear()
            return
        self._kept += sum(map(len, data.values()))
        self._values += len(data)
        self._full = self._kept > MAX_KEPT or self._values > MAX_VALUES

    def told(self, event: TurnEvent) -> None:
        """Text or sound goes out, or something else.

        The node that made the first sound of a turn says when, counted from the turn's beginning.
        """
        if isinstance(event, Delta | Whole):
            if self._first_text is None:
                self._first_text = perf_counter()
        elif isinstance(event, AnswerSound) and not self._heard:
            self._heard = True
            self._nodes[-1]["data"]["time_to_first_audio_ms"] = str(_ms(perf_counter() - self._begun))

    def finished(self, status: int, tokens: int, error: Fault | None) -> str:
        """The JSON of it all."""
        if self._nodes and not self._nodes[-1]["exit"]:
            self._settle()
        whole: dict[str, Any] = {
            "status": _STATUS[status],
            "wall_ms": _ms(perf_counter() - self._begun),
            "ttft_ms": None if self._first_text is None else _ms(self._first_text - self._begun),
            "tokens_generated": tokens,
            "error": None if error is None else self._told_error(error),
            "nodes": self._nodes,
            "interaction": [],
        }
        if self._full:
            whole["truncated"] = True
        for cut in (None, *_CUTS, 0):
            if cut is not None:
                whole["truncated"] = True
                for node in self._nodes:
                    node["data"] = {key: _cut(value, cut) for key, value in node["data"].items()} if cut else {}
            # What is far too much is not even written.
            if self._chars() > MAX_BYTES:
                continue
            whole["interaction"], complete = self._interaction.shown(*(() if cut is None else (cut,)))
            if not complete:
                whole["truncated"] = True
            if len(text := _with_flat(whole)) <= MAX_BYTES:
                return text.decode()
        return _bare(whole)

    def _told_error(self, error: Fault) -> dict[str, object]:
        told = self._describe(error)
        return {key: _cut(value, _CUTS[0]) if isinstance(value, str) else value for key, value in told.items()}

    def _chars(self) -> int:
        """The characters of all names and values: the whole has at least as many bytes."""
        return sum(
            len(node["name"]) + sum(len(key) + len(value) for key, value in node["data"].items())
            for node in self._nodes
        )


def _with_flat(whole: dict[str, Any]) -> bytes:
    flat = {f"{node['name']}.{key}": value for node in whole["nodes"] for key, value in node["data"].items()}
    return jsontext.dumps({**whole, **{key: value for key, value in flat.items() if key not in whole}})


def _bare(whole: dict[str, Any]) -> str:
    """Names alone, as many as fit: for a graph of very long ones that ran very often."""
    names: list[str] = []
    room = MAX_BYTES // 2
    for node in whole["nodes"]:
        room -= 6 * len(node["name"]) + 3
        if room < 0:
            break
        names.append(node["name"])
    return jsontext.dumps({**whole, "nodes": [{"name": name} for name in names], "interaction": []}).decode()


def by_kind(error: Fault) -> dict[str, object]:
    """What failed a turn, for readers that know no wire."""
    return {"kind": error.kind, "message": str(error)}


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + " ..."


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
