"""What `[web]` says."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.agents.coder.settings_web import web_settings
from trunkline.base.config_schema import ENGINE
from trunkline.tools.web_search import ENGINES, SearchEngine


def test_every_engine_is_one_that_the_files_may_name() -> None:
    assert all(ENGINE.fits(name) for name in ENGINES)
    assert ENGINE.wanted == "one of " + ", ".join(f'"{name}"' for name in ENGINES)


@pytest.mark.parametrize(
    ("table", "engine"),
    [
        ({"engine": "brave"}, SearchEngine("brave", "https://api.search.brave.com", "usual")),
        ({"engine": "tavily", "api_key": "own"}, SearchEngine("tavily", "https://api.tavily.com", "own")),
        ({"engine": "tavily", "api_key_env": "MINE"}, SearchEngine("tavily", "https://api.tavily.com", "mine")),
        ({"engine": "searxng", "url": "http://s"}, SearchEngine("searxng", "http://s")),
        (
            {"engine": "searxng", "url": "http://${MINE}", "api_key": "${MINE}"},
            SearchEngine("searxng", "http://mine", "mine"),
        ),
    ],
)
def test_an_engine_is_found_with_its_address_and_key(table: dict[str, Any], engine: SearchEngine) -> None:
    found = web_settings({"search": table}, {"BRAVE_API_KEY": "usual", "MINE": "mine"})
    assert (found.engine, found.warnings) == (engine, ())


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"url": "http://s"}, "has no `engine`"),
        ({"engine": "searxng"}, "needs `url`"),
        ({"engine": "tavily"}, "`TAVILY_API_KEY` is not set"),
        ({"engine": "searxng", "url": "http://s", "api_key_env": "NONE"}, "`NONE` is not set"),
        ({"engine": "brave", "api_key": "${NONE}"}, "`NONE` is not set"),
    ],
)
def test_an_engine_that_cannot_work_is_left_out_with_a_word(table: dict[str, Any], said: str) -> None:
    found = web_settings({"allow_private": True, "search": table}, {})
    assert found.private
    assert found.engine is None
    assert said in found.warnings[0]
