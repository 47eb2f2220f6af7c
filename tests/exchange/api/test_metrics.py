"""Figures for Prometheus."""

from __future__ import annotations

import re
from pathlib import Path

from tests.exchange.api_world import world
from tests.support.loop import until
from trunkline.exchange.api.metrics import _metric

_SAMPLE = re.compile(r'[a-z_]+(\{[a-z_]+="(?:[^"\\\n]|\\.)*"(,[a-z_]+="(?:[^"\\\n]|\\.)*")*\})? -?[0-9.e+-]+')


async def test_figures_tell_of_agents_sessions_turns_and_tokens(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session("echo")
        reader = net.read(id)
        await net.say(id)
        await until(lambda: "turn_ended" in reader.kinds)
        await net.exchange.switchboard.written()
        found = await net.get("/metrics", "observer")
        assert found.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        lines = found.text.splitlines()
        for sample in (
            'trunkline_agent_healthy{agent="echo"} 1',
            "trunkline_sessions_awake 1",
            "trunkline_turns_running 0",
            "trunkline_approvals_pending 0",
            "trunkline_event_streams 1",
            'trunkline_turns_total{agent="echo"} 1',
            'trunkline_tokens_total{agent="echo",kind="input"} 0',
        ):
            assert sample in lines
        assert all(line.startswith("# ") or _SAMPLE.fullmatch(line) for line in lines)


def test_names_of_any_kind_stay_within_their_quotes() -> None:
    text = _metric("x", "gauge", "X.", [({"agent": 'a"b\\c\nd'}, 1.5)])
    assert text.splitlines()[2] == 'trunkline_x{agent="a\\"b\\\\c\\nd"} 1.5'
