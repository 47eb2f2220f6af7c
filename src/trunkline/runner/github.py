"""Issues on GitHub made of reports. Off unless there is a token.

An issue is noted before it is made, and again when it is there: a lost answer or a mark that failed never makes a
second one. What is not known is looked up, and what was not marked is marked, in a later cycle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from trunkline.base import http, jsontext
from trunkline.base.cutting import cut_between_words
from trunkline.base.values import Value
from trunkline.runner.config import Github
from trunkline.runner.finishing import on_disk
from trunkline.runner.holding import Check, unshared
from trunkline.runner.state import RunnerMemory
from trunkline.wires.sns.drive import Sns, SnsError

if TYPE_CHECKING:
    import httpx

#: GitHub's own answers are a few kilobytes; a page of issues may have long texts.
MAX_ANSWER = 4 * 1024 * 1024
#: What GitHub takes.
MAX_TITLE = 250
MAX_BODY = 60_000
#: Issues that are looked through for one whose answer was lost.
LOOKED_THROUGH = 50
#: Issues that are settled in one cycle: each is an exchange or two.
MAX_SETTLED = 5

DISABLED = {"ok": True, "skipped": True, "disabled": True, "reason": "GitHub issue token not provided."}
_NO_REPOSITORY = "Community GitHub repository is not configured."
_MADE_ALREADY = "It has already become an issue."
_UNKNOWN = "Whether the issue was made is not known. It is looked for, and not made again."

_BROKEN = 500


class PollReport(Value):
    """A report on the network, or a comment on one."""

    community: Mapping[str, Any]
    thread_id: str
    title: str
    body: str
    comment_id: str | None = None

    @property
    def subject(self) -> str:
        """What its issue is known by."""
        return f"thread:{self.thread_id}" if self.comment_id is None else f"comment:{self.comment_id}"


class _Failed(Exception):
    """GitHub said no, or nothing. `sent`: it may have done it all the same."""

    def __init__(self, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.sent = sent


class Issues:
    """Makes issues for one agent."""

    def __init__(
        self, settings: Github, sns: Sns, state: RunnerMemory, *, seconds: float, check: Check = unshared
    ) -> None:
        """`check` is awaited right before anything is made."""
        self._settings = settings
        self._sns = sns
        self._state = state
        self._seconds = seconds
        self._check = check
        self._client: httpx.AsyncClient | None = None

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def share(self, report: PollReport) -> dict[str, Any]:
        """Make an issue of a report, once, and mark the report; gives what became of it."""
        if self._settings.token is None:
            return dict(DISABLED)
        repository = repository_of(report.community.get("githubRepositoryUrl"))
        if repository is None:
            return {"ok": False, "error": _NO_REPOSITORY}
        if await on_disk(lambda: self._state.issue(report.subject)) is not None:
            return {"ok": False, "error": _MADE_ALREADY}
        known = {"repository": repository, "threadId": report.thread_id, "commentId": report.comment_id}
        await self._set(report.subject, "making", known)
        try:
            made = await self._ask("POST", f"/repos/{repository}/issues", _issue(report))
        except _Failed as error:
            if not error.sent:
                await on_disk(lambda: self._state.drop_issue(report.subject))
                return {"ok": False, "error": str(error)}
            return {"ok": False, "error": f"{error} {_UNKNOWN}"}
        return await self._made(report.subject, known, made)

    async def settle(self) -> list[dict[str, Any]]:
        """Find out about issues whose answer was lost, and mark those that are not marked; gives what is new."""
        if self._settings.token is None:
            return []
        news = []
        for subject, known in await self._so_far("making"):
            try:
                made = await self._find(known)
            except _Failed:
                continue
            if made is None:
                await self._set(subject, "lost", known)
                news.append({**_told(known), "ok": False, "error": "The issue was not made."})
            else:
                news.append(await self._made(subject, known, made))
        for subject, known in await self._so_far("made"):
            result = await self._mark(subject, known)
            if result["ok"]:
                news.append(result)
        return news

    async def _set(self, subject: str, state: str, known: dict[str, Any]) -> None:
        await on_disk(lambda: self._state.set_issue(subject, state, known))

    async def _so_far(self, state: str) -> list[tuple[str, dict[str, Any]]]:
        return (await on_disk(lambda: self._state.issues(state)))[:MAX_SETTLED]

    async def _made(self, subject: str, known: dict[str, Any], made: Any) -> dict[str, Any]:
        number, url = (made.get("number"), made.get("html_url")) if isinstance(made, Mapping) else (None, None)
        known = {**known, "issueNumber": number, "issueUrl": url}
        await self._set(subject, "made", known)
        return await self._mark(subject, known)

    async def _mark(self, subject: str, known: dict[str, Any]) -> dict[str, Any]:
        """Tell the network. To do it twice changes nothing."""
        try:
            if known.get("commentId") is None:
                await self._sns.mark_issued(thread_id=known["threadId"])
            else:
                await self._sns.mark_issued(comment_id=known["commentId"])
        except SnsError as error:
            return {**_told(known), "ok": False, "error": str(error)}
        await self._set(subject, "marked", known)
        return {**_told(known), "ok": True}

    async def _find(self, known: Mapping[str, Any]) -> Mapping[str, Any] | None:
        query = f"state=all&sort=created&direction=desc&per_page={LOOKED_THROUGH}"
        listed = await self._ask("GET", f"/repos/{known['repository']}/issues?{query}", None)
        mark = _mark_line(known["threadId"], known.get("commentId"))
        for issue in listed if isinstance(listed, list) else ():
            if isinstance(issue, Mapping) and mark in str(issue.get("body")):
                return issue
        return None

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        import httpx

        sent = False

        async def trace(event: str, info: dict[str, Any]) -> None:
            nonlocal sent
            if event.endswith("send_request_headers.started"):
                if body is not None:
                    await self._check()
                sent = True

        headers = {
            "accept": "application/vnd.github+json",
            "authorization": f"Bearer {self._settings.token}",
            "x-github-api-version": "2022-11-28",
            **({} if body is None else {"content-type": "application/json"}),
        }
        content = None if body is None else jsontext.dumps(body)
        try:
            async with asyncio.timeout(self._seconds):
                url = self._settings.api_url + path
                extensions = {"trace": trace}
                async with self._ready().stream(
                    method, url, headers=headers, content=content, extensions=extensions
                ) as response:
                    data = await _read(response)
                    status = response.status_code
        except TimeoutError:
            raise _Failed(f"GitHub gave no complete answer within {self._seconds:g} s.", sent=sent) from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise _Failed(f"GitHub cannot be asked: {str(error) or type(error).__name__}.", sent=sent) from None
        if not 200 <= status < 300:
            said = data.get("message") if isinstance(data, Mapping) else None
            raise _Failed(f"GitHub says {status}: {cut_between_words(str(said), 200)}.", sent=status >= _BROKEN)
        return data

    def _ready(self) -> httpx.AsyncClient:
        if self._client is None:
            secure = self._settings.api_url.startswith("https:")
            self._client = http.client(secure=secure, connect=self._seconds, read=self._seconds)
        return self._client


def repository_of(url: Any) -> str | None:
    """`OWNER/NAME` of a repository's address on GitHub; None if it is none."""
    try:
        parts = urlsplit(url.strip()) if isinstance(url, str) else None
    except ValueError:
        return None
    if parts is None or parts.hostname not in ("github.com", "www.github.com"):
        return None
    owner, name, *_ = [*filter(None, parts.path.split("/")), "", ""]
    name = name.removesuffix(".git")
    if not owner.strip(".") or not name.strip("."):
        return None
    return f"{quote(owner, safe='')}/{quote(name, safe='')}"


async def _read(response: httpx.Response) -> Any:
    data = await http.whole(response.aiter_bytes(), MAX_ANSWER)
    try:
        return jsontext.loads(data) if data.strip() else None
    except ValueError:
        return None


def _issue(report: PollReport) -> dict[str, Any]:
    kind = "Report" if report.comment_id is None else "Report Comment"
    source = [
        f"- Community: {report.community.get('name') or report.community.get('slug')}",
        f"- {_mark_line(report.thread_id, report.comment_id)}",
    ]
    body = "\n".join(["## Source", "", *source, "", f"## {kind} Body", "", report.body])
    return {"title": f"[{kind}] {report.title}"[:MAX_TITLE], "body": body[:MAX_BODY]}


def _mark_line(thread_id: str, comment_id: Any) -> str:
    """What an issue of ours is recognised by."""
    return f"Thread ID: {thread_id}" if comment_id is None else f"Comment ID: {comment_id} (thread {thread_id})"


def _told(known: Mapping[str, Any]) -> dict[str, Any]:
    names = ("threadId", "commentId", "issueNumber", "issueUrl")
    told = {name: known[name] for name in names if known.get(name) is not None}
    return {**told, "repositoryUrl": f"https://github.com/{known['repository']}"}
