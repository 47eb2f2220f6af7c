"""A language server that finds an error in each `BAD`, a warning in each `ODD` and a hint in each `HINT`.

    python language_server.py [--pull] [--loading] [--twice] [--no-version] [--asks] [--odd]
                              [--silent] [--late] [--die] [--mute] [--nonsense] [--flood]

`--loading` answers the first questions by saying to ask again, `--odd` also tells of a file with half a character in
its name, `--late` tells nothing of the first changes, `--silent` never tells anything, `--die` ends at the first file,
`--mute` does not even answer `initialize`, `--nonsense` sends no messages, `--flood` sends them without an end. What it
is told, it writes to the file that the variable `HEARD` names.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

#: Versions of a file about which `--late` says nothing, and questions that `--loading` does not answer yet.
LATE = 3

WORDS = (("BAD", 1), ("ODD", 2), ("HINT", 4))


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def receive() -> dict[str, Any] | None:
    length = 0
    while (line := sys.stdin.buffer.readline()) != b"\r\n":
        if not line:
            return None
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    found: dict[str, Any] = json.loads(sys.stdin.buffer.read(length))
    return found


def found_in(text: str) -> list[dict[str, Any]]:
    return [
        {
            "range": {
                "start": {"line": number, "character": line.index(word)},
                "end": {"line": number, "character": 99},
            },
            "severity": severity,
            "message": f"{word}\nfound in {line.strip()!r}",
            "code": f"T{severity}",
            "source": "fake",
        }
        for number, line in enumerate(text.split("\n"))
        for word, severity in WORDS
        if word in line
    ]


def note(heard: str) -> None:
    if path := os.environ.get("HEARD"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{heard}\n")


def publish(uri: str, version: int, items: list[dict[str, Any]]) -> None:
    about = {} if "--no-version" in sys.argv else {"version": version}
    send({"method": "textDocument/publishDiagnostics", "params": {"uri": uri, "diagnostics": items, **about}})


def tell(document: dict[str, Any], text: str) -> None:
    uri, version = document["uri"], document["version"]
    if "--die" in sys.argv:
        sys.exit("I have seen enough")
    if "--nonsense" in sys.argv:
        sys.stdout.write("Hello!\n" * 1000)
        sys.stdout.flush()
        return
    while "--flood" in sys.argv:
        send({"method": "window/logMessage", "params": {"type": 4, "message": "x" * 100_000}})
    if "--asks" in sys.argv:
        send({"id": "q1", "method": "workspace/configuration", "params": {"items": [{}, {}]}})
        send({"id": "q2", "method": "fake/unknown"})
        send({"id": "q3", "method": "workspace/applyEdit", "params": {"edit": {}}})
        answered = 0
        while answered < 3 and (message := receive()) is not None:
            answered += "method" not in message
            note(f"answered {json.dumps(message)}")
    if "--silent" in sys.argv or "--pull" in sys.argv:
        return
    if "--twice" in sys.argv:
        publish(uri, version - 1, found_in("BAD stale"))
        publish("file:///elsewhere.py", version, found_in("BAD elsewhere"))
        publish(uri, version, [])
    if "--odd" in sys.argv:
        publish("file:///x\ud800", version, [])
    if "--late" not in sys.argv or version > LATE:
        publish(uri, version, found_in(text))
    if "--twice" in sys.argv:
        publish(uri, version - 1, found_in("BAD stale"))


def main() -> None:
    texts: dict[str, str] = {}
    unready = LATE if "--loading" in sys.argv else 0
    while (message := receive()) is not None:
        method, params = message.get("method"), message.get("params", {})
        note(str(method))
        if method == "initialize" and "--mute" not in sys.argv:
            note(f"root {params['rootUri']} secret {os.environ.get('FAKE_API_KEY')}")
            pulls = {"diagnosticProvider": {"interFileDependencies": False}} if "--pull" in sys.argv else {}
            send({"id": message["id"], "result": {"capabilities": {"textDocumentSync": 1, **pulls}}})
        elif method == "textDocument/didOpen":
            document = params["textDocument"]
            note(f"open {document['languageId']}")
            texts[document["uri"]] = document["text"]
            tell(document, document["text"])
        elif method == "textDocument/didChange":
            texts[params["textDocument"]["uri"]] = params["contentChanges"][0]["text"]
            tell(params["textDocument"], params["contentChanges"][0]["text"])
        elif method == "textDocument/diagnostic" and unready:
            unready -= 1
            again = {"code": -32802, "message": "server cancelled the request", "data": {"retriggerRequest": True}}
            send({"id": message["id"], "error": again})
        elif method == "textDocument/diagnostic":
            items = found_in(texts[params["textDocument"]["uri"]])
            send({"id": message["id"], "result": {"kind": "full", "items": items}})
        elif method == "shutdown":
            send({"id": message["id"], "result": None})
        elif method == "exit":
            return


if __name__ == "__main__":
    main()
