"""Somebody at a terminal who logs in to an MCP server: shown the address, and heard if they paste another one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from trunkline.base import browser, jsontext
from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.base.printable import printable_line
from trunkline.base.stdio import StdinReader
from trunkline.tools.threads import in_thread

if TYPE_CHECKING:
    from trunkline.tools.mcp.oauth.store import KeptLogin

#: Of what is pasted. Addresses are shorter.
LONGEST_LINE = 1 << 15
#: How long it may take to find out that no browser can be started.
BROWSER_SECONDS = 2.0
#: Lines that nobody has looked at yet. More are not pasted by people.
MOST_LINES = 100


class TerminalUser:
    """See `flow.LoginUser`."""

    def __init__(self, server: str, *, browser: bool, as_json: bool) -> None:
        self._server = printable_line(server)
        self._browser = browser
        self._as_json = as_json
        self._lines: asyncio.Queue[str] = asyncio.Queue(MOST_LINES)

    async def show(self, url: str, redirect_uri: str) -> None:
        if self._as_json:
            click.echo(jsontext.dumps({"event": "authorize", "url": url, "redirect_uri": redirect_uri}))
            sys.stdout.flush()
        opened = self._browser and await _opened(url)
        if not self._as_json:
            how = "If your browser does not show it, open" if opened else "Open"
            _say(f"{how} this address to log in to `{self._server}`:\n\n{url}\n")
            if self._reads:
                _say("If the page that it ends at cannot be reached, paste the address of that page here.")

    async def pasted(self) -> str:
        return await self._lines.get()

    def told(self, problem: str) -> None:
        _say(problem)

    def done(self, kept: KeptLogin) -> None:
        """Say what came of it."""
        if self._as_json:
            told = {"event": "logged_in", "name": kept.server, "at": kept.place, "kept": kept.kept}
            click.echo(jsontext.dumps({**told, "expires_at": kept.expires_at, "renewable": kept.renewable}))
            return
        click.echo(f"You are logged in to `{self._server}`.")
        if kept.kept == "file":
            _say("No keyring has taken the login: it is in a file that only you can read.")

    @property
    def _reads(self) -> bool:
        """Whether something may be pasted: a program that does not know of it has standard input for itself."""
        return not self._browser or (sys.stdin is not None and sys.stdin.isatty())

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Within the block, what is pasted is read."""
        if not self._reads:
            yield
            return
        splitter = LineSplitter(LONGEST_LINE)

        def take(data: bytes) -> None:
            for line in splitter.feed(data):
                if not isinstance(line, OverlongLine) and not self._lines.full():
                    self._lines.put_nowait(line.decode("utf-8", "replace"))

        # The listener may still hear the browser when nothing more can be pasted.
        reader = StdinReader(0, take, lambda: None)
        reader.start()
        try:
            yield
        finally:
            reader.close()


async def _opened(url: str) -> bool:
    """Whether a browser shows it. Some programs end only when their window is closed."""
    try:
        async with asyncio.timeout(BROWSER_SECONDS):
            return await in_thread(lambda _: browser.show(url))
    except TimeoutError:
        return True


def _say(text: str) -> None:
    click.echo(text, err=True)
