"""Sessions that are closed and opened again from their log on the disk, as by another process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.core.test_session import DONE, given, say, settle
from tests.support.fake_agent import FakeAgent
from trunkline.core import recorder
from trunkline.core.agent import AddHistory, Approve, OpenRequest
from trunkline.core.approvals import Policy
from trunkline.core.events import (
    Checkpointed,
    Envelope,
    Extension,
    Gap,
    GrantRevoked,
    TextDelta,
    ToolCancelled,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.core.session import Session
from trunkline.core.usage import Usage
from trunkline.store.files import FileStore


async def test_what_is_not_json_fails_the_turn_and_leaves_no_hole_in_the_log(tmp_path: Path) -> None:
    store = FileStore(tmp_path)

    async def script(session: Session, fake: FakeAgent) -> None:
        await say(session, fake, Extension("odd", {"object": object()}))
        await say(session, fake)

    await begun(store, script)
    items = list(store.open("s1").read())
    assert [item.event for item in items if isinstance(item, Envelope) and isinstance(item.event, TurnEnded)] == [
        TurnEnded("error"),
        DONE,
    ]
    assert not any(isinstance(item, Gap) for item in items)


async def restarted(
    store: FileStore, check: Callable[[Session, FakeAgent], Any] | None = None, **options: Any
) -> Session:
    """Open the session anew, as another process would, and close it again."""
    fake = FakeAgent()
    session = await Session.open(fake, store.open("s1"), Policy(), resume=True, **options)
    if check is not None:
        check(session, fake)
    await session.close()
    return session


async def begun(store: FileStore, script: Callable[[Session, FakeAgent], Any]) -> None:
    """Let a session begin, and close it."""
    fake = FakeAgent()
    session = await Session.open(fake, store.create("s1", "/work"), Policy())
    await script(session, fake)
    await session.close()


async def test_an_approved_plan_leads_back_to_the_mode_that_was_chosen_before_it_in_another_process(
    tmp_path: Path,
) -> None:
    store = FileStore(tmp_path)

    async def script(session: Session, fake: FakeAgent) -> None:
        session.set_mode("auto_edit")
        session.set_mode("plan")
        session.set_mode("plan")
        await say(session, fake)

    await begun(store, script)
    for _ in range(2):  # from the events, then from a checkpoint
        session = await restarted(store)
        assert (session.mode, session._turns.policy.mode_before_plan) == ("plan", "auto_edit")
    session = await restarted(store, mode="plan")
    assert session._turns.policy.mode_before_plan == "auto_edit"
    elsewhere = await restarted(store, workspace=str(tmp_path))
    assert (elsewhere.mode, elsewhere._turns.policy.mode_before_plan) == ("default", "default")


async def test_resuming_restores_usage_grants_mode_history_and_the_agents_journal(tmp_path: Path) -> None:
    store = FileStore(tmp_path)

    async def script(session: Session, fake: FakeAgent) -> None:
        assert fake.request is not None
        await session.configure(AddHistory("rules"))
        session.set_mode("auto_edit")
        session.submit(UserMessage("hi"))
        await settle()
        fake.request.journal.append({"role": "user", "blocks": ["hi"]})
        fake.say(ToolRequested("t1", "Bash", "exec", {}))
        await settle()
        session.answer("t1", Approve("always"))
        fake.say(DONE)
        await session.at_rest()
        await say(session, fake)
        fake.request.journal.append({"role": "assistant"})

    def check(session: Session, fake: FakeAgent) -> None:
        request = fake.request
        assert isinstance(request, OpenRequest)
        assert request.resumed
        assert request.history == ("rules",)
        assert request.journal.records == ({"role": "user", "blocks": ["hi"]}, {"role": "assistant"})
        assert session.state.total == Usage(20, 10)
        assert session.state.turns == 2
        assert session.mode == "auto_edit"

    await begun(store, script)
    await restarted(store, check)
    assert (await restarted(store, mode="yolo")).mode == "yolo"


async def test_a_grant_that_was_taken_back_stays_so_after_a_resume(tmp_path: Path) -> None:
    store = FileStore(tmp_path)

    async def script(session: Session, fake: FakeAgent) -> None:
        for asked in (ToolRequested("t1", "Bash", "exec", {}), ToolRequested("t2", "Edit", "edit", {})):
            session.submit(UserMessage("hi"))
            await settle()
            fake.say(asked)
            await settle()
            session.answer(asked.call_id, Approve("always"))
            fake.say(DONE)
            await session.at_rest()
        assert list(session.grants) == [given("exec"), given("edit")]
        session.revoke(given("exec"))
        session.revoke(given("mcp"))
        assert list(session.grants) == [given("edit")]

    await begun(store, script)
    await restarted(store, lambda session, _: _equal(session.grants, (given("edit"),)))
    told = [item.event for item in store.open("s1").read() if isinstance(item, Envelope)]
    assert [event for event in told if isinstance(event, GrantRevoked)] == [
        GrantRevoked("exec", workspace=given("exec").workspace)
    ]


def _equal(one: object, other: object) -> None:
    assert one == other


@pytest.mark.parametrize(("used", "keep", "kept"), [(False, False, False), (False, True, True), (True, False, True)])
async def test_a_session_in_which_nothing_was_said_is_forgotten_unless_it_is_to_be_kept(
    tmp_path: Path, used: bool, keep: bool, kept: bool
) -> None:
    store = FileStore(tmp_path)

    fake = FakeAgent()
    session = await Session.open(fake, store.create("s1", "/work"), Policy())
    if used:
        await say(session, fake)
    await session.close(keep_unused=keep)
    assert [info.id for info in store.list()] == (["s1"] if kept else [])


async def test_the_agent_may_replace_its_journal_and_the_log_keeps_both(tmp_path: Path) -> None:
    store = FileStore(tmp_path)

    async def script(session: Session, fake: FakeAgent) -> None:
        assert fake.request is not None
        for number in range(5):
            fake.request.journal.append(number)
        fake.request.journal.replace(["summary"])
        fake.request.journal.append(5)

    def check(session: Session, fake: FakeAgent) -> None:
        assert fake.request is not None
        assert fake.request.journal.records == ("summary", 5)

    await begun(store, script)
    await restarted(store, check)


async def test_a_turn_that_nobody_ended_is_ended_as_unknown_with_its_calls(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    log = store.create("s1", "/work")
    at = 1.0
    for seq, event in enumerate((TurnStarted(UserMessage("x")), ToolStarted("t1", "Bash"), TextDelta("half")), 1):
        log.append(Envelope("s1", seq, 1, at, event))
    log.close()
    await restarted(store)
    events = [item.event for item in store.open("s1").read() if isinstance(item, Envelope)]
    assert events[3:] == [ToolCancelled("t1", "The process ended before this tool did"), TurnEnded("unknown")]


async def test_resuming_reads_from_the_last_checkpoint_and_not_from_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "CHECKPOINT_BYTES", 2000)
    store = FileStore(tmp_path)

    async def script(session: Session, fake: FakeAgent) -> None:
        assert fake.request is not None
        fake.request.journal.append("kept")
        for _ in range(30):
            await say(session, fake, *[TextDelta("word ")] * 20)

    await begun(store, script)
    log = store.open("s1")
    checkpoints = [
        item.seq for item in log.read() if isinstance(item, Envelope) and isinstance(item.event, Checkpointed)
    ]
    assert 2 <= len(checkpoints) <= 60
    restored = log.restore()
    assert restored.state.total == Usage(300, 150)
    assert restored.state.turns == 30
    assert restored.state.journal == ["kept"]
    log.close()


async def test_checkpoints_stay_a_fraction_of_the_log_however_large_the_live_context_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "CHECKPOINT_BYTES", 1000)
    sizes: list[tuple[bool, int]] = []
    store = FileStore(tmp_path)

    async def script(session: Session, fake: FakeAgent) -> None:
        assert fake.request is not None
        append = session._recorder._log.append

        def measured(envelope: Envelope) -> int:
            size = append(envelope)
            sizes.append((isinstance(envelope.event, Checkpointed), size))
            return size

        session._recorder._log.append = measured  # type: ignore[method-assign]
        for number in range(200):
            fake.request.journal.append({"number": number, "text": "x" * 100})
            await say(session, fake)

    await begun(store, script)
    checkpoints = sum(size for is_checkpoint, size in sizes if is_checkpoint)
    everything = sum(size for _, size in sizes)
    assert 0 < checkpoints < everything / 2
