"""What a browser may do on behalf of our pages. The application sends it with each of them."""

from __future__ import annotations

#: Everything comes from here: no inline script or style, nobody else's code, fonts or pictures. Besides this network,
#: pages talk to the launcher on the reader's own machine, whose port the reader chooses.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self' http://127.0.0.1:* http://localhost:*",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)

#: Where somebody who signs in goes when nobody said where, or said somewhere else than here.
DEFAULT_NEXT = "/communities"


def local_path(path: str) -> str:
    """The path, if a browser that follows it stays on this network; `DEFAULT_NEXT` otherwise.

    Browsers take a backslash for a slash, and skip control characters: `//`, `/\\` and `/<tab>/` all lead away.
    """
    leads_away = not path.startswith("/") or path.startswith("//") or "\\" in path or not path.isprintable()
    return DEFAULT_NEXT if leads_away else path
