"""Pages shown in the browser of whoever sits at this machine."""

from __future__ import annotations

import os
import sys
from urllib.parse import urlsplit


def is_page(url: str) -> bool:
    """Whether an address is one of the web: others make browsers, and what stands in for them, do something else."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and url.isascii() and " " not in url


def show(url: str) -> bool:
    """Open a page in a browser with windows, and say whether one was found. Waits for programs: use a thread."""
    if not is_page(url) or not _has_windows():
        return False
    import webbrowser

    try:
        found = webbrowser.get()
        if isinstance(found, webbrowser.GenericBrowser) and not os.environ.get("BROWSER"):
            # It would take the terminal that somebody is looking at.
            return isinstance(found, webbrowser.BackgroundBrowser) and found.open(url)
        return found.open(url)
    except (webbrowser.Error, OSError):
        return False


def _has_windows() -> bool:
    if os.environ.get("BROWSER") or sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
