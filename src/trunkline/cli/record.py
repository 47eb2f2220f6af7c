"""`trunkline record`: a session of the exchange that runs here, as a script for the agent `scripted`.

Exit codes: 0, or 1 when no exchange runs, there is no such session, or the file cannot be written.
"""

from __future__ import annotations

import json
import re
from typing import Any

import click

from trunkline.base import jsontext
from trunkline.base.printable import printable_line
from trunkline.cli import local_exchange, value_completion
from trunkline.cli.explained import explained

#: What JSON may hold as it is, and YAML reads as something else or not at all: line ends, controls.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
#: No YAML can say half a character.
_HALVES = re.compile("[\ud800-\udfff]")

_LEFT_OUT = {
    "sound": "pieces of sound",
    "damaged": "damaged events",
}


@click.command("record")
@click.argument("session", metavar="SESSION", shell_complete=value_completion.sessions)
@click.option("-o", "--output", metavar="FILE", type=click.Path(), help="Where to write it (default: standard output).")
@click.option("--json", "as_json", is_flag=True, help="With -o: report in JSON what was written.")
@explained
def command(session: str, output: str | None, as_json: bool) -> None:
    """Write the session SESSION of the exchange as a script. The beginning of its id is enough; `latest` is the newest.

    The agent `scripted` plays it, on every wire and without a model; so does `trunkline replay`. The script is JSON,
    which is YAML as well. What it cannot say is left out, and told.

    \b
    Examples:
      trunkline record 0199f3c2 -o talk.yaml
      trunkline replay talk.yaml
      trunkline agent --json-stream --agent scripted:talk.yaml
    """
    found = local_exchange.of_session("GET", session, "script")
    text = as_file(found["script"])
    if output is None:
        click.echo(text)
        return
    from trunkline.agents import script

    # Before it takes the place of another file: what was written can be played.
    script.parse(text, output)
    with open(output, "wb") as file:
        file.write(text)
    turns = len(found["script"]["turns"])
    if as_json:
        click.echo(jsontext.dumps({"file": output, "turns": turns, "left_out": found["left_out"]}))
        return
    click.echo(printable_line(f"`{output}` holds {turns} {'turn' if turns == 1 else 'turns'}."), err=True)
    for what, count in found["left_out"].items():
        click.echo(printable_line(f"Left out: {count} {_LEFT_OUT.get(what, what)}."), err=True)


def as_file(script: dict[str, Any]) -> bytes:
    """The text of a script that reads the same as JSON and as YAML. Half characters are replaced."""
    text = _HALVES.sub("\ufffd", json.dumps(script, ensure_ascii=False, indent=1))
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"
