"""Serves the tavern's page, and the built TypeScript client that it uses, on this machine only.

python examples/tavern/serve.py            at http://127.0.0.1:8000
python examples/tavern/serve.py 8123       at another port; 0 is any free one
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLIENT = HERE.parents[1] / "clients" / "typescript" / "dist"


class Handler(SimpleHTTPRequestHandler):
    """Files of this folder, and those of the client below `/client/`."""

    def translate_path(self, path: str) -> str:
        """The file of a path. What leads out of a folder leads nowhere, as the library has it."""
        found = Path(super().translate_path(path))
        inside = found.relative_to(HERE)
        return str(CLIENT.joinpath(*inside.parts[1:]) if inside.parts[:1] == ("client",) else found)

    def end_headers(self) -> None:
        """What was changed is seen when the page is loaded again."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads of files that were there."""


def port_of(word: str) -> int:
    """The port that somebody named."""
    if word.isdecimal() and int(word) < 1 << 16:
        return int(word)
    raise argparse.ArgumentTypeError(f"`{word}` is no port: name a number from 0 to 65535, where 0 is any free one")


def main() -> None:
    """Serve until stopped."""
    reader = argparse.ArgumentParser(description="Serve the tavern's page on this machine.")
    reader.add_argument("port", nargs="?", type=port_of, default=8000, help="8000 without; 0 is any free one")
    port = reader.parse_args().port
    if not (CLIENT / "index.js").exists():
        sys.exit("The client has not been built. Run `npm install` and `npm run build` in clients/typescript.")
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=str(HERE)))
    except OSError as error:
        sys.exit(f"127.0.0.1:{port} cannot be used: {error.strerror}. Name another port, or 0 for any free one.")
    print(f"The Lantern is at http://127.0.0.1:{server.server_address[1]} (Ctrl-C ends it.)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


if __name__ == "__main__":
    main()
