"""WebSearch: what engines find, each asked in its own way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.web import Server, served
from trunkline.tools import web_search
from trunkline.tools.tool import ToolOutput
from trunkline.tools.toolbox import Toolbox
from trunkline.tools.web_search import MOST_RESULTS, SearchEngine, WebSearch

#: What each answers, with the members that it really has.
SEARXNG = {
    "query": "a b",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://one.example/",
            "title": "One & only",
            "content": "About one.",
            "engine": "duckduckgo",
            "parsed_url": ["https", "one.example", "/", "", "", ""],
            "engines": ["duckduckgo", "brave"],
            "positions": [1],
            "score": 4.0,
            "category": "general",
        },
        {"url": "https://two.example/", "title": "Two", "content": None, "engine": "brave"},
    ],
    "answers": [],
    "corrections": [],
    "infoboxes": [],
    "suggestions": [],
    "unresponsive_engines": [["google", "timeout"]],
}
BRAVE = {
    "type": "search",
    "query": {"original": "a b", "more_results_available": True},
    "web": {
        "type": "search",
        "results": [
            {
                "title": "One &amp; only",
                "url": "https://one.example/",
                "description": "About <strong>one</strong>.",
                "type": "search_result",
                "profile": {"name": "One"},
                "language": "en",
            },
            {"title": "Two", "url": "https://two.example/", "type": "search_result"},
        ],
    },
}
TAVILY = {
    "query": "a b",
    "follow_up_questions": None,
    "answer": None,
    "images": [],
    "results": [
        {
            "url": "https://one.example/",
            "title": "One & only",
            "content": "About one.",
            "score": 0.98,
            "raw_content": None,
        },
        {"url": "https://two.example/", "title": "Two", "content": "", "score": 0.5, "raw_content": None},
    ],
    "response_time": 1.2,
}
ENGINES: dict[str, tuple[dict[str, Any], str]] = {
    "searxng": (SEARXNG, "/search?q=a+b&format=json"),
    "brave": (BRAVE, f"/res/v1/web/search?q=a+b&count={MOST_RESULTS}"),
    "tavily": (TAVILY, "/search"),
}


@pytest.fixture
def server() -> Iterator[Server]:
    with served() as made:
        yield made


async def searched(server: Server, engine: str, query: str = "a b", key: str = "key-0123") -> ToolOutput:
    toolbox = Toolbox([WebSearch(SearchEngine(engine, server.url("/"), key))])
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await toolbox.run("WebSearch", {"query": query}, lambda line: None)


def answering(server: Server, engine: str, answer: Any = None, status: int = 200) -> None:
    usual, path = ENGINES[engine]
    server.answers[path] = (status, {}, answer if isinstance(answer, bytes) else json.dumps(answer or usual).encode())


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_an_engine_finds_is_told_with_title_address_and_words(server: Server, engine: str) -> None:
    answering(server, engine)
    output = await searched(server, engine)
    assert output.status == "success"
    assert output.foreign
    assert output.text == ("1. One & only\nhttps://one.example/\nAbout one.\n\n2. Two\nhttps://two.example/\n")


async def test_each_engine_gets_its_key_in_its_own_way(server: Server) -> None:
    for engine in ENGINES:
        answering(server, engine)
        await searched(server, engine)
    searxng, brave, tavily = server.headers
    assert searxng["authorization"] == tavily["authorization"] == "Bearer key-0123"
    assert brave["x-subscription-token"] == "key-0123"
    assert json.loads(server.posted[0][1]) == {"query": "a b", "max_results": MOST_RESULTS}


async def test_an_instance_without_a_key_is_asked_without_one(server: Server) -> None:
    answering(server, "searxng")
    await searched(server, "searxng", key="")
    assert "authorization" not in server.headers[0]


async def test_no_more_results_than_anybody_reads(server: Server) -> None:
    many = [{"url": f"https://{number}.example/", "title": "x" * 999, "content": "y " * 999} for number in range(50)]
    answering(server, "searxng", {"results": many})
    text = (await searched(server, "searxng")).text
    assert f"{MOST_RESULTS}. " in text
    assert f"{MOST_RESULTS + 1}. " not in text
    assert len(text) < MOST_RESULTS * 800


@pytest.mark.parametrize(
    "answer", [{"results": None}, {"results": ["x", {"url": 1}, {"url": "javascript:x"}]}, ["x"], {"web": 1}]
)
async def test_an_answer_with_nothing_of_use_is_no_result(server: Server, answer: Any) -> None:
    for engine in ENGINES:
        answering(server, engine, answer)
        assert (await searched(server, engine)).text == "Nothing was found. Search for other words."


@pytest.mark.parametrize(
    ("engine", "status", "said"),
    [
        ("searxng", 403, "must list `json` under `search.formats`"),
        ("brave", 422, "The key in `[web.search]` may be wrong"),
        ("tavily", 401, "The key in `[web.search]` may be wrong"),
        ("tavily", 432, "no searches left"),
        ("brave", 429, "no searches left"),
        ("brave", 500, "answers 500"),
        ("brave", 302, "answers 302"),
    ],
)
async def test_an_engine_that_refuses_is_told_of(server: Server, engine: str, status: int, said: str) -> None:
    answering(server, engine, status=status)
    output = await searched(server, engine)
    assert output.status == "error"
    assert said in output.text
    assert "key-0123" not in output.text


async def test_an_engine_that_answers_nonsense_is_told_of(server: Server) -> None:
    answering(server, "searxng", b"<html>")
    assert "does not answer with JSON" in (await searched(server, "searxng")).text


async def test_a_key_that_cannot_be_sent_is_not_shown(server: Server) -> None:
    assert (await searched(server, "brave", key="key\n0123")).text == (
        "The search did not work: the key in `[web.search]` cannot be sent."
    )


async def test_an_engine_that_is_not_there_is_told_of(server: Server) -> None:
    toolbox = Toolbox([WebSearch(SearchEngine("searxng", "http://127.0.0.1:9"))])
    assert "cannot be reached" in (await toolbox.run("WebSearch", {"query": "x"}, lambda line: None)).text


async def test_an_engine_without_an_end_costs_bounded_time_and_memory(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_search, "MOST_BYTES", 100)
    answering(server, "searxng")
    assert "more than 100 bytes" in (await searched(server, "searxng")).text
    monkeypatch.setattr(web_search, "SEARCH_SECONDS", 0.2)
    toolbox = Toolbox([WebSearch(SearchEngine("tavily", server.url("/never#"), "key-0123"))])
    assert "did not answer within 0.2 s" in (await toolbox.run("WebSearch", {"query": "x"}, lambda line: None)).text


@pytest.mark.parametrize(("query", "said"), [(" \n", "is empty"), ("x" * 401, "more than 400 characters")])
async def test_a_question_that_no_engine_takes_is_not_asked(server: Server, query: str, said: str) -> None:
    assert said in (await searched(server, "searxng", query)).text
    assert server.asked == []


def test_a_call_is_described_by_its_question_and_no_key_is_shown() -> None:
    engine = SearchEngine("brave", "https://api.search.brave.com", "key-0123")
    assert WebSearch(engine).describe({"query": "a b"}) == "Search the web (brave): a b"
    assert "key-0123" not in repr(engine)
