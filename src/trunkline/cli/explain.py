"""`trunkline explain`: one timeline of a session in the exchange that runs here, with the cause of every end.

Exit codes: 0, or 1 when no exchange runs or there is no such session.
"""

from __future__ import annotations

from html import escape
from typing import Any

import click

from trunkline.base import jsontext
from trunkline.base.printable import printable, printable_line
from trunkline.cli import local_exchange, value_completion
from trunkline.cli.explained import explained
from trunkline.cli.transcript import when

#: As wide as the longest of the usual names.
_WHO_WIDTH = 10

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.25rem .6rem;"
    "border-bottom:1px solid #ddd}td.t{white-space:pre-wrap;overflow-wrap:anywhere}td.m{white-space:nowrap;color:#666}"
    "tr.failed td,tr.damage td{color:#a00}tr.end td{font-weight:600}tr.act td{color:#666;font-style:italic}"
)


@click.command("explain")
@click.argument("session", metavar="SESSION", shell_complete=value_completion.sessions)
@click.option("--json", "form", flag_value="json", help="Print one JSON object.")
@click.option("--html", "form", flag_value="html", help="Print a page that needs nothing else.")
@explained
def command(session: str, form: str | None) -> None:
    """Show what happened in the session SESSION of the exchange: who said, asked, decided and stopped what, over all
    wires and processes, and why each turn ended. The beginning of its id is enough; `latest` is the newest.

    \b
    Examples:
      trunkline explain 0199f3c2
      trunkline explain 0199f3c2 --html > session.html
    """
    story = local_exchange.of_session("GET", session, "explanation")
    if form == "json":
        click.echo(jsontext.dumps(story))
    else:
        click.echo(page(story) if form == "html" else as_text(story))


def as_text(story: dict[str, Any]) -> str:
    """The story for a terminal."""
    about = story["session"]
    lines = [f"{label:9}  {printable_line(value)}" for label, value in _head(about, story["people"])]
    if story["left_out"]:
        lines += ["", f"({story['left_out']} earlier entries are not shown.)"]
    turn = None
    for entry in story["timeline"]:
        if entry["turn"] and entry["turn"] != turn:
            turn = entry["turn"]
            lines += ["", f"Turn {turn}"]
        who = printable_line(entry["who"])
        # A text of several lines stands beside its label.
        hanging = "\n" + " " * (len(when(0.0)) + 2 + _WHO_WIDTH + 2)
        text = printable(f"{_KINDS.get(entry['kind'], '')}{entry['text']}".rstrip()).replace("\n", hanging)
        lines.append(f"{when(entry['at'] / 1000)}  {who:{_WHO_WIDTH}}  {text}")
    lines += ["", "How each turn ended"]
    for each in story["turns"]:
        by = f" (asked by {each['by']})" if each["by"] else ""
        lines.append(printable_line(f"  {each['turn']}: {each['outcome']}. {each['cause']}{by}"))
    return "\n".join(lines)


def page(story: dict[str, Any]) -> str:
    """The story as one HTML page, without scripts."""
    about = story["session"]
    title = f"Session {_shown(about['id'])}"
    rows = _head(about, story["people"])
    head = "".join(f"<tr><th>{label}</th><td>{_shown(value)}</td></tr>" for label, value in rows)
    turns = "".join(
        f"<tr class={'end' if each['outcome'] == 'success' else 'failed'}><td>{each['turn']}</td>"
        f"<td>{_shown(each['by'])}</td><td class=t>{_shown(each['message'])}</td><td>{_shown(each['outcome'])}</td>"
        f"<td class=t>{_shown(each['cause'])}</td></tr>"
        for each in story["turns"]
    )
    entries = "".join(
        f"<tr class={_shown(entry['kind'])}><td class=m>{when(entry['at'] / 1000)}</td>"
        f"<td class=m>{entry['seq']}</td><td class=m>{entry['turn'] or ''}</td><td>{_shown(entry['who'])}</td>"
        f"<td class=m>{_shown(entry['kind'].replace('_', ' '))}</td><td class=t>{_shown(entry['text'])}</td></tr>"
        for entry in story["timeline"]
    )
    left_out = f"<p>{story['left_out']} earlier entries are not shown.</p>" if story["left_out"] else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"</head><body><h1>{title}</h1><table>{head}</table>"
        "<h2>How each turn ended</h2><table><tr><th>Turn<th>Asked by<th>Message<th>Outcome<th>Cause</tr>"
        f"{turns}</table><h2>Timeline</h2>{left_out}"
        f"<table><tr><th>When<th>Event<th>Turn<th>Who<th>What<th></tr>{entries}</table></body></html>"
    )


#: What stands before a text that would not say by itself what it is.
_KINDS = {"thinking": "(thinks) ", "tool_asked": "asks for ", "failed": "failed: "}


def _head(about: dict[str, Any], people: list[str]) -> list[tuple[str, str]]:
    by = f" by {about['by']}" if about["by"] else ""
    rows = [
        ("session", about["id"]),
        ("agent", about["agent"]),
        ("workspace", about["workspace"]),
        ("begun", f"{when(about['created_at'] / 1000)}{by}"),
        ("people", ", ".join(people)),
    ]
    return [(label, value) for label, value in rows if value]


def _shown(text: str) -> str:
    return escape(printable(text))
