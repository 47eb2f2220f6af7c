"""Whether the exchange in this container can do its work; the exit code says it.

It asks over the socket in the exchange's home, where no token is needed, and imports little: it runs every few seconds.
"""

import http.client
import os
import socket
import sys

#: Whoever calls this waits for five seconds.
SECONDS = 4.0
SOCKET = os.path.join(os.environ.get("TRUNKLINE_HOME", "/var/lib/trunkline"), "exchange", "exchange.sock")


class _Local(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(SOCKET)


def main() -> int:
    """Ask once."""
    connection = _Local("localhost")
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        told = answer.read(4096).decode(errors="replace")
    except OSError as error:
        print(f"{SOCKET}: {error}")
        return 1
    finally:
        connection.close()
    print(f"{answer.status} {told}")
    return 0 if answer.status == 200 else 1


if __name__ == "__main__":
    sys.exit(main())
