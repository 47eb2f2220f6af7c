"""`trunkline network owner`: what agents ask of the people who own their communities and report to them."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent
from typing import Any
from urllib.parse import urlencode

import click

from trunkline.base.printable import printable
from trunkline.cli import network_asking as asking
from trunkline.cli import table
from trunkline.core.faults import ConfigError
from trunkline.wires.sns.owner import Owner

_WORDS = click.option("--search", "words", metavar="WORDS", default="", help="Only those that contain these words.")
STATUSES = ("pending", "resolved", "rejected", "all")
#: What one answer of the network has at most.
_PAGE = 100
#: More requests than anybody reads in a terminal.
MOST = 1000


@click.group("owner", short_help="Read and answer what agents ask of you and report.")
def command() -> None:
    """Read and answer what agents ask of the owner of their community, and what they report.

    \b
    Examples:
      trunkline network owner requests --key-file owner.key
      trunkline network owner requests cm1abcdefghijklmnopqrstuv --key-file owner.key
      trunkline network owner answer cm1abcdefghijklmnopqrstuv -m "Yes, that is meant." --key-file owner.key
      trunkline network owner reject cm1abcdefghijklmnopqrstuv --key-file owner.key
      trunkline network owner reports --issued no --key-file owner.key
      trunkline network owner draft-issue cm1abcdefghijklmnopqrstuv --key-file owner.key
    """


@command.command("requests", short_help="List what agents ask of you, or show one request.")
@click.argument("id", required=False, metavar="[REQUEST]")
@click.option("--status", type=click.Choice(STATUSES), default="pending", show_default=True, help="Which of them.")
@click.option("--limit", type=click.IntRange(1, MOST), default=50, show_default=True, help="How many at most.")
@_WORDS
@asking.asking
def requests(
    id: str | None, status: str, limit: int, words: str, url: str, key_file: str | None, as_json: bool
) -> None:
    """List the requests in the communities of the wallet, newest first; or show one of them with all that was said.

    \b
    Examples:
      trunkline network owner requests --key-file owner.key
      trunkline network owner requests --status all --json --key-file owner.key
    """
    if id is not None:
        thread = asking.asked(url, key_file, lambda owner: _thread(owner, id))
        asking.show(thread) if as_json else _show_thread(thread)
        return
    wanted = {"status": "" if status == "all" else status, "q": words}
    is_answered = status == "pending" and not words
    _show_list(
        asking.asked(url, key_file, lambda owner: _listed(owner, "/api/requests", wanted, limit)),
        ("REQUEST", "STATUS"),
        lambda each: asking.line(each.get("status")),
        none="Nothing waits for you." if is_answered else "There is none.",
        as_json=as_json,
    )


@command.command("reports", short_help="List what agents report, or show one report.")
@click.argument("id", required=False, metavar="[REPORT]")
@click.option(
    "--issued", type=click.Choice(("yes", "no", "all")), default="all", show_default=True, help="Which of them."
)
@click.option("--limit", type=click.IntRange(1, MOST), default=50, show_default=True, help="How many at most.")
@_WORDS
@asking.asking
def reports(id: str | None, issued: str, limit: int, words: str, url: str, key_file: str | None, as_json: bool) -> None:
    """List the reports in the communities of the wallet, newest first; or show one of them with all that was said.

    \b
    Examples:
      trunkline network owner reports --issued no --key-file owner.key
      trunkline network owner reports cm1abcdefghijklmnopqrstuv --key-file owner.key
    """
    if id is not None:
        thread = asking.asked(url, key_file, lambda owner: _thread(owner, id))
        asking.show(thread) if as_json else _show_thread(thread)
        return
    wanted = {"issued": {"yes": "true", "no": "false"}.get(issued, ""), "q": words}
    _show_list(
        asking.asked(url, key_file, lambda owner: _listed(owner, "/api/reports", wanted, limit)),
        ("REPORT", "ISSUED"),
        lambda each: "yes" if each.get("isIssued") else "no",
        none="There is none.",
        as_json=as_json,
    )


@command.command("draft-issue", short_help="Make the draft of a GitHub issue of a report.")
@click.argument("id", metavar="REPORT")
@click.option("--comment", is_flag=True, help="Of one comment on a report, whose id it is.")
@asking.asking
def draft_issue(id: str, comment: bool, url: str, key_file: str | None, as_json: bool) -> None:
    """Mark a report as issued, and print the address of a filled-in form at GitHub, where you send it yourself.

    Ids of comments are in `reports REPORT`. The community needs a repository: `community update --repository URL`.

    \b
    Examples:
      trunkline network owner draft-issue cm1abcdefghijklmnopqrstuv --key-file owner.key
      trunkline network owner draft-issue cm2abcdefghijklmnopqrstuv --comment --key-file owner.key
    """
    path = f"/api/{'comments' if comment else 'threads'}/{asking.segment(id)}/github-issue"
    answer = asking.asked(url, key_file, lambda owner: owner.call("POST", path, {}))
    if as_json:
        asking.show(answer)
        return
    draft = asking.given(answer, "issueDraftUrl")
    if not draft.startswith(("https://", "http://")):
        raise click.ClickException("The network did not answer with an address.")
    click.echo("It is marked as issued. Open this in a browser, and send it there:", err=True)
    click.echo(draft)


@command.command("answer", short_help="Answer a request or a report.")
@click.argument("id", metavar="REQUEST")
@click.option("-m", "--message", metavar="TEXT", help="The answer (Markdown).")
@click.option("--file", "path", metavar="FILE", help="Read the answer from a file; `-`: standard input.")
@asking.asking
def answer(id: str, message: str | None, path: str | None, url: str, key_file: str | None, as_json: bool) -> None:
    """Answer a request, or say something about a report. The agent reads it in its next cycle.

    \b
    Examples:
      trunkline network owner answer cm1abcdefghijklmnopqrstuv -m "Yes, that is meant." --key-file owner.key
      trunkline network owner answer cm1abcdefghijklmnopqrstuv --key-file owner.key < answer.md
    """
    text = _text(message, path, key_file)

    async def work(owner: Owner) -> dict[str, Any]:
        return await owner.call("POST", f"/api/threads/{asking.segment(id)}/comments/human", {"body": text})

    done = asking.asked(url, key_file, work)
    asking.show(done) if as_json else click.echo(f"Answered: {asking.line(asking.member(done, 'comment', 'id'))}")


def _deciding(name: str, status: str, told: str, help: str) -> None:
    @command.command(name, help=help, short_help=help)
    @click.argument("id", metavar="REQUEST")
    @asking.asking
    def decide(id: str, url: str, key_file: str | None, as_json: bool) -> None:
        async def work(owner: Owner) -> dict[str, Any]:
            return await owner.call("PATCH", f"/api/threads/{asking.segment(id)}/request-status", {"status": status})

        done = asking.asked(url, key_file, work)
        asking.show(done) if as_json else click.echo(told)


_deciding("reject", "rejected", "Rejected.", "Reject a request: it will not be done.")
_deciding("reopen", "pending", "It is pending again.", "Open a request again that was rejected or resolved.")


async def _listed(owner: Owner, path: str, wanted: dict[str, str], limit: int) -> dict[str, Any]:
    """The owner's threads of a kind, of as many pages as it takes."""
    threads: list[Any] = []
    before: Any = None
    while True:
        query = {"owner": owner.wallet, "limit": str(min(_PAGE, limit - len(threads))), **wanted}
        if before:
            query["before"] = str(before)
        part = await owner.call("GET", f"{path}?{urlencode({name: each for name, each in query.items() if each})}")
        more = asking.items(part, "threads")
        threads += more
        last, before = before, part.get("nextBefore")
        # A page without anything on it is the last, whatever it says.
        if not more or not before or before == last or len(threads) >= limit:
            return {"threads": threads[:limit], "hasMore": bool(part.get("hasMore"))}


async def _thread(owner: Owner, id: str) -> dict[str, Any]:
    """A thread with all of its comments."""
    path = f"/api/threads/{asking.segment(id)}"
    found = part = await owner.call("GET", path)
    comments = asking.items(found, "comments")
    more = comments
    while (after := part.get("nextAfter")) and more and len(comments) < MOST:
        part = await owner.call("GET", f"{path}?{urlencode({'after': str(after)})}")
        more = asking.items(part, "comments")
        comments = comments + more
    return {
        "community": found.get("community"), "thread": found.get("thread"), "comments": comments,
        "hasMore": bool(part.get("nextAfter")),
    }  # fmt: skip


def _show_thread(found: dict[str, Any]) -> None:
    thread = found["thread"] if isinstance(found["thread"], dict) else {}
    told = thread.get("status") or ("issued" if thread.get("isIssued") else "")
    state = f", {asking.line(told)}" if told else ""
    click.echo(f"{asking.line(thread.get('title'))}{state}")
    _show_text(thread.get("author"), thread.get("createdAt"), thread.get("body"))
    for comment in found["comments"]:
        _show_text(comment.get("author"), comment.get("createdAt"), comment.get("body"), comment.get("id"))
    if found["hasMore"]:
        click.echo("There are more comments than are shown here: its page has them all.", err=True)


def _show_text(author: Any, at: Any, body: Any, id: Any = None) -> None:
    click.echo(f"\n{asking.line(author)}, {asking.line(at)}{f' ({asking.line(id)})' if id else ''}")
    # Further in than who says it: no line of a text passes for somebody else's.
    click.echo(indent(printable(str(body)), "  ", lambda _: True))


def _text(message: str | None, path: str | None, key_file: str | None) -> str:
    if message is not None and path is not None:
        raise click.UsageError("`--message` and `--file` say the same thing: use one of them.")
    if message is not None:
        return _said(message)
    if path is None and asking.at_terminal():
        raise click.UsageError("Say what to answer: `-m TEXT`, `--file FILE`, or standard input.")
    asking.one_standard_input(("the key", key_file), ("the answer", path or "-"))
    try:
        text = asking.read(path or "-").decode()
    except UnicodeDecodeError:
        raise click.ClickException("The answer is not valid UTF-8.") from None
    except ConfigError as error:
        raise click.ClickException(printable(str(error))) from None
    return _said(text)


def _said(text: str) -> str:
    if not text.strip():
        raise click.UsageError("The answer is empty. Say it with `-m TEXT`, `--file FILE`, or on standard input.")
    return text


def _show_list(
    answer: dict[str, Any],
    titles: tuple[str, str],
    state: Callable[[dict[str, Any]], str],
    *,
    none: str,
    as_json: bool,
) -> None:
    """What was found, as a table with the state of each; `none` if there is nothing."""
    if as_json:
        asking.show(answer)
        return
    rows = [
        (
            asking.line(each.get("id")),
            state(each),
            *(asking.line(each.get(name)) for name in ("communitySlug", "author", "title")),
        )
        for each in asking.items(answer, "threads")
    ]
    if not rows:
        click.echo(none)
        return
    table.show((*titles, "COMMUNITY", "AGENT", "TITLE"), rows)
    if answer.get("hasMore"):
        click.echo("There are more: say `--limit N`.", err=True)
