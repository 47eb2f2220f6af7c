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
from trunkline.core.transcript import when

#: Names stand in a column as wide as the longest of them, within these bounds: a name may be as long as an id.
_FEWEST_OF_WHO, _MOST_OF_WHO = 10, 24

#: On a narrow screen a row becomes a paragraph: a short line about it, and its text below in the full width.
_STYLE = (
    ":root{color-scheme:light dark;--line:#8884;--dim:#888;--bad:#c33}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.25rem .6rem;"
    "border-bottom:1px solid var(--line)}td.t{white-space:pre-wrap;overflow-wrap:anywhere}"
    "td.m{white-space:nowrap;color:var(--dim)}tr.failed td,tr.damage td{color:var(--bad)}tr.end td{font-weight:600}"
    "tr.act td{color:var(--dim);font-style:italic}h1{overflow-wrap:anywhere}table.about{width:auto}"
    "@media(max-width:45rem){body{margin:1rem auto}tr{display:flex;flex-wrap:wrap;padding:.3rem 0;"
    "border-bottom:1px solid var(--line)}th,td{border:0;padding:0 .6rem 0 0;overflow-wrap:anywhere}"
    "tr.names,td.n{display:none}td.t{flex-basis:100%}}"
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
    longest = max((len(printable_line(entry["who"])) for entry in story["timeline"]), default=0)
    width = min(max(longest, _FEWEST_OF_WHO), _MOST_OF_WHO)
    for entry in story["timeline"]:
        if entry["turn"] and entry["turn"] != turn:
            turn = entry["turn"]
            lines += ["", f"Turn {turn}"]
        who = printable_line(entry["who"])
        # A text of several lines stands beside its label.
        hanging = "\n" + " " * (len(when(0.0)) + 2 + width + 2)
        text = printable(f"{_KINDS.get(entry['kind'], '')}{entry['text']}".rstrip()).replace("\n", hanging)
        lines.append(f"{when(entry['at'] / 1000)}  {who:{width}}  {text}")
    lines += ["", "How each turn ended" if story["turns"] else "Nothing has been asked yet."]
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
        f"<tr class={'ended' if each['outcome'] in ('success', 'running') else 'failed'}><td>{each['turn']}</td>"
        f"<td>{_shown(each['by'])}</td><td class=t>{_shown(each['message'])}</td><td>{_shown(each['outcome'])}</td>"
        f"<td class=t>{_shown(each['cause'])}</td></tr>"
        for each in story["turns"]
    )
    entries = "".join(
        f"<tr class={_shown(entry['kind'])}><td class=m>{when(entry['at'] / 1000)}</td>"
        f"<td class='m n'>{entry['seq']}</td><td class='m n'>{entry['turn'] or ''}</td><td>{_shown(entry['who'])}</td>"
        f"<td class=m>{_shown(entry['kind'].replace('_', ' '))}</td><td class=t>{_shown(entry['text'])}</td></tr>"
        for entry in story["timeline"]
    )
    left_out = f"<p>{story['left_out']} earlier entries are not shown.</p>" if story["left_out"] else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1><table class=about>{head}</table>"
        "<h2>How each turn ended</h2><table><tr class=names><th>Turn<th>Asked by<th>Message<th>Outcome<th>Cause</tr>"
        f"{turns}</table><h2>Timeline</h2>{left_out}"
        f"<table><tr class=names><th>When<th>Event<th>Turn<th>Who<th>What<th></tr>{entries}</table></body></html>"
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
