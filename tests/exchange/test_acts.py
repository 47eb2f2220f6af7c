"""What people and processes did with a session."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from trunkline.exchange import acts
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.settings import AgentSettings, ExchangeSettings


async def test_the_newest_are_kept_and_go_with_their_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acts, "MOST_KEPT", 3)
    settings = ExchangeSettings("", str(tmp_path / "home"), agents={"e": AgentSettings("e", "echo", str(tmp_path))})
    async with Exchange.opened(settings) as exchange:
        board = exchange.switchboard
        live, other = await board.open("e"), await board.open("e")
        await board.acts.add(other.id, 0, "joined", "ana", "http")
        for number in range(5):
            await board.acts.add(live.id, number, "joined", "ana", "x" * 10_000)
        kept = await board.acts.of(live.id)
        assert [act.seq for act in kept] == [2, 3, 4]
        assert len(kept[0].detail) == acts.LONGEST_DETAIL
        await board.remove(live.id)
        await board.acts.add(live.id, 9, "left", "ana")
        assert await board.acts.of(live.id) == []
        assert len(await board.acts.of(other.id)) == 1


async def test_those_who_come_and_go_at_once_are_noted_together_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    keep = acts.Acts.keep

    async def counted(self: acts.Acts, session: str, some: Sequence[acts.Act]) -> None:
        kept.append(len(some))
        await keep(self, session, some)

    monkeypatch.setattr(acts.Acts, "keep", counted)
    settings = ExchangeSettings("", str(tmp_path / "home"), agents={"e": AgentSettings("e", "echo", str(tmp_path))})
    async with Exchange.opened(settings) as exchange:
        board = exchange.switchboard
        live = await board.open("e")
        async with AsyncExitStack() as stack:
            for number in range(50):
                await stack.enter_async_context(board.attached(live.id, by=f"p{number}", wire="http"))
        await live.written()
        # All, in as few rows' worth of waiting as there were moments to write in.
        assert (sum(kept), len(kept) <= 3) == (100, True)
        noted = [(act.what, act.person) for act in await board.acts.of(live.id)]
        came = [("joined", f"p{number}") for number in range(50)]
        assert noted == [*came, *(("left", person) for _, person in reversed(came))]
