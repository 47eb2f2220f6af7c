"""Graphs over HTTP: listed, shown, checked, drawn, tried and saved."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import process_time
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.exchange.api_world import World, world
from tests.support.graph_texts import BROKEN_SMITH, HOSTILE, MARKUP, SMITH
from tests.support.loop import until
from trunkline.exchange.graph_files import MAX_BYTES
from trunkline.exchange.settings import AgentSettings

#: What a refusal of something hostile may cost.
FAST_SECONDS = 3.0


@asynccontextmanager
async def graph_world(home: Path, text: str | None = SMITH, **more: Any) -> AsyncIterator[World]:
    """An exchange whose agents `smith` and `twin` share a graph's file, and `gate` has one of ours."""
    file = home / "smith.yaml"
    if text is not None:
        file.write_text(text)
    async with world(home, **more) as net:
        settings = net.exchange.settings
        given = {
            name: AgentSettings(name, spec, str(home))
            for name, spec in (("smith", f"graph:{file}"), ("twin", f"graph:{file}"), ("gate", "graph:npc"))
        }
        await net.exchange.take_up(settings.replace(agents={**settings.agents, **given}))
        yield net


async def answered(net: World, path: str, body: Any = None, who: str = "admin", status: int = 200) -> dict[str, Any]:
    found = await (net.get(path, who) if body is None else net.post(path, body, who))
    assert found.status_code == status, found.text
    members: dict[str, Any] = found.json()
    return members


async def test_the_graphs_of_the_agents_are_listed_and_then_those_that_come_along(tmp_path: Path) -> None:
    async with graph_world(tmp_path) as net:
        listed = (await answered(net, "/api/graphs", who="observer"))["graphs"]
        assert [(each["id"], each["agents"], each["bundled"], each["nodes"], each["problems"]) for each in listed] == [
            ("smith", ["smith", "twin"], False, 4, 0),
            ("gate", ["gate"], True, 12, 0),
            ("graph:smith", [], True, listed[2]["nodes"], 0),
        ]
        assert {each["path"] for each in listed} == {None}
        assert (await answered(net, "/api/graphs"))["graphs"][0]["path"] == str(tmp_path / "smith.yaml")
        (tmp_path / "smith.yaml").write_text(BROKEN_SMITH)
        assert (await answered(net, "/api/graphs"))["graphs"][0]["problems"] == 2
        (tmp_path / "smith.yaml").unlink()
        (tmp_path / "smith.yaml").mkdir()
        assert (await answered(net, "/api/graphs"))["graphs"][0]["problems"] == 1


async def test_a_graph_is_shown_with_its_text_its_nodes_and_its_picture(tmp_path: Path) -> None:
    async with graph_world(tmp_path) as net:
        found = await answered(net, "/api/graphs/smith")
        assert (found["text"], found["writable"], found["why_fixed"], found["start"]) == (SMITH, True, "", "guard")
        assert [(each["name"], each["line"]) for each in found["nodes"]] == [
            ("guard", 5), ("refuse", 10), ("tools", 11), ("answer", 16)
        ]  # fmt: skip
        assert found["nodes"][0]["exits"] == [
            {"name": "triggered", "to": "refuse"}, {"name": "not_triggered", "to": "tools"}
        ]  # fmt: skip
        ElementTree.fromstring(found["svg"])
        assert "guard" in found["svg"]
        ours = await answered(net, "/api/graphs/graph:npc")
        assert (ours["bundled"], ours["writable"], ours["agents"]) == (True, False, ["gate"])
        for unknown in ("echo", "nobody", "graph:nobody"):
            assert (await net.get(f"/api/graphs/{unknown}")).status_code == 404


async def test_who_may_not_save_sees_it_read_only_and_without_secrets(tmp_path: Path) -> None:
    async with graph_world(tmp_path, SMITH + "# sk-live-0123456789\n") as net:
        net.exchange.redactor.learn(["sk-live-0123456789"])
        found = await answered(net, "/api/graphs/smith", who="approver")
        assert not found["writable"]
        assert found["text"] == SMITH + "# [redacted]\n"
        assert "sk-live" in (await answered(net, "/api/graphs/smith"))["text"]
        for path, body in (
            ("", {"text": SMITH, "version": found["version"]}), ("/check", {"text": SMITH}),
            ("/draw", {"text": SMITH}), ("/try", {"text": SMITH, "message": "Hello"}),
        ):  # fmt: skip
            await answered(net, f"/api/graphs/smith{path}", body, who="approver", status=403)
        assert (await net.ask("DELETE", "/api/graphs/smith/try", who="approver")).status_code == 403


@pytest.mark.parametrize(
    "text", [SMITH, BROKEN_SMITH, SMITH.replace('["Nice try.", "No."]', "lines.txt"), "[", None], ids=repr
)
async def test_who_may_not_save_sees_no_folder_whatever_is_wrong(tmp_path: Path, text: str | None) -> None:
    async with graph_world(tmp_path, text) as net:
        for path in ("/api/graphs", "/api/graphs/smith"):
            assert str(tmp_path) in (await net.get(path)).text
            found = await net.get(path, "approver")
            assert found.status_code == 200
            assert str(tmp_path) not in found.text


async def test_a_file_that_cannot_be_read_is_told_without_its_folder(tmp_path: Path) -> None:
    async with graph_world(tmp_path, None) as net:
        (tmp_path / "smith.yaml").mkdir()
        refused = await answered(net, "/api/graphs/smith", who="observer", status=422)
        assert "`smith.yaml` cannot be read" in refused["error"]["message"]
        assert str(tmp_path) not in str(refused)


async def test_what_is_wrong_is_told_with_its_line_and_what_is_odd_too(tmp_path: Path) -> None:
    async with graph_world(tmp_path) as net:
        found = await answered(net, "/api/graphs/smith/check", {"text": BROKEN_SMITH})
        assert found == {
            "problems": [
                {
                    "line": 8,
                    "column": 5,
                    "message": "`nodes.guard.triggered` leads to `refuze`, which is not a node. Did you mean `refuse`?",
                    "severity": "problem",
                },
                {
                    "line": 19,
                    "column": 5,
                    "message": "unknown key `strem` in `nodes.answer`. Did you mean `stream`?",
                    "severity": "problem",
                },
            ],
            "start": "",
            "nodes": [],
        }
        odd = await answered(net, "/api/graphs/smith/check", {"text": SMITH.replace("triggered: refuse", "triggered:")})
        assert [(each["line"], each["severity"]) for each in odd["problems"]] == [(10, "warning")]
        assert len(odd["nodes"]) == 4
        empty = await answered(net, "/api/graphs/smith/check", {"text": ""})
        assert "mapping" in empty["problems"][0]["message"]


async def test_the_files_beside_a_graph_are_looked_at(tmp_path: Path) -> None:
    text = SMITH.replace('["Nice try.", "No."]', "lines.txt")
    async with graph_world(tmp_path) as net:
        (found,) = (await answered(net, "/api/graphs/smith/check", {"text": text}))["problems"]
        assert (found["line"], "lines.txt" in found["message"]) == (3, True)
        (tmp_path / "lines.txt").write_text("No.\n")
        assert (await answered(net, "/api/graphs/smith/check", {"text": text}))["problems"] == []


async def test_a_text_is_drawn_and_one_with_problems_is_not(tmp_path: Path) -> None:
    async with graph_world(tmp_path) as net:
        svg = (await answered(net, "/api/graphs/smith/draw", {"text": SMITH}))["svg"]
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        refused = await answered(net, "/api/graphs/smith/draw", {"text": BROKEN_SMITH}, status=422)
        assert refused["error"]["code"] == "problems"
        assert refused["error"]["message"].startswith("The graph has 2 problems: `nodes.guard.triggered`")
        assert len(refused["problems"]) == 2


async def test_markup_in_names_and_texts_is_text_in_the_picture(tmp_path: Path) -> None:
    async with graph_world(tmp_path) as net:
        svg = (await answered(net, "/api/graphs/smith/draw", {"text": HOSTILE}))["svg"]
        tags = {each.tag.rpartition("}")[2] for each in ElementTree.fromstring(svg).iter()}
        assert not tags & {"script", "img", "image", "foreignObject", "a", "use"}
        assert "<script" not in svg
        turn = await answered(net, "/api/graphs/smith/try", {"text": HOSTILE, "message": MARKUP})
        assert turn["path"][0]["node"] == MARKUP
        assert "<script" not in turn["svg"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: &a [x]\n" + "".join(f"b{i}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(20)),
         "more than 100000 values"),
        ("a: &a {b: *a}", "alias"),
        ("[" * 50_000, "nested deeper"),
        ("start: a\n\tnodes: {}", "tabs"),
        ("start: \0", "not YAML"),
        ("start: \udc80", "not UTF-8"),
        ("!!python/object/apply:os.system [id]", "tag"),
        ("k: " + "1," * 300_000, "unknown key"),
    ],
)  # fmt: skip
async def test_hostile_texts_are_refused_fast_with_their_place(tmp_path: Path, text: str, told: str) -> None:
    async with graph_world(tmp_path) as net:
        began = process_time()
        found = await answered(net, "/api/graphs/smith/check", {"text": text})
        assert process_time() - began < FAST_SECONDS
        assert told in found["problems"][0]["message"]
        assert found["problems"][0]["line"] > 0


async def test_a_text_that_is_too_large_is_refused_before_anybody_reads_it(tmp_path: Path) -> None:
    async with graph_world(tmp_path) as net:
        at_most = "#" * MAX_BYTES
        for path, more in (("/check", {}), ("/draw", {}), ("/try", {"message": "x"}), ("", {"version": ""})):
            body = {"text": at_most + "#", **more}
            refused = await answered(net, f"/api/graphs/smith{path}", body, status=413)
            assert str(MAX_BYTES) in refused["error"]["message"]
        assert (await answered(net, "/api/graphs/smith/check", {"text": at_most}))["problems"]
        (tmp_path / "smith.yaml").write_text(at_most + "#")
        assert (await net.get("/api/graphs/smith")).status_code == 413


async def test_a_file_that_cannot_be_shown_says_why(tmp_path: Path) -> None:
    async with graph_world(tmp_path, None) as net:
        missing = await answered(net, "/api/graphs/smith")
        assert (missing["text"], missing["version"], missing["writable"], missing["svg"]) == ("", "", True, None)
        (tmp_path / "smith.yaml").mkdir()
        assert "cannot be read" in (await answered(net, "/api/graphs/smith", status=422))["error"]["message"]


async def test_a_message_is_tried_without_saving(tmp_path: Path) -> None:
    async with graph_world(tmp_path, "start: nothing") as net:
        turn = await answered(net, "/api/graphs/smith/try", {"text": SMITH, "message": "Good morning"})
        assert (turn["outcome"], turn["error"]) == ("success", "")
        assert turn["answer"] == "You said: Good morning"
        assert [(each["node"], each["exit"]) for each in turn["path"]] == [
            ("guard", "not_triggered"), ("tools", "no_tool_called"), ("answer", "default")
        ]  # fmt: skip
        assert all(each["ms"] >= 0 for each in turn["path"])
        assert turn["tools"] == []
        ElementTree.fromstring(turn["svg"])
        sold = await answered(net, "/api/graphs/twin/try", {"text": SMITH, "message": "sell_sword, please"})
        assert sold["tools"] == [{"name": "sell_sword", "arguments": {}}]
        assert sold["path"][-1]["decided"] == "sell_sword"
        assert (tmp_path / "smith.yaml").read_text() == "start: nothing"
        assert (await net.get("/api/sessions")).json()["sessions"] == []


async def test_what_cannot_be_tried_is_refused(tmp_path: Path) -> None:
    async with graph_world(tmp_path) as net:
        path = "/api/graphs/smith/try"
        assert (await answered(net, path, {"text": BROKEN_SMITH, "message": "x"}, status=422))["problems"]
        await answered(net, path, {"text": SMITH, "message": " "}, status=400)
        await answered(net, path, {"text": SMITH, "message": "x", "engine": "other"}, status=400)
        unknown = SMITH.replace("default_model: mock", "default_model: nobody-has-this")
        turn = await answered(net, path, {"text": unknown, "message": "x", "engine": "models"})
        assert turn["outcome"] == "error"
        assert "nobody-has-this" in turn["error"]
        assert (turn["path"], turn["svg"]) == ([], "")
        program = SMITH.replace("default_model: mock", "default_model: 'agent:acp:some-program'")
        assert (
            "may not start"
            in (await answered(net, path, {"text": program, "message": "x", "engine": "models"}))["error"]
        )


async def test_a_try_can_be_stopped(tmp_path: Path) -> None:
    (tmp_path / "slow.json").write_text(json.dumps({"turns": [{"steps": [{"hang": True}]}]}))
    model = f"agent:scripted:{tmp_path / 'slow.json'}"
    text = f"start: answer\ndefault_model: '{model}'\nnodes: {{answer: {{type: Generate}}}}\n"
    async with graph_world(tmp_path) as net:
        path = "/api/graphs/smith/try"
        turn = asyncio.create_task(net.post(path, {"text": text, "message": "Hello", "engine": "models"}))
        await until(lambda: net.exchange.tries.running == 1)
        assert (await net.ask("DELETE", path)).json() == {"stopped": True}
        assert (await turn).json()["outcome"] == "cancelled"
        assert (await net.ask("DELETE", path)).json() == {"stopped": False}


async def test_a_graph_is_saved_and_new_conversations_have_it(tmp_path: Path) -> None:
    async with graph_world(tmp_path) as net:
        old = await net.exchange.directory.find("smith").agent()
        version = (await answered(net, "/api/graphs/smith"))["version"]
        other = SMITH.replace("Nice try.", "Grüße!")
        saved = await answered(net, "/api/graphs/smith", {"text": other, "version": version})
        assert saved["renewed"] == ["smith", "twin"]
        assert (tmp_path / "smith.yaml").read_text() == other
        assert saved["version"] == (await answered(net, "/api/graphs/smith"))["version"]
        new = await net.exchange.directory.find("smith").agent()
        assert new is not old


async def test_a_file_that_has_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    async with graph_world(tmp_path) as net:
        version = (await answered(net, "/api/graphs/smith"))["version"]
        (tmp_path / "smith.yaml").write_text("theirs: 1")
        refused = await answered(net, "/api/graphs/smith", {"text": SMITH, "version": version}, status=409)
        assert refused["error"]["code"] == "changed"
        assert (tmp_path / "smith.yaml").read_text() == "theirs: 1"
        fixed = await answered(net, "/api/graphs/gate", {"text": SMITH, "version": ""}, status=409)
        assert fixed["error"]["code"] == "read_only"


async def test_what_no_agent_can_be_made_of_is_saved_only_on_demand(tmp_path: Path) -> None:
    async with graph_world(tmp_path) as net:
        agent = await net.exchange.directory.find("smith").agent()
        body = {"text": BROKEN_SMITH, "version": (await answered(net, "/api/graphs/smith"))["version"]}
        refused = await answered(net, "/api/graphs/smith", body, status=422)
        assert [each["line"] for each in refused["problems"]] == [8, 19]
        assert (tmp_path / "smith.yaml").read_text() == SMITH
        saved = await answered(net, "/api/graphs/smith", {**body, "force": True})
        assert saved["renewed"] == []
        assert (tmp_path / "smith.yaml").read_text() == BROKEN_SMITH
        assert await net.exchange.directory.find("smith").agent() is agent
