"""What people and processes did with a session."""

from __future__ import annotations

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
