"""What the coding agent is compared with: for each line on standard input, one request, and each word printed at once.

    _reader.py URL

The least that a program in Python can do with a streamed answer: the standard library's HTTP client, `json.loads` for
each event, and `print` for each word. It keeps no history and no log, and has no tools.
"""

from __future__ import annotations

import http.client
import json
import sys
from urllib.parse import urlsplit


def words(line: bytes) -> str:
    """The word in a line of the stream; empty if it holds none."""
    if not line.startswith(b"data: {"):
        return ""
    event = json.loads(line[6:])
    choices = event.get("choices")
    if choices:
        return str(choices[0]["delta"].get("content") or "")
    return str(event.get("delta", {}).get("text") or "") if "delta" in event else ""


def main(url: str) -> None:
    """Ask, read, print."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    for _ in sys.stdin:
        connection.request("POST", "/v1/chat/completions", body=b"{}", headers={"Content-Type": "application/json"})
        answer = connection.getresponse()
        while line := answer.readline():
            if text := words(line):
                print(json.dumps({"type": "text_delta", "text": text}, separators=(",", ":")), flush=True)
        print('{"type":"stream_end"}', flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
