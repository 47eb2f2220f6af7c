"""How pages are made, whoever makes them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import trunkline
from trunkline.base import pages

ROOT = Path(trunkline.__file__).parent
PACKAGES = {
    f"trunkline.{path.parent.parent.relative_to(ROOT).as_posix().replace('/', '.')}"
    for path in ROOT.glob("**/templates/*.html")
} - {"trunkline.base"}


def test_those_with_pages_are_known() -> None:
    assert {"trunkline.network.pages", "trunkline.exchange.console", "trunkline.exchange.talk"} == PACKAGES


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_every_page_stands_on_the_one_layout(package: str) -> None:
    environment = pages.environment(package)
    assert environment.autoescape
    for name in environment.list_templates():
        assert environment.loader is not None
        source = environment.loader.get_source(environment, name)[0]
        assert name == "layout.html" or "<!doctype" not in source, name
        # The policy forbids what is inline.
        assert not re.search(r"<style|<script(?![^>]*src=)|\son[a-z]+=|\sstyle=", source), name
        assert "| safe" not in source, name


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_colours_are_named_once_and_used_by_their_names(package: str) -> None:
    ground = (ROOT / "base/static/ground.css").read_text(encoding="utf-8")
    own = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / package.partition(".")[2].replace(".", "/") / "static").glob("*.css")
    )
    named = set(re.findall(r"(--[\w-]+):", ground))
    assert named & set(re.findall(r"(--[\w-]+):", own)) == set(), "these are the ground's"
    assert set(re.findall(r"var\((--[\w-]+)\)", own + ground)) <= named | set(re.findall(r"(--[\w-]+):", own))


def test_the_policy_lets_in_nothing_from_elsewhere() -> None:
    assert pages.policy() == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    )
    assert "connect-src 'self' ws://a" in pages.policy("ws://a")
    assert "form-action 'self'" in pages.policy(forms=True)
