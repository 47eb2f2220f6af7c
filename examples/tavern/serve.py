"""Serves the tavern's page, and the built TypeScript client that it uses, on this machine only.

python examples/tavern/serve.py            at http://127.0.0.1:8000
python examples/tavern/serve.py 8123       at another port; 0 is any free one
"""

from __future__ import annotations

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


def main() -> None:
    """Serve until stopped."""
    if not (CLIENT / "index.js").exists():
        sys.exit("The client has not been built. Run `npm install` and `npm run build` in clients/typescript.")
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=str(HERE)))
    except OSError as error:
        sys.exit(f"127.0.0.1:{port} cannot be used: {error.strerror}.")
    print(f"The Lantern is at http://127.0.0.1:{server.server_address[1]} (Ctrl-C ends it.)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


if __name__ == "__main__":
    main()
