"""What the page of a graph says of who has it."""

from __future__ import annotations

from pathlib import Path

from tests.exchange.api.test_graphs import graph_world


async def test_the_page_of_a_graph_says_by_name_whose_turn_a_try_counts_as(tmp_path: Path) -> None:
    async with graph_world(tmp_path) as net:
        for name in ("smith", "twin"):
            told = (await net.get(f"/graphs/{name}")).text
            assert f"is counted, as a turn of {name}." in told
        assert "is counted.</p>" in (await net.get("/graphs/graph:smith")).text
