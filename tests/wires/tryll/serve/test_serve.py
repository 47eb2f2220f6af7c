"""A Tryll server as its clients see it: the session, agents, turns, storages and models."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import Peer, Served, echo, served
from trunkline.agents.graph import agent as graph_agent
from trunkline.base import memory
from trunkline.core.graph.turns import Ending
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.serve import server as serving

SLOW = "mock-slow"
LONG = " ".join(["word"] * 500)


# The session.


async def test_nothing_that_a_session_owns_is_made_before_it_is_configured(server: Served) -> None:
    async with server.peer(configured=False) as peer:
        for request in (
            m.CreateAgentRequest(7, echo(), "any"),
            m.CreateStringStorageRequest(8, "lines", ("a",)),
            m.CreateEmbeddedStringStorageRequest(9, "lore", strings=("a",), embedding_model="any"),
            m.DestroyStringStorageRequest(10, "lines"),
            m.DestroyEmbeddedStringStorageRequest(11, "lore"),
            m.LoadModelRequest(12, "smollm2-135m"),
        ):
            assert await peer.refused(request) == 2002
        assert (await peer.ask(m.ListModelsRequest(13), m.ListModelsResponse)).request_id == 13
        await peer.configure()
        assert await peer.agent()


async def test_another_version_is_refused_and_the_connection_ends(server: Served) -> None:
    for version, works in ((0, True), (2, True), (1, False), (3, False)):
        async with server.peer(configured=False) as peer:
            request = m.ConfigureSessionRequest(2**64 - 1, protocol_version=version)
            if works:
                assert (await peer.ask(request, m.ConfigureSessionResponse)).request_id == 2**64 - 1
            else:
                assert await peer.refused(request) == 5004
                assert await peer.hear() is None


async def test_requests_that_are_sent_in_one_go_are_done_in_their_order(server: Served) -> None:
    async with server.peer(configured=False) as peer:
        node = m.NodeDescription("find", m.RetrieveParams(embedded_string_storage="lore"))
        canned = m.NodeDescription("say", m.CannedResponseParams(string_storage="lines"))
        peer.say(
            m.ConfigureSessionRequest(1),
            m.CreateEmbeddedStringStorageRequest(2, "lore", strings=("a", "b"), embedding_model="any"),
            m.CreateStringStorageRequest(3, "lines", ("hello",)),
            m.CreateAgentRequest(4, m.GraphDescription((node, canned), "find")),
            m.DestroyEmbeddedStringStorageRequest(5, "lore"),
            m.DestroyStringStorageRequest(6, "lines"),
            m.ConfigureSessionRequest(7),
        )
        assert await peer.get(m.ConfigureSessionResponse) == m.ConfigureSessionResponse(1)
        made = await peer.get(m.CreateEmbeddedStringStorageResponse)
        assert made == m.CreateEmbeddedStringStorageResponse(2, "lore", 2, 384)
        assert await peer.get(m.CreateStringStorageResponse) == m.CreateStringStorageResponse(3, "lines")
        assert (await peer.get(m.CreateAgentResponse)).request_id == 4
        assert [await peer.get(m.Ack), await peer.get(m.Ack)] == [m.Ack(5), m.Ack(6)]
        assert await peer.get(m.ConfigureSessionResponse) == m.ConfigureSessionResponse(7)


async def test_kinds_that_a_server_does_not_take_are_refused_and_the_session_goes_on(peer: Peer) -> None:
    for request in (
        m.SessionReady(), m.AnswerText(5, 1, "x"), m.Ack(5),
    ):  # fmt: skip
        assert await peer.refused(request) == 5002
    assert await peer.refused(m.DebugCommandRequest(6, "crash")) == 5005
    assert await peer.refused(m.ConfigureSessionRequest(7, inference_engine=200)) == 5001
    assert await peer.agent()


async def test_a_token_is_asked_for_before_anything_is_told(tmp_path: Path) -> None:
    async with served(tmp_path, token="s3cret") as server:
        async with server.peer(configured=False) as peer:
            assert await peer.refused(m.ListModelsRequest(1)) == 2003
            assert await peer.refused(m.DeleteModelRequest(1, "smollm2-135m")) == 2003
            assert (await peer.ask(m.HealthRequest(2), m.HealthResponse)).status == "ready"
            await peer.configure(token="s3cret")
            await peer.ask(m.ListModelsRequest(1), m.ListModelsResponse)
        for wrong in ("", "s3cre", "s3cret "):
            async with server.peer(configured=False) as peer:
                assert await peer.refused(m.ConfigureSessionRequest(3, token=wrong)) == 2003
                assert await peer.hear() is None


async def test_health_counts_what_there_is(server: Served, peer: Peer) -> None:
    agent = await peer.agent(SLOW)
    async with server.peer() as other:
        await other.agent()
        peer.say(m.SendMessageRequest(3, agent, LONG))
        await peer.get(m.AnswerText)
        found = await other.ask(m.HealthRequest(9), m.HealthResponse)
        assert (found.request_id, found.sessions, found.agents, found.turns_running) == (9, 2, 2, 1)
        assert found.turns_waiting == 0


# Turns.


async def test_a_turn_is_streamed_and_ends_once(peer: Peer) -> None:
    agent = await peer.agent()
    for request_id in (0, 1, 2**64 - 1):
        peer.say(m.SendMessageRequest(request_id, agent, "hello there"))
        answers, complete = await peer.turn()
        assert "".join(answer.text for answer in answers) == "You said: hello there"
        assert all(answer.is_delta for answer in answers)
        assert (complete.request_id, complete.status, complete.debug_info) == (request_id, 0, "")
        assert complete.tokens_generated == 4


async def test_a_whole_answer_is_the_one_frame_of_its_turn(peer: Peer) -> None:
    made = await peer.ask(m.CreateAgentRequest(2, echo(stream=False), "any", True), m.CreateAgentResponse)
    peer.say(m.SendMessageRequest(3, made.agent_id, "hello"))
    answers, complete = await peer.turn()
    assert [(answer.text, answer.is_delta) for answer in answers] == [("You said: hello", False)]
    assert '"say"' in complete.debug_info


async def test_a_second_message_is_refused_and_the_turn_goes_on(peer: Peer) -> None:
    agent = await peer.agent(SLOW)
    peer.say(m.SendMessageRequest(3, agent, "one two"), m.SendMessageRequest(4, agent, "again"))
    assert await peer.get(m.ErrorResponse) == m.ErrorResponse(4, 3004, "The agent is in a turn.")
    answers, complete = await peer.turn()
    assert ("".join(answer.text for answer in answers), complete.request_id) == ("You said: one two", 3)
    change = m.ChangeAgentParamRequest(6, agent, "say", m.GenerateParams(stream=True))
    peer.say(m.SendMessageRequest(5, agent, "x"), change, m.RestoreHistoryRequest(7, agent))
    assert [(await peer.get(m.ErrorResponse)).code for _ in range(2)] == [3004, 3004]
    assert (await peer.turn())[1].status == m.TurnStatus.SUCCESS


async def test_agents_of_a_session_speak_at_the_same_time(peer: Peer) -> None:
    slow, quick = await peer.agent(SLOW), await peer.agent()
    peer.say(m.SendMessageRequest(3, slow, LONG), m.SendMessageRequest(4, quick, "hi"))
    heard: list[m.Message | None] = []
    while not isinstance(heard[-1] if heard else None, m.TurnComplete):
        heard.append(await peer.hear())
    assert heard[-1] == m.TurnComplete(4, quick, tokens_generated=3, tokens_prompt=1)


async def test_a_turn_that_fails_says_so_at_its_end_only(peer: Peer) -> None:
    instruction = m.NodeDescription("round", m.InstructionParams(instruction="x", default_exit="round"))
    graph = m.GraphDescription((instruction,), "round")
    made = await peer.ask(m.CreateAgentRequest(2, graph, "", True), m.CreateAgentResponse)
    peer.say(m.SendMessageRequest(3, made.agent_id, "go"))
    answers, complete = await peer.turn()
    assert ([answer.text for answer in answers], complete.status) == ([""], m.TurnStatus.ERROR)
    assert "4003" in complete.debug_info


async def test_a_turn_whose_end_fits_into_no_frame_ends_all_the_same(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await peer.agent()
    monkeypatch.setattr(graph_agent, "_ending", lambda *_, **__: Ending(tokens_generated=10**12))
    peer.say(m.SendMessageRequest(5, agent, "hello"))
    assert (await peer.turn())[1].status == m.TurnStatus.ERROR
    monkeypatch.undo()
    peer.say(m.SendMessageRequest(6, agent, "hello"))
    assert (await peer.turn())[1].status == m.TurnStatus.SUCCESS
    assert await peer.ask(m.DestroyAgentRequest(7, agent), m.Ack) == m.Ack(7)


async def test_a_cancelled_turn_ends_before_it_is_acknowledged(peer: Peer) -> None:
    agent = await peer.agent(SLOW)
    peer.say(m.SendMessageRequest(3, agent, LONG))
    await peer.get(m.AnswerText)
    peer.say(m.CancelTurnRequest(4, agent))
    _, complete = await peer.turn()
    assert (complete.status, complete.request_id) == (m.TurnStatus.CANCELLED, 3)
    assert await peer.get(m.Ack) == m.Ack(4)
    assert await peer.ask(m.CancelTurnRequest(5, agent), m.Ack) == m.Ack(5)
    peer.say(m.SendMessageRequest(6, agent, "still here"))
    assert (await peer.turn())[1].status == m.TurnStatus.SUCCESS


async def test_a_turn_that_is_cancelled_before_its_first_step_ends_all_the_same(peer: Peer) -> None:
    agent = await peer.agent()
    peer.say(m.SendMessageRequest(3, agent, "x"), m.CancelTurnRequest(4, agent))
    answers, complete = await peer.turn()
    assert ([answer.text for answer in answers], complete.status) == ([""], m.TurnStatus.CANCELLED)
    assert await peer.get(m.Ack) == m.Ack(4)


# Agents.


async def test_a_destroyed_agent_says_its_last_words_before_the_acknowledgement(peer: Peer) -> None:
    agent, other = await peer.agent(SLOW), await peer.agent()
    peer.say(m.SendMessageRequest(3, agent, LONG))
    await peer.get(m.AnswerText)
    peer.say(m.DestroyAgentRequest(4, agent), m.DestroyAgentRequest(5, agent))
    assert (await peer.get(m.ErrorResponse)).code == 3002
    assert (await peer.turn())[1].status == m.TurnStatus.CANCELLED
    assert await peer.get(m.Ack) == m.Ack(4)
    for request in (
        m.SendMessageRequest(6, agent, "x"), m.DestroyAgentRequest(6, agent), m.CancelTurnRequest(6, agent),
        m.ChangeAgentParamRequest(6, agent, "say", m.GenerateParams()), m.SaveHistoryRequest(6, agent),
        m.RestoreHistoryRequest(6, agent),
    ):  # fmt: skip
        assert await peer.refused(request) == 3002
    assert await peer.ask(m.DestroyAgentRequest(7, other), m.Ack) == m.Ack(7)


async def test_a_session_does_not_know_the_agents_of_another(server: Served, peer: Peer) -> None:
    agent = await peer.agent()
    async with server.peer() as other:
        assert await other.agent() != agent
        for unknown in (agent, agent + 1, 0, 1, 2**64 - 1):
            assert await other.refused(m.SendMessageRequest(3, unknown, "x")) == 3001
    assert await peer.refused(m.SendMessageRequest(3, agent + 1, "x")) == 3001


async def test_a_graph_that_cannot_work_is_refused(peer: Peer) -> None:
    assert await peer.refused(m.CreateAgentRequest(2)) == 3003
    assert await peer.refused(m.CreateAgentRequest(2, echo(default_exit="nowhere"), "any")) == 3008
    assert await peer.refused(m.CreateAgentRequest(2, echo())) == 3003


async def test_a_node_changes_between_turns(peer: Peer) -> None:
    agent = await peer.agent()
    change = m.ChangeAgentParamRequest(3, agent, "say", m.GenerateParams(stream=False))
    assert await peer.ask(change, m.Ack) == m.Ack(3)
    peer.say(m.SendMessageRequest(4, agent, "x"))
    answers, _ = await peer.turn()
    assert [answer.is_delta for answer in answers] == [False]
    assert await peer.refused(change.replace(node_name="other")) == 3005
    assert await peer.refused(change.replace(params=None)) == 3007
    assert await peer.refused(change.replace(params=m.GenerateParams(model_name="b"))) == 3006
    # What is sent in one go is done in its order: changes, a message for the changed agent, and one too many.
    whole = change.replace(request_id=7, params=m.GenerateParams(stream=False))
    stream = change.replace(request_id=8, params=m.GenerateParams(stream=True))
    peer.say(whole, stream, m.SendMessageRequest(6, agent, "x y"), m.SendMessageRequest(9, agent, "z"), whole)
    assert [await peer.get(m.Ack), await peer.get(m.Ack)] == [m.Ack(7), m.Ack(8)]
    busy = [await peer.get(m.ErrorResponse), await peer.get(m.ErrorResponse)]
    assert [(error.request_id, error.code) for error in busy] == [(9, 3004), (7, 3004)]
    assert [answer.text for answer in (await peer.turn())[0]] == ["You", " said:", " x", " y", ""]
    # Whoever destroys it while it changes hears of the change first, then of what came before the end, and after it.
    late = m.SendMessageRequest(8, agent, "y")
    peer.say(change, m.SendMessageRequest(6, agent, "x"), m.DestroyAgentRequest(5, agent), late)
    assert await peer.get(m.Ack) == m.Ack(3)
    assert (await peer.get(m.ErrorResponse)).request_id == 8
    _, complete = await peer.turn()
    assert (complete.request_id, complete.status) == (6, m.TurnStatus.CANCELLED)
    assert await peer.get(m.Ack) == m.Ack(5)


async def test_a_conversation_goes_on_in_another_agent(peer: Peer) -> None:
    first, second = await peer.agent(), await peer.agent()
    peer.say(m.SendMessageRequest(3, first, "hello"))
    await peer.turn()
    saved = await peer.ask(m.SaveHistoryRequest(4, first), m.SaveHistoryResponse)
    told = (m.HistoryEntry("user", "hello"), m.HistoryEntry("assistant", "You said: hello"))
    assert saved == m.SaveHistoryResponse(4, first, told)
    for append in (False, True, True):
        await peer.ask(m.RestoreHistoryRequest(5, second, told, append), m.Ack)
    assert (await peer.ask(m.SaveHistoryRequest(6, second), m.SaveHistoryResponse)).entries == told * 3
    # What is too long for one entry is in several, one after the other.
    pieces = (m.HistoryEntry("user", "hel"), m.HistoryEntry("user", "lo"), told[1])
    await peer.ask(m.RestoreHistoryRequest(5, second, pieces), m.Ack)
    assert (await peer.ask(m.SaveHistoryRequest(6, second), m.SaveHistoryResponse)).entries == told
    for wrong in ((told[1], told[0]), told[:1], (m.HistoryEntry("system", "x"), told[1])):
        assert await peer.refused(m.RestoreHistoryRequest(7, second, wrong)) == 3007


# Storages and models.


async def test_files_are_found_in_the_storage_folder_only(tmp_path: Path, peer: Peer) -> None:
    root = tmp_path / "root"
    (root / "inner").mkdir()
    (root / "inner/lines.txt").write_text("one\n")
    (root / "out").symlink_to(tmp_path)
    (tmp_path / "secret.txt").write_text("x\n")
    for number, path in enumerate(("../secret.txt", "/etc/hostname", "C:\\x.txt", "out/secret.txt")):
        assert await peer.refused(m.CreateStringStorageRequest(3, f"s{number}", file_path=path)) == 3009
    request = m.CreateStringStorageRequest(4, "lines", file_path="inner/lines.txt")
    await peer.ask(request, m.CreateStringStorageResponse)
    assert await peer.refused(request) == 7002
    assert await peer.refused(m.DestroyStringStorageRequest(5, "other")) == 7001
    assert await peer.refused(m.DestroyEmbeddedStringStorageRequest(5, "other")) == 8001
    await peer.configure(storage_data_folder="inner")
    await peer.ask(m.CreateStringStorageRequest(6, "more", file_path="lines.txt"), m.CreateStringStorageResponse)
    await peer.configure(storage_data_folder=str(root / "inner"))
    for outside in ("..", "/", str(tmp_path), "out"):
        assert await peer.refused(m.ConfigureSessionRequest(7, storage_data_folder=outside)) == 3009
    assert await peer.refused(m.ConfigureSessionRequest(7, storage_data_folder="nowhere")) == 3010


async def test_models_are_listed_and_unknown_ones_are_refused(peer: Peer) -> None:
    listed = await peer.ask(m.ListModelsRequest(3), m.ListModelsResponse)
    assert {model.name: model.model_type for model in listed.models}["smollm2-135m"] == "language"
    for kind in (m.DownloadModelRequest, m.LoadModelRequest, m.UnloadModelRequest, m.DeleteModelRequest):
        assert 6000 < await peer.refused(kind(4, "no-such-model")) < 7000
    assert await peer.ask(m.UnloadModelRequest(5, "smollm2-135m"), m.Ack) == m.Ack(5)


async def test_a_model_that_is_not_there_is_named(peer: Peer) -> None:
    for auto, codes in ((False, (3003, 6002)), (True, (6006,))):
        await peer.configure(inference_engine=m.InferenceEngine.LLAMA_CPP, allow_auto_model_downloading=auto)
        error = await peer.ask(m.CreateAgentRequest(3, echo(), "no-such-model"), m.ErrorResponse)
        assert error.code in codes
        assert "no-such-model" in error.message


async def test_an_agent_keeps_its_engine_when_the_session_changes_its_own(peer: Peer) -> None:
    agent = await peer.agent()
    await peer.configure(inference_engine=m.InferenceEngine.LLAMA_CPP)
    peer.say(m.SendMessageRequest(3, agent, "x"))
    assert (await peer.turn())[1].status == m.TurnStatus.SUCCESS


async def test_a_thousand_agents_live_in_one_session(peer: Peer) -> None:
    peer.say(*(m.CreateAgentRequest(number, echo(), "any") for number in range(1, 1001)))
    ids = [(await peer.get(m.CreateAgentResponse)).agent_id for _ in range(1000)]
    assert len(set(ids)) == 1000
    peer.say(*(m.SendMessageRequest(5, agent, "x") for agent in ids))
    done: set[int] = set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(done) < 1000:
            if isinstance(heard := await peer.hear(), m.TurnComplete):
                done.add(heard.agent_id)
    assert done == set(ids)


async def test_when_clients_have_gone_their_sessions_have_too_and_memory_is_given_back_once(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []
    monkeypatch.setattr(memory, "give_back", lambda: given.append(1))
    monkeypatch.setattr(serving, "_GIVE_BACK_SECONDS", 0.2)
    async with server.peer() as one, server.peer() as other:
        for peer in (one, other):
            await peer.ask(m.HealthRequest(1), m.HealthResponse)
        connections = list(server.server.connections)
        assert all(each.session is not None for each in connections)
        assert not given
    await until(lambda: bool(given) and not server.server.connections)
    assert [each.session for each in connections] == [None, None]
    assert given == [1]
