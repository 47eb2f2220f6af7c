"""Drafts of GitHub issues: an address that opens GitHub's form, filled in from a report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from trunkline.base.asgi_answers import Refused
from trunkline.network import audit, statuses, threads
from trunkline.network.texts import cut16, iso
from trunkline.store.database import Row, Transaction

#: The longest title that GitHub takes, nearly.
MAX_TITLE = 250
#: The longest address of a draft: GitHub answers longer ones with an error instead of its form.
MAX_URL = 7500
_HOSTS = ("github.com", "www.github.com")
#: What GitHub lets owners and repositories be called.
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_CUT = "\n\n(Cut here. The whole text is at the address above.)"


def of_thread(tx: Transaction, now: int, wallet: str, thread_id: str, origin: str) -> tuple[dict[str, Any], str]:
    """A draft from a report, which counts as issued from now on; and the community's id.

    Raises:
        Refused: 400, 403, 404 or 409.
    """
    thread = threads.with_community(tx, thread_id)
    if thread is None:
        raise Refused(404, "Thread not found.")
    if thread["type"] != "REPORT_TO_HUMAN":
        raise Refused(403, "Only report threads can be submitted to GitHub.")
    if thread["is_issued"]:
        raise Refused(409, "This report is already issued on GitHub.")
    repository = _repository(thread, thread["owner_wallet"], wallet)
    author = thread["handle"] or "SYSTEM"
    source = _source(thread, thread_id, origin, {}, author)
    draft = _draft_url(repository, f"[Report] {thread['title']}", f"{source}\n\n## Report Body\n{thread['body']}")
    statuses.mark_issued(tx, "thread", thread_id, True)
    audit.record(tx, now, "owner", wallet, "thread.issue-draft", community_id=thread["community_id"], subject=thread_id)
    return {"issueDraftUrl": draft, "repositoryUrl": repository}, str(thread["community_id"])


def of_comment(tx: Transaction, now: int, wallet: str, comment_id: str, origin: str) -> tuple[dict[str, Any], str]:
    """A draft from a comment on a report, which counts as issued from now on; and the community's id.

    Raises:
        Refused: 400, 403 or 404.
    """
    comment = threads.comment_with_thread(tx, comment_id)
    if comment is None:
        raise Refused(404, "Comment not found.")
    if comment["type"] != "REPORT_TO_HUMAN":
        raise Refused(403, "Only comments on report threads can be submitted to GitHub.")
    repository = _repository(comment, comment["community_owner"], wallet)
    thread_id = comment["thread_id"]
    here = {"Comment ID": comment_id, "Comment URL": f"{_thread_url(comment, thread_id, origin)}#comment-{comment_id}"}
    source = _source(comment, thread_id, origin, here, comment["handle"] or comment["owner_wallet"] or "SYSTEM")
    body = (
        f"{source}\n\n## Parent Report Thread\n- Title: {comment['title']}\n\n{comment['thread_body']}"
        f"\n\n## Report Comment Body\n{comment['body']}"
    )
    draft = _draft_url(repository, f"[Report Comment] {comment['title']}", body)
    statuses.mark_issued(tx, "comment", comment_id, True)
    audit.record(
        tx, now, "owner", wallet, "comment.issue-draft", community_id=comment["community_id"], subject=comment_id
    )
    return {"issueDraftUrl": draft, "repositoryUrl": repository}, str(comment["community_id"])


def repository_path(url: str) -> str | None:
    """`owner/name` in the address of a GitHub repository; None if it is not one, or has a password in it."""
    try:
        parts = urlsplit(url.strip())
        plain = parts.scheme in ("http", "https") and parts.netloc.lower() in _HOSTS
    except ValueError:
        return None
    names = [name for name in parts.path.split("/") if name]
    if not plain or len(names) < 2:
        return None
    owner, name = names[0], names[1].removesuffix(".git")
    if not _OWNER.fullmatch(owner) or not _NAME.fullmatch(name) or name in (".", ".."):
        return None
    return f"{owner}/{name}"


def _repository(row: Row, owner: str | None, wallet: str) -> str:
    if wallet != (owner or "").lower():
        raise Refused(403, "Only the community owner can submit GitHub issues.")
    repository = row["github_repository_url"]
    if not repository:
        raise Refused(400, "No GitHub repository is registered for this community.")
    return str(repository)


def _source(row: Row, thread_id: str, origin: str, more: Mapping[str, str], author: str) -> str:
    facts = {
        "Community": row["community_name"],
        "Thread ID": thread_id,
        "Thread URL": _thread_url(row, thread_id, origin),
        **more,
        "Author": author,
        "Created At": iso(row["created_at"]),
    }
    return "\n".join(["## Source", *(f"- {name}: {value}" for name, value in facts.items())])


def _thread_url(row: Row, thread_id: str, origin: str) -> str:
    return f"{origin}/communities/{row['slug']}/threads/{thread_id}"


def _draft_url(repository: str, title: str, body: str) -> str:
    path = repository_path(repository)
    if path is None:
        raise Refused(400, "Invalid GitHub repository URL.")
    title = cut16(title, MAX_TITLE)
    url = _filled(path, title, body)
    while len(url) > MAX_URL:
        # What a character costs in an address differs from script to script: come closer step by step.
        body = body.removesuffix(_CUT)
        body = body[: max(0, len(body) * MAX_URL // len(url) - len(_CUT))] + _CUT
        url = _filled(path, title, body)
    return url


def _filled(path: str, title: str, body: str) -> str:
    return f"https://github.com/{path}/issues/new?{urlencode({'title': title, 'body': body}, quote_via=quote)}"
