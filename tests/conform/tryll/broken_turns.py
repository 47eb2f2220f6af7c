"""Servers that do not keep the rules of agents, turns, graphs, parameters, storages and models."""

from __future__ import annotations

from typing import Any

from tests.conform.tryll.bent import Way
from tests.conform.tryll.habits import answers, changes, requests, rewrites
from trunkline.wires.tryll import messages as m

# Agents and turns

changes("calls_every_agent_the_same", m.CreateAgentResponse, "tryll.agent.create", agent_id=7)
changes("gives_turns_no_request_id", m.TurnComplete, "tryll.turn.request-id", "tryll.turn.busy", "tryll.turn.parallel",
        request_id=0)  # fmt: skip
changes("fails_every_turn", m.TurnComplete, "tryll.turn.canned", "tryll.turn.empty-message", "tryll.session.again",
        "tryll.graph.end", "tryll.agent.many", "tryll.verify.newer", status=m.TurnStatus.ERROR)  # fmt: skip
changes("fails_no_turn", m.TurnComplete, "tryll.turn.failed", "tryll.turn.steps", "tryll.graph.cycle",
        "tryll.turn.destroyed", "tryll.extra.cancel", status=m.TurnStatus.SUCCESS)  # fmt: skip
changes("always_tells_what_it_did", m.TurnComplete, "tryll.turn.quiet", debug_info="{}")
changes("never_tells_what_it_did", m.TurnComplete, "tryll.turn.diagnostics", "tryll.turn.why",
        "tryll.node.retrieve", "tryll.node.any-distance", debug_info="")  # fmt: skip
changes("counts_no_tokens", m.TurnComplete, "tryll.turn.stream", "tryll.turn.whole", "tryll.node.generate",
        "tryll.node.deltas", tokens_generated=0)  # fmt: skip
changes("counts_one_token", m.TurnComplete, "tryll.node.two", tokens_generated=1)
changes("sends_deltas_only", m.AnswerText, "tryll.turn.whole", "tryll.node.canned", is_delta=True)
changes("sends_no_deltas", m.AnswerText, "tryll.turn.stream", is_delta=False)
changes("calls_everything_final", m.AnswerText, "tryll.turn.several", "tryll.turn.stream", "tryll.wire.one-final",
        is_final=True)  # fmt: skip
changes("calls_nothing_final", m.AnswerText, "tryll.turn.canned", "tryll.turn.no-text", "tryll.wire.one-final",
        is_final=False)  # fmt: skip


@answers("tryll.turn.no-text", "tryll.wire.one-final")
def leaves_out_empty_texts(way: Way, message: m.Message) -> Any:
    return () if isinstance(message, m.AnswerText) and not message.text else None


@requests("tryll.agent.many")
def has_ten_agents_at_most(way: Way, message: Any, payload: bytes) -> Any:
    if not isinstance(message, m.CreateAgentRequest):
        return None
    way.state["agents"] = way.state.get("agents", 0) + 1
    return way.refuse(message, 3003) if way.state["agents"] > 10 else None


@requests("tryll.turn.empty-message")
def takes_no_empty_message(way: Way, message: Any, payload: bytes) -> Any:
    is_empty = isinstance(message, m.SendMessageRequest) and not message.text
    return way.refuse(message, 3007) if is_empty else None


@answers("tryll.turn.long", "tryll.turn.unicode")
def writes_short_and_plain(way: Way, message: m.Message) -> Any:
    if not isinstance(message, m.AnswerText):
        return None
    return message.replace(text=message.text[:5000].encode("ascii", "replace").decode())


@answers("tryll.turn.failed", "tryll.wire.turn-errors")
def tells_of_failures_as_errors(way: Way, message: m.Message) -> Any:
    is_it = isinstance(message, m.TurnComplete) and message.status == m.TurnStatus.ERROR
    return (m.ErrorResponse(0, 4003, "too many steps"), message) if is_it else None


@answers("tryll.turn.so-far")
def says_only_what_the_last_node_did(way: Way, message: m.Message) -> Any:
    if not isinstance(message, m.AnswerText) or message.is_delta:
        return None
    return message.replace(text=message.text.rpartition("\n")[2])


@answers("tryll.turn.why")
def keeps_the_reason_to_itself(way: Way, message: m.Message) -> Any:
    return message.replace(debug_info="{}") if isinstance(message, m.TurnComplete) and message.debug_info else None


@requests("tryll.turn.steps")
def counts_to_sixty_four_always(way: Way, message: Any, payload: bytes) -> Any:
    return message.replace(max_steps_per_turn=0) if isinstance(message, m.CreateAgentRequest) else None


@answers("tryll.turn.busy")
def ends_the_turn_when_disturbed(way: Way, message: m.Message) -> Any:
    if isinstance(message, m.AnswerText):
        way.state["turn"] = message
    if not isinstance(message, m.ErrorResponse) or message.code != 3004:
        return None
    turn = way.state["turn"]
    return message, m.TurnComplete(turn.request_id, turn.agent_id)


@requests("tryll.turn.parallel", "tryll.node.slow")
def runs_one_turn_after_the_other(way: Way, message: Any, payload: bytes) -> Any:
    if not isinstance(message, m.SendMessageRequest):
        return None
    waiting = way.state.setdefault("waiting", [])
    waiting.append(message)
    way.habit.answers = _next_turn
    return None if len(waiting) == 1 else ()


def _next_turn(way: Way, message: m.Message) -> Any:
    waiting = way.state.get("waiting", [])
    if isinstance(message, m.TurnComplete) and waiting:
        waiting.pop(0)
        if waiting:
            way.server.write(_framed(waiting[0]))
    return None


def _framed(message: m.Message) -> bytes:
    from trunkline.wires.tryll.codec import encode, frame

    return frame(encode(message))


@answers("tryll.turn.destroyed")
def acknowledges_before_the_end(way: Way, message: m.Message) -> Any:
    if isinstance(message, m.TurnComplete) and message.status == m.TurnStatus.CANCELLED:
        way.state["held"] = message
        return ()
    return (message, way.state.pop("held")) if isinstance(message, m.Ack) and "held" in way.state else None


# Graphs


@requests("tryll.graph.end")
def wants_an_end(way: Way, message: Any, payload: bytes) -> Any:
    if isinstance(message, m.CreateAgentRequest) and message.graph is not None:
        exits = [getattr(node.params, "default_exit", None) for node in message.graph.nodes]
        return way.refuse(message, 3008) if "" in exits else None
    return None


@requests("tryll.graph.cycle")
def lets_nobody_go_back(way: Way, message: Any, payload: bytes) -> Any:
    if isinstance(message, m.CreateAgentRequest) and message.graph is not None:
        exits = [getattr(node.params, "default_exit", None) for node in message.graph.nodes]
        return way.refuse(message, 3003) if message.graph.start_node in exits else None
    return None


# Parameters


@requests("tryll.param.change", "tryll.param.structural", "tryll.param.node", "tryll.param.failed")
def changes_nothing_and_says_yes(way: Way, message: Any, payload: bytes) -> Any:
    if not isinstance(message, m.ChangeAgentParamRequest):
        return None
    way.tell(m.Ack(message.request_id))
    return ()


@requests("tryll.param.empty")
def tells_nothing_from_empty(way: Way, message: Any, payload: bytes) -> Any:
    is_it = isinstance(message, m.ChangeAgentParamRequest) and getattr(message.params, "default_exit", None) == ""
    return way.refuse(message, 3006) if is_it else None


# Storages


@requests("tryll.storage.sorted", "tryll.storage.map", "tryll.storage.data")
def makes_a_list_of_everything(way: Way, message: Any, payload: bytes) -> Any:
    return message.replace(kind=0, keys=()) if isinstance(message, m.CreateStringStorageRequest) else None


@requests("tryll.storage.files", "tryll.storage.links", "tryll.storage.outside")
def reads_no_files(way: Way, message: Any, payload: bytes) -> Any:
    is_it = isinstance(message, m.CreateStringStorageRequest) and message.file_path
    return way.refuse(message, 7003) if is_it else None


@requests("tryll.storage.paths")
def knows_storages_by_name_alone(way: Way, message: Any, payload: bytes) -> Any:
    is_it = isinstance(message, m.CreateAgentRequest) and message.graph is not None
    paths = [getattr(node.params, "string_storage", "") or "" for node in message.graph.nodes] if is_it else []
    return way.refuse(message, 3010) if any("/" in path for path in paths) else None


changes("finds_no_records", m.CreateEmbeddedStringStorageResponse, "tryll.embedded.create", record_count=0)
rewrites("filters_nothing", m.RetrieveParams, "tryll.embedded.filter", filter=None)

# Models


@answers("tryll.model.list")
def lists_models_twice(way: Way, message: m.Message) -> Any:
    return message.replace(models=message.models * 2) if isinstance(message, m.ListModelsResponse) else None


@answers("tryll.model.list")
def invents_kinds_of_models(way: Way, message: m.Message) -> Any:
    if not isinstance(message, m.ListModelsResponse):
        return None
    return message.replace(models=tuple(each.replace(model_type="magic") for each in message.models))


@answers("tryll.model.sizes")
def weighs_what_is_not_there(way: Way, message: m.Message) -> Any:
    if not isinstance(message, m.ListModelsResponse):
        return None
    return message.replace(models=tuple(each.replace(status=0, size_bytes=9) for each in message.models))


@requests("tryll.model.unconfigured")
def lists_models_when_configured(way: Way, message: Any, payload: bytes) -> Any:
    if isinstance(message, m.ConfigureSessionRequest):
        way.state["configured"] = True
    is_early = isinstance(message, m.ListModelsRequest) and "configured" not in way.state
    return way.refuse(message, 2002) if is_early else None
