"""WebFetch: pages as text, within limits, and only from where they may be fetched."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.web import Server, served
from trunkline.base.redact import Redactor
from trunkline.tools import web_fetch
from trunkline.tools.foreign_text import framed
from trunkline.tools.tool import ToolOutput
from trunkline.tools.toolbox import Toolbox
from trunkline.tools.web_fetch import WebFetch


@pytest.fixture
def server() -> Iterator[Server]:
    with served() as made:
        yield made


async def fetched(url: str, *, private: bool = True, secrets: tuple[str, ...] = (), **more: Any) -> ToolOutput:
    redactor = Redactor(secrets)
    toolbox = Toolbox([WebFetch(private=private, redactor=redactor)], redactor)
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await toolbox.run("WebFetch", {"url": url, **more}, lambda line: None)


async def text(url: str, **more: Any) -> str:
    output = await fetched(url, **more)
    assert output.status == "success", output.text
    return output.text


async def failure(url: str, **more: Any) -> str:
    output = await fetched(url, **more)
    assert output.status == "error", output.text
    return output.text


def page(server: Server, body: bytes | str, kind: str = "text/html", path: str = "/page", status: int = 200) -> str:
    data = body if isinstance(body, bytes) else body.encode()
    server.answers[path] = (status, {"Content-Type": kind}, data)
    return server.url(path)


async def test_a_page_is_read_as_text(server: Server) -> None:
    url = page(server, "<title>T</title><nav>Menu</nav><h1>Head</h1><p>See <a href='x'>this</a></p><script>y</script>")
    assert await text(url, prompt="The head") == (
        f"What to look for in it: The head\nContent of {url}:\n# T\n\n# Head\n\nSee [this]({server.url('/x')})"
    )


async def test_the_title_is_not_said_twice(server: Server) -> None:
    assert (await text(page(server, "<title>T</title><h1>T</h1><p>x"))).count("# T") == 1


@pytest.mark.parametrize("kind", ["application/json", "text/plain; charset=utf-8", "application/problem+json"])
async def test_json_and_plain_text_come_as_they_are(server: Server, kind: str) -> None:
    body = json.dumps({"a": ["<b>", "é"]}, indent=2, ensure_ascii=False)
    assert (await text(page(server, body, kind))).endswith(f":\n{body}")


async def test_a_page_is_read_in_its_own_letters(server: Server) -> None:
    assert "café" in await text(page(server, "<p>café".encode("latin-1"), "text/html; charset=iso-8859-1"))


@pytest.mark.parametrize("kind", ["image/png", "application/pdf", "application/zip", "application/octet-stream"])
async def test_of_what_is_binary_the_type_and_the_size_are_told(server: Server, kind: str) -> None:
    url = page(server, b"\x89PNG\0" * 2469, kind)
    assert await text(url) == f"{url} is not text: {kind}, 12,345 bytes."


async def test_what_nobody_names_is_looked_at(server: Server) -> None:
    assert "\nplain" in await text(page(server, "plain", ""))
    assert "\nHello" in await text(page(server, "<!DOCTYPE html><p>Hello", ""))
    assert "is not text: application/octet-stream, 4 bytes." in await text(page(server, b"\0\1\2\3", ""))


async def test_what_is_said_to_be_text_and_is_none_is_not_shown(server: Server) -> None:
    assert "is not text: text/plain, 6 bytes." in await text(page(server, b"a\0b\0c\0", "text/plain"))


async def test_a_server_that_does_not_know_what_it_sends_is_not_believed(server: Server) -> None:
    for kind in ("text/html", "application/octet-stream"):
        assert "is not text: image/png, 12 bytes." in await text(page(server, b"\x89PNG\r\n\x1a\n\0\0\0\0", kind))
        assert "is not text: application/pdf, 10 bytes." in await text(page(server, b"%PDF-1.4\0\0", kind))


async def test_an_error_is_told_with_the_beginning_of_its_body(server: Server) -> None:
    url = page(server, "<h1>No such page</h1>" + "x " * 5000, status=404)
    said = await failure(url)
    assert said.startswith(f"{url} answers 404 Not Found.\nContent of {url}:\n")
    assert "# No such page" in said
    assert "[... cut here]" in said
    assert len(said) < 2500


async def test_the_beginning_of_an_error_is_told_although_it_has_no_blanks(server: Server) -> None:
    secret = "tr0ub4dor-and-3"
    body = '{"error":"' + "x" * (web_fetch.ERROR_CHARS - 15) + secret + '"}'
    said = await failure(page(server, body, "application/json", status=400), secrets=(secret,))
    assert '{"error":"xxx' in said
    assert len(said) > web_fetch.ERROR_CHARS
    assert secret[:5] not in said


async def test_an_error_without_a_body_is_told(server: Server) -> None:
    assert "answers 503 Service Unavailable." in await failure(page(server, "", status=503))


async def test_a_result_has_at_most_100000_characters(server: Server) -> None:
    shown = await text(page(server, "word " * 100_000, "text/plain"))
    assert 99_000 < len(framed(shown)) <= 100_000
    assert "truncated" in shown
    assert shown.endswith("word ")


async def test_a_page_without_an_end_is_cut(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_fetch, "MOST_BYTES", 1000)
    shown = await text(page(server, "word " * 1000, "text/plain"))
    assert "[... cut here: it has more than 1,000 bytes]" in shown
    assert len(shown) < 1400


async def test_what_is_cut_is_shown_although_it_has_no_blanks(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_fetch, "MOST_BYTES", 10_000)
    shown = await text(page(server, '{"a":' + "1" * 20_000, "application/json"))
    assert len(shown) > 10_000


async def test_half_of_a_secret_is_not_shown_where_a_page_is_cut(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_fetch, "MOST_BYTES", 1000)
    secret = "tr0ub4dor-and-3"
    shown = await text(page(server, "x" * 990 + secret, "text/plain"), secrets=(secret,))
    assert secret[:5] not in shown


async def test_of_a_page_that_does_not_end_in_time_the_beginning_is_given(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_fetch, "FETCH_SECONDS", 1.0)
    server.answers["/endless"] = (200, {}, b"The first words. ")
    shown = await text(server.url("/endless"))
    assert shown.endswith("The first words. \n[... cut here: it had not ended after 1 s]")


async def test_a_page_that_is_packed_unasked_is_unpacked(server: Server) -> None:
    server.answers["/"] = (200, {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, gzip.compress(b"Hello"))
    assert (await text(server.url("/"))).endswith("\nHello")


async def test_a_bomb_is_cut(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_fetch, "MOST_BYTES", 10_000)
    packed = gzip.compress(b"word " * 1_000_000)
    server.answers["/"] = (200, {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, packed)
    assert "more than 10,000 bytes" in await text(server.url("/"))


async def test_redirects_on_the_same_host_are_followed(server: Server) -> None:
    server.answers["/old"] = (302, {"Location": "/page"}, b"")
    url = page(server, "There", "text/plain")
    assert f"Content of {url}:\n" in await text(server.url("/old"))


async def test_a_redirect_to_another_host_is_told_and_not_followed(server: Server) -> None:
    server.answers["/old"] = (301, {"Location": server.url("/new", "localhost")}, b"")
    shown = await text(server.url("/old"))
    assert server.url("/new", "localhost") in shown
    assert "Call WebFetch with that address" in shown
    assert [path for path, _ in server.asked] == ["/old"]


async def test_a_circle_ends(server: Server) -> None:
    server.answers["/a"] = (302, {"Location": "/a"}, b"")
    assert "more than 5 times" in await failure(server.url("/a"))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "127.1", "[::ffff:127.0.0.1]"])
async def test_no_address_of_this_machine_is_fetched(server: Server, host: str) -> None:
    said = await failure(server.url("/", host), private=False)
    assert "is an address of this machine or of its network" in said
    assert "`allow_private = true` in `[web]`" in said
    assert server.asked == []
    # Nobody is asked about it, unless it may be had.
    args = {"url": server.url("/", host)}
    assert WebFetch().refusal(args) == said
    assert not WebFetch(private=True).refusal(args)


@pytest.mark.parametrize("url", ["https://example.org/", "https://1.1.1.1/", "http://localhost.example.org", "x", ""])
def test_about_other_addresses_somebody_is_asked(url: str) -> None:
    assert not WebFetch().refusal({"url": url})


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("file:///etc/passwd", "only `http:` and `https:`"),
        ("ftp://example.org/", "only `http:` and `https:`"),
        ("example.org", "only `http:` and `https:`"),
        ("", "only `http:` and `https:`"),
        ("https://user:pass@example.org/", "a name or a password"),
        ("http://example.org/a\nb", "control characters"),
        ("http://[::1", "not an address"),
        ("http://example.org:99999999/", "not an address"),
        (f"http://example.org/{'a' * 9000}", "more than 8000 characters"),
    ],
)
async def test_what_is_no_address_to_fetch_is_refused(url: str, problem: str) -> None:
    assert problem in await failure(url)


async def test_a_server_that_never_answers_costs_a_bounded_time(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_fetch, "FETCH_SECONDS", 0.2)
    assert "longer than 0.2 s" in await failure(server.url("/never"))


async def test_a_page_that_keeps_a_parser_busy_is_shown_as_it_is(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_fetch, "TEXT_SECONDS", 0.01)
    shown = await text(page(server, "<p>Hello</p>" + "<a href='" * 20_000))
    assert "[Not made readable:" in shown
    assert "<p>Hello</p>" in shown


async def test_a_secret_of_ours_that_a_page_repeats_is_not_shown(server: Server) -> None:
    assert "sk-secret" not in await text(page(server, "<p>sk-secret-0123"), secrets=("sk-secret-0123",))


async def test_a_page_that_only_a_browser_fills_is_said_to_be_one(server: Server) -> None:
    assert "(The page has no text." in await text(page(server, "<div id=root></div><script>go()</script>"))


def test_a_call_is_described_by_its_address() -> None:
    tool = WebFetch()
    assert tool.describe({"url": "https://example.org/"}) == "Fetch https://example.org/"
    assert tool.category == "exec"
    assert not tool.outside({"url": "https://example.org/"})
