"""The web from outside: somebody is asked first, and the model reads what a page says as data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.coding import calls, coding, of, says
from tests.support.web import Server, served
from trunkline.base.config import user_file

pytestmark = pytest.mark.process


@pytest.fixture
def server() -> Iterator[Server]:
    with served() as made:
        made.answers["/page"] = (200, {"Content-Type": "text/html"}, b"<h1>Hello</h1><script>no()</script><p>There.")
        yield made


def configured(text: str) -> None:
    path = Path(user_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_page_is_fetched_when_somebody_has_said_yes(tmp_path: Path, server: Server) -> None:
    configured("[web]\nallow_private = true\n")
    url = server.url("/page")
    with coding(tmp_path, calls(("WebFetch", {"url": url, "prompt": "Who?"})), says("Done.")) as agent:
        agent.message("Look there.")
        wanted = agent.request()
        assert wanted["tool"] | {"args": {}} == {
            "name": "WebFetch",
            "category": "exec",
            "args": {},
            "description": f"Fetch {url}",
        }
        assert server.asked == []
        agent.approve(wanted)
        agent.see_out()
        (result,) = agent.asked.marked_results
        assert "What to look for in it: Who?" in result
        assert result.endswith("# Hello\n\nThere.\n</untrusted_data>")


def test_no_address_of_this_machine_is_fetched_unless_the_user_says_so(tmp_path: Path, server: Server) -> None:
    (tmp_path / "trunkline.toml").write_text("[web]\nallow_private = true\n")
    with coding(tmp_path, calls(("WebFetch", {"url": server.url("/page")})), says("Done.")) as agent:
        agent.ask("Look there.")
        assert "an address of this machine or of its network" in agent.asked.results[0]
    assert server.asked == []


def test_the_model_can_search_where_an_engine_is_configured(tmp_path: Path, server: Server) -> None:
    answer = {"results": [{"title": "One", "url": "https://one.example/", "content": "About it."}]}
    server.answers["/search?q=one&format=json"] = (200, {}, json.dumps(answer).encode())
    configured(f'[web.search]\nengine = "searxng"\nurl = "{server.url("")}"\n')
    with coding(tmp_path, calls(("WebSearch", {"query": "one"})), says("Done.")) as agent:
        lines = agent.ask("Search.")
        assert of(lines, "tool_request")[0]["tool"]["category"] == "exec"
        assert "1. One\nhttps://one.example/\nAbout it." in agent.asked.results[0]


def test_the_model_is_not_told_of_a_search_that_cannot_work(tmp_path: Path) -> None:
    configured('[web.search]\nengine = "brave"\n')
    with coding(tmp_path, says("Hello."), env={"BRAVE_API_KEY": ""}) as agent:
        lines = agent.ask("Hello?")
        assert "`BRAVE_API_KEY` is not set" in str(of(lines, "info"))
        names = [tool["function"]["name"] for tool in agent.requests[-1].json["tools"]]
        assert "WebFetch" in names
        assert "WebSearch" not in names
