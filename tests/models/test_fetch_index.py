"""pip's settings in pip's order, and the pages of package indexes."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.models import fetch_index
from trunkline.models.fetch_index import DEFAULT_INDEX, IndexLink, IndexSettings


@pytest.fixture(autouse=True)
def _no_file_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fetch_index, "MACHINE_FILE", str(tmp_path / "etc/pip.conf"))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def places(tmp_path: Path, **environ: str) -> IndexSettings:
    """What is found by a user whose home and environment are in this directory; the machine's own files aside."""
    fixed = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_DIRS": str(tmp_path / "etc")}
    return fetch_index.places(fixed | environ, prefix=str(tmp_path / "venv"))


def index_of(tmp_path: Path, **environ: str) -> str:
    return places(tmp_path, **environ).indexes[0]


def test_without_settings_the_public_index_is_asked(tmp_path: Path) -> None:
    assert places(tmp_path, PIP_CONFIG_FILE="/dev/null") == IndexSettings((DEFAULT_INDEX,))


def test_each_place_for_settings_wins_over_the_one_before(tmp_path: Path) -> None:
    def at(name: str) -> str:
        return f"[global]\nindex-url = https://{name}/simple\n"

    write(tmp_path / "etc/pip/pip.conf", at("machine"))
    assert index_of(tmp_path) == "https://machine/simple"
    write(tmp_path / "etc/pip.conf", at("old-machine"))
    assert index_of(tmp_path) == "https://old-machine/simple"
    write(tmp_path / "home/.pip/pip.conf", at("old-user"))
    assert index_of(tmp_path) == "https://old-user/simple"
    write(tmp_path / "home/.config/pip/pip.conf", at("user"))
    assert index_of(tmp_path) == "https://user/simple"
    write(tmp_path / "venv/pip.conf", at("venv"))
    assert index_of(tmp_path) == "https://venv/simple"
    own = write(tmp_path / "own.conf", at("own"))
    assert index_of(tmp_path, PIP_CONFIG_FILE=str(own)) == "https://own/simple"
    assert index_of(tmp_path, PIP_CONFIG_FILE=str(own), PIP_INDEX_URL="https://env/simple") == "https://env/simple"


def test_no_file_is_read_when_pip_is_told_so(tmp_path: Path) -> None:
    write(tmp_path / "venv/pip.conf", "[global]\nindex-url = https://venv/simple\n")
    assert index_of(tmp_path, PIP_CONFIG_FILE="/dev/null") == DEFAULT_INDEX


def test_the_sections_of_pips_commands_win_over_the_global_one(tmp_path: Path) -> None:
    write(tmp_path / "venv/pip.conf", "[install]\nindex_url = https://b/\n[global]\nindex-url = https://a/\n")
    assert index_of(tmp_path) == "https://b/"


def test_lists_are_read_over_several_lines(tmp_path: Path) -> None:
    write(
        tmp_path / "venv/pip.conf",
        """[global]
        extra-index-url =
            https://a/simple
            https://b/simple
        find-links = /wheels https://c/wheels.html
        trusted-host = a:8080
            b
        cert = /ca.pem
        proxy = http://proxy:3128
        """.replace("\n        ", "\n"),
    )
    found = places(tmp_path)
    assert found.indexes == (DEFAULT_INDEX, "https://a/simple", "https://b/simple")
    assert found.find_links == ("/wheels", "https://c/wheels.html")
    assert (found.certificates, found.proxy) == ("/ca.pem", "http://proxy:3128")
    assert found.trusts("https://a:8080/simple")
    assert found.trusts("https://me:secret@b/simple")
    assert not found.trusts("https://a/simple")


def test_no_index_means_none(tmp_path: Path) -> None:
    assert places(tmp_path, PIP_NO_INDEX="1").indexes == ()


@pytest.mark.parametrize("variable", ["UV_DEFAULT_INDEX", "UV_INDEX_URL"])
def test_uvs_index_counts_where_pip_says_nothing(tmp_path: Path, variable: str) -> None:
    assert index_of(tmp_path, **{variable: "https://uv/simple"}) == "https://uv/simple"
    both = {variable: "https://uv/simple", "PIP_INDEX_URL": "https://pip/simple"}
    assert index_of(tmp_path, **both) == "https://pip/simple"


def test_uvs_named_indexes_are_asked_too(tmp_path: Path) -> None:
    found = places(tmp_path, UV_INDEX="mirror=https://a/simple https://b/s?x=y", PIP_CONFIG_FILE="/dev/null")
    assert found.indexes == (DEFAULT_INDEX, "https://a/simple", "https://b/s?x=y")


@pytest.mark.parametrize("text", ["no section\n", "[global\n", "[global]\nindex-url = \xff\n"])
def test_a_file_that_cannot_be_read_counts_as_absent(tmp_path: Path, text: str) -> None:
    write(tmp_path / "venv/pip.conf", "").write_bytes(text.encode("latin-1"))
    assert index_of(tmp_path, XDG_CONFIG_DIRS=str(tmp_path / "none")) == DEFAULT_INDEX


def test_a_packages_page_has_its_normal_name() -> None:
    assert fetch_index.page("https://a/simple", "My_Data.Part") == "https://a/simple/my-data-part/"
    assert fetch_index.page("https://a/simple/", "x") == "https://a/simple/x/"


PAGE = "https://index.example/simple/x/"


def test_links_are_read_from_json() -> None:
    body = b'{"files": [{"filename": "x-1.whl", "url": "../../f/x-1.whl", "hashes": {"sha256": "ab"}}, '
    body += b'{"filename": "x-2.whl", "url": "https://files.example/x-2.whl", "hashes": {}}]}'
    assert fetch_index.links(body, "application/vnd.pypi.simple.v1+json; charset=UTF-8", PAGE) == [
        IndexLink("x-1.whl", "https://index.example/f/x-1.whl", "ab"),
        IndexLink("x-2.whl", "https://files.example/x-2.whl", None),
    ]


def test_links_are_read_from_html() -> None:
    body = b"""<html><head><title>x</title></head><body><p>unclosed <a name="no-link">
        <a href="https://files.example/a%2Bb/x-1%2Bcpu.whl?token=t&amp;u=v#sha256=ab" data-x>x</A>
        <A HREF='x-2.whl'>x-2</a>"""
    assert fetch_index.links(body, "text/html", PAGE) == [
        IndexLink("x-1+cpu.whl", "https://files.example/a%2Bb/x-1%2Bcpu.whl?token=t&u=v", "ab"),
        IndexLink("x-2.whl", "https://index.example/simple/x/x-2.whl", None),
    ]


def test_the_base_of_a_page_is_heeded() -> None:
    body = b'<base href="https://files.example/all/"><a href="x-1.whl">x</a>'
    assert fetch_index.links(body, "text/html", PAGE)[0].url == "https://files.example/all/x-1.whl"


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"files": 3}', b'{"files": [{}]}', b"<html>", b"\xff"])
def test_json_that_is_no_page_is_an_error(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        fetch_index.links(body, "application/json", PAGE)


def test_credentials_go_along_to_the_index_and_to_nobody_else() -> None:
    page = "https://me:secret@index.example/simple/x/"
    body = b'<a href="/f/x-1.whl"></a><a href="https://index.example/f/x-2.whl"></a>'
    body += b'<a href="https://index.example:444/x-3.whl"></a><a href="http://index.example/x-4.whl"></a>'
    assert [link.url for link in fetch_index.links(body, "text/html", page)] == [
        "https://me:secret@index.example/f/x-1.whl",
        "https://me:secret@index.example/f/x-2.whl",
        "https://index.example:444/x-3.whl",
        "http://index.example/x-4.whl",
    ]


def test_what_is_shown_of_an_address_holds_no_secret() -> None:
    assert fetch_index.shown("https://me:secret@a:8080/simple/x/?token=t#f") == "https://a:8080/simple/x/"
