"""Where this user gets packages from, and what an index says about one.

The places are those of `pip`: its variables and its configuration files, in its order of precedence, so that whoever
has set up a mirror or a proxy has set it up for us, too. `uv`'s variables count where `pip`'s say nothing. `netrc` and
keyrings are not asked.

The pages are those of the Simple API, in JSON or HTML. Nothing here does any network traffic.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping

from trunkline.base import jsontext
from trunkline.base.values import Value

DEFAULT_INDEX = "https://pypi.org/simple"

#: What we ask an index for. Many mirrors know HTML alone.
ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"

#: pip's file for the whole machine, beside those in the directories for configuration.
MACHINE_FILE = "/etc/pip.conf"

#: The sections of pip's files that concern us; the later ones win.
_SECTIONS = ("global", "download", "install")


class IndexSettings(Value):
    """Where to look for packages, and how to get there. Addresses may hold passwords: show them through `shown`."""

    indexes: tuple[str, ...]
    find_links: tuple[str, ...] = ()
    """Directories with wheels in them, or pages that list some."""
    certificates: str | None = None
    proxy: str | None = None
    trusted_hosts: tuple[str, ...] = ()
    """`HOST` or `HOST:PORT` whose certificates nobody checks."""

    def trusts(self, url: str) -> bool:
        """Whether the host of an address is one whose certificate is not checked."""
        from urllib.parse import urlsplit

        parts = urlsplit(url)
        return not {parts.hostname, f"{parts.hostname}:{parts.port}"}.isdisjoint(self.trusted_hosts)


class IndexLink(Value):
    """A file that an index offers."""

    name: str
    url: str
    sha256: str | None


def places(environ: Mapping[str, str] = os.environ, prefix: str = sys.prefix) -> IndexSettings:
    """What pip's and uv's settings say. A file that cannot be read counts as absent, as it does for pip."""
    settings: dict[str, str] = {}
    for path in _files(environ, prefix):
        settings |= _file_settings(path)
    settings |= {
        name[4:].lower().replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith("PIP_") and value
    }
    main = settings.get("index-url") or environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL") or DEFAULT_INDEX
    more = [settings.get("extra-index-url", ""), environ.get("UV_INDEX", ""), environ.get("UV_EXTRA_INDEX_URL", "")]
    indexes = [_unnamed(url) for url in (main, *" ".join(more).split())]
    find_links = f"{settings.get('find-links', '')} {environ.get('UV_FIND_LINKS', '').replace(',', ' ')}"
    return IndexSettings(
        indexes=() if _is_true(settings.get("no-index", "")) else tuple(dict.fromkeys(indexes)),
        find_links=tuple(dict.fromkeys(find_links.split())),
        certificates=settings.get("cert"),
        proxy=_with_scheme(settings.get("proxy")),
        trusted_hosts=tuple(settings.get("trusted-host", "").split()),
    )


def _unnamed(url: str) -> str:
    """uv allows a name in front: `NAME=URL`."""
    name, equals, rest = url.partition("=")
    return rest if equals and "/" not in name else url


def _with_scheme(proxy: str | None) -> str | None:
    """pip allows to leave it out: `user:password@proxy.example:8080`."""
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def _is_true(text: str) -> bool:
    return text.strip().lower() in ("1", "y", "yes", "t", "true", "on")


def _files(environ: Mapping[str, str], prefix: str) -> Iterator[str]:
    """pip's configuration files, the strongest last."""
    own = environ.get("PIP_CONFIG_FILE", "")
    if own == os.devnull:
        return
    home = environ.get("HOME") or os.path.expanduser("~")
    if sys.platform == "darwin":
        yield "/Library/Application Support/pip/pip.conf"
    else:
        for folder in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep):
            yield os.path.join(folder, "pip", "pip.conf")
        yield MACHINE_FILE
    if not os.path.exists(own):
        yield os.path.join(home, ".pip", "pip.conf")
        if sys.platform == "darwin":
            yield os.path.join(home, "Library", "Application Support", "pip", "pip.conf")
        yield os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "pip", "pip.conf")
    yield os.path.join(prefix, "pip.conf")
    if own:
        yield own


def _file_settings(path: str) -> dict[str, str]:
    import configparser

    parser = configparser.RawConfigParser()
    try:
        if not parser.read(path, encoding="utf-8"):
            return {}
    except (configparser.Error, UnicodeDecodeError):
        return {}
    return {
        name.lstrip("-").replace("_", "-"): value
        for section in _SECTIONS
        if parser.has_section(section)
        for name, value in parser.items(section)
        if value
    }


def page(index: str, package: str) -> str:
    """The address of a package's page on an index."""
    return f"{index.rstrip('/')}/{package.lower().replace('_', '-').replace('.', '-')}/"


def links(body: bytes, content_type: str, url: str) -> list[IndexLink]:
    """What a page offers. `url` is where it was found: its links may be relative to that.

    Raises:
        ValueError: it is no such page.
    """
    found = _json_links(body) if "json" in content_type.lower() else _html_links(body)
    return [_resolved(href, name, digest, url) for href, name, digest in found]


def _json_links(body: bytes) -> Iterator[tuple[str, str, str | None]]:
    try:
        for file in jsontext.loads(body)["files"]:
            yield str(file["url"]), str(file["filename"]), file.get("hashes", {}).get("sha256")
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a page of the Simple API: {error}") from None


def _html_links(body: bytes) -> list[tuple[str, str | None, str | None]]:
    from html.parser import HTMLParser

    found: list[tuple[str, str | None, str | None]] = []
    base = ""

    class Anchors(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            nonlocal base
            href = dict(attrs).get("href")
            if tag == "base" and href:
                base = href
            elif tag == "a" and href:
                found.append((_join(base, href), None, None))

    parser = Anchors()
    parser.feed(body.decode("utf-8", errors="replace"))
    parser.close()
    return found


def _resolved(href: str, name: str | None, digest: str | None, url: str) -> IndexLink:
    from urllib.parse import unquote, urldefrag, urlsplit

    address, fragment = urldefrag(_join(url, href))
    if digest is None and fragment.startswith("sha256="):
        digest = fragment.removeprefix("sha256=")
    file_name = name or unquote(urlsplit(address).path.rpartition("/")[2])
    return IndexLink(file_name, _with_credentials(address, url), digest)


def _join(base: str, href: str) -> str:
    from urllib.parse import urljoin

    return urljoin(base, href)


def _with_credentials(url: str, index: str) -> str:
    """A link of an index to itself is followed with the user and password that the index was asked with."""
    from urllib.parse import urlsplit, urlunsplit

    link, origin = urlsplit(url), urlsplit(index)
    user, at, host = origin.netloc.rpartition("@")
    if not at or (link.scheme, link.netloc) != (origin.scheme, host):
        return url
    return urlunsplit(link._replace(netloc=f"{user}@{host}"))


def shown(url: str) -> str:
    """An address without what may be secret in it: user, password, query."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.scheme else url
