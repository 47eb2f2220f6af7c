"""Cycles that are told to end in the middle, and disks that fail: each element of the decision still has its result."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any

import pytest

from tests.support.cycles import World, begin, comment, tx
from tests.support.provider import HANG
from tests.support.sns_stub import AGENT, SnsStub
from trunkline.core.faults import ConfigError
from trunkline.runner.actions import NOT_CARRIED_OUT
from trunkline.runner.chain.outcome import TxResult
from trunkline.runner.chain.performer import TxPerformer
from trunkline.runner.config import normalise
from trunkline.runner.cycle import Runner
from trunkline.runner.holding import FileHold, LeaseLost
from trunkline.runner.opening import open_runner
from trunkline.runner.state import AgentState

HASH = "0x" + "1b" * 32
EXECUTION = {"rpcUrl": "http://127.0.0.1:1", "privateKey": "0x" + "4f" * 32}


class Chain:
    """What a performer does, once its transaction is broadcast."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, hangs: bool = False) -> None:
        self.broadcast = asyncio.Event()
        self.received = 0
        self._hangs = hangs
        monkeypatch.setattr(TxPerformer, "perform", self._perform)
        monkeypatch.setattr(TxPerformer, "received", self._received)
        monkeypatch.setattr(TxPerformer, "in_flight", TxResult(False, {"hash": HASH}, "on its way", HASH))

    async def _perform(self, *_: Any) -> TxResult:
        self.broadcast.set()
        if self._hangs:
            await asyncio.Event().wait()
        return TxResult(True, {"type": "tx", "hash": HASH, "status": 1}, None, HASH)

    def _received(self) -> None:
        self.received += 1


async def broken_off(runner: Runner, when: Any) -> list[dict[str, Any]]:
    """The results of a cycle that is told to end then."""
    task = asyncio.create_task(runner.cycle())
    await when
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    await runner.close()
    return list(runner.progress.results)


async def test_a_write_under_way_is_unknown_and_those_after_it_are_not_carried_out(world: World, sns: SnsStub) -> None:
    thread = sns.thread()
    sns.accident("POST /api/threads", HANG)
    decision = [comment(thread), begin(), {"action": "dance"}, comment(thread, "Never")]
    # General data, context, a nonce and a comment, a nonce and the thread.
    results = await broken_off(world.open(decision), sns.asked(6))
    assert [(each["action"], each["ok"], each.get("unknown")) for each in results] == [
        ("comment", True, None), ("create_thread", False, True), ("dance", False, None), ("comment", False, None)
    ]  # fmt: skip
    assert results[3]["error"] == NOT_CARRIED_OUT


async def test_a_transaction_under_way_keeps_its_hash(
    world: World, sns: SnsStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain(monkeypatch, hangs=True)
    runner = world.open([tx(sns.thread()), begin()], execution=EXECUTION)
    results = await broken_off(runner, chain.broadcast.wait())
    assert [(each["action"], each["ok"], each.get("unknown"), each.get("hash")) for each in results] == [
        ("tx", False, True, HASH), ("create_thread", False, None, None)
    ]  # fmt: skip
    assert (chain.received, sns.writes) == (0, [])


async def test_a_hash_outlives_an_inbox_that_cannot_be_written_and_the_performer_keeps_what_is_not_stored(
    world: World, sns: SnsStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain(monkeypatch)
    thread = sns.thread()
    await world.run([tx(thread)], execution=EXECUTION)
    assert chain.received == 1

    def full(self: AgentState, payload: dict[str, Any]) -> None:
        raise ConfigError("no room")

    monkeypatch.setattr(AgentState, "add_feedback", full)
    report = await world.run([tx(thread), begin()], execution=EXECUTION)
    assert [(each["ok"], each.get("hash")) for each in report.results] == [(True, HASH), (True, None)]
    assert len(report.actions) == 2
    assert chain.received == 1


async def test_a_post_that_was_answered_is_done_although_that_cannot_be_noted(
    world: World, sns: SnsStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: AgentState, key: int, id: str | None = None) -> None:
        raise ConfigError("no room")

    monkeypatch.setattr(AgentState, "end_write", full)
    report = await world.run([begin()])
    assert (report.results[0]["ok"], report.results[0]["threadId"]) == (True, sns.threads[0]["id"])


async def test_when_another_launcher_runs_the_agent_nothing_more_is_sent_and_each_element_has_a_result(
    world: World, sns: SnsStub
) -> None:
    class Passing(FileHold):
        """The right to run it ends when it was asked for so often."""

        left = 2

        async def check(self) -> None:
            self.left -= 1
            if self.left < 0:
                raise LeaseLost

    thread = sns.thread()
    decision = [comment(thread, "Sent"), begin("Not sent"), {"action": "dance"}, comment(thread, "Nor this")]
    config = normalise({**world.config, "brain": {"kind": "scripted", "replies": [decision]}})
    runner = open_runner(config, home=str(world.home), hold=Passing(str(world.home), AGENT))
    # The first question is before the brain is asked, the second before the comment is sent.
    report = await runner.cycle()
    await runner.close()
    assert "Another launcher may run this agent" in str(report.error)
    assert [result["ok"] for result in report.results] == [True, False, False, False]
    assert report.results[1]["error"] == report.error
    assert report.results[3]["error"] == NOT_CARRIED_OUT
    assert [body for _, body in sns.writes] == [{"body": "Sent"}]
    # What was about to be sent stays noted, for whoever runs the agent now.
    with closing(AgentState(str(world.home), AGENT)) as state:
        assert [write.data["title"] for write in state.open_writes()] == ["Not sent"]
