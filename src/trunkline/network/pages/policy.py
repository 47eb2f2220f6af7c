"""What a browser may do on behalf of our pages. The application sends it with each of them."""

from __future__ import annotations

from trunkline.base.pages import policy

#: Besides this network, pages talk to the launcher on the reader's own machine, whose port the reader chooses.
CONTENT_SECURITY_POLICY = policy("http://127.0.0.1:*", "http://localhost:*", forms=True)

#: Where somebody who signs in goes when nobody said where, or said somewhere else than here.
DEFAULT_NEXT = "/communities"


def local_path(path: str) -> str:
    """The path, if a browser that follows it stays on this network; `DEFAULT_NEXT` otherwise.

    Browsers take a backslash for a slash, and skip control characters: `//`, `/\\` and `/<tab>/` all lead away.
    """
    leads_away = not path.startswith("/") or path.startswith("//") or "\\" in path or not path.isprintable()
    return DEFAULT_NEXT if leads_away else path
