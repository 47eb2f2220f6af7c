"""Figures for Prometheus."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from tests.exchange.api_world import world
from tests.models.model_servers import Gpu
from tests.support.loop import until
from tests.support.provider import HANG
from trunkline.base.prometheus import metric
from trunkline.core.graph.models import SamplingParams
from trunkline.exchange.settings import WireSettings
from trunkline.models.engines import ChatMessage, Prompt
from trunkline.models.openai_language import OpenAILanguage
from trunkline.models.remote import Remote

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


async def test_figures_tell_which_wires_of_the_file_are_served(tmp_path: Path) -> None:
    wires = {name: WireSettings(name) for name in ("network", "runner")}
    async with world(tmp_path, wires=wires) as net:
        net.exchange.reached["network"] = "http://127.0.0.1:4317"
        lines = (await net.get("/metrics", "observer")).text.splitlines()
        assert 'trunkline_wire_up{wire="network"} 1' in lines
        assert 'trunkline_wire_up{wire="runner"} 0' in lines


async def test_figures_tell_of_model_servers_and_nothing_where_there_are_none(tmp_path: Path) -> None:
    async with world(tmp_path) as net, Gpu("a") as one, Gpu("b") as other:
        assert "model_server" not in (await net.get("/metrics", "observer")).text
        engine = OpenAILanguage(Remote("far", [f"{gpu.url}/v1" for gpu in (one, other)], model="big", limit=1), 4096)
        prompt = Prompt((ChatMessage("user", "hello"),))

        async def said() -> str:
            return "".join([piece async for piece in engine.generate(prompt, SamplingParams(), stream=True)])

        assert [await said() for _ in range(2)] == ["a", "b"]
        await other.stop()
        assert [await said() for _ in range(2)] == ["a", "a"]
        one.says(HANG)
        turns = [asyncio.ensure_future(said()) for _ in range(3)]
        await until(lambda: len(one.asked_for) == 4)
        found = (await net.get("/metrics", "observer")).text
        lines = found.splitlines()
        for sample in (
            f'trunkline_model_server_up{{server="{one.url}/v1",model="big"}} 1',
            f'trunkline_model_server_up{{server="{other.url}/v1",model="big"}} 0',
            f'trunkline_model_server_inflight{{server="{one.url}/v1",model="big"}} 1',
            f'trunkline_model_server_inflight{{server="{other.url}/v1",model="big"}} 0',
            f'trunkline_model_server_requests_total{{server="{one.url}/v1",model="big"}} 4',
            f'trunkline_model_server_requests_total{{server="{other.url}/v1",model="big"}} 2',
            f'trunkline_model_server_failures_total{{server="{one.url}/v1",model="big"}} 0',
            f'trunkline_model_server_failures_total{{server="{other.url}/v1",model="big"}} 1',
            'trunkline_model_requests_waiting{model="big"} 2',
        ):
            assert sample in lines
        assert all(line.startswith("# ") or _SAMPLE.fullmatch(line) for line in lines)
        for turn in turns:
            turn.cancel()
        await asyncio.wait(turns)
        await engine.close()
        # What was counted stays; whether they work, nobody looks any more.
        found = (await net.get("/metrics", "observer")).text
        assert f'requests_total{{server="{one.url}/v1",model="big"}} 4' in found
        assert "model_server_up{" not in found


def test_names_of_any_kind_stay_within_their_quotes() -> None:
    text = metric("x", "gauge", "X.", [({"agent": 'a"b\\c\nd'}, 1.5)])
    assert text.splitlines()[2] == 'trunkline_x{agent="a\\"b\\\\c\\nd"} 1.5'
