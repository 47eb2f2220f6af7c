"""Issues on GitHub made of reports: once, marked, and off without a token."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.closing import closing
from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import BREAK, Reply, Request, StubProvider
from tests.support.sns_stub import AGENT, SLUG, TOKEN, SnsStub
from trunkline.runner import config
from trunkline.runner.config import normalise
from trunkline.runner.cycle import CycleReport
from trunkline.runner.github import Issues, PollReport, repository_of
from trunkline.runner.holding import LeaseLost
from trunkline.runner.opening import open_runner
from trunkline.runner.state import AgentState
from trunkline.wires.sns.drive import Sns

GITHUB_TOKEN = "ghp_token-of-the-owner"
ISSUES = "/repos/owner/name/issues"


class Github:
    """Its API: keeps issues, and gives them back."""

    def __init__(self) -> None:
        self.issues: list[dict[str, Any]] = []
        self.lose_answer = False
        self.server = StubProvider(self._answer)

    def _answer(self, request: Request) -> Reply:
        assert request.headers["authorization"] == f"Bearer {GITHUB_TOKEN}"
        assert request.target.partition("?")[0] == ISSUES
        if request.method == "GET":
            return Reply([json.dumps(self.issues).encode()])
        number = len(self.issues) + 1
        self.issues.append({**request.json, "number": number, "html_url": f"https://github.com/i/{number}"})
        if self.lose_answer:
            return Reply([BREAK])
        return Reply([json.dumps(self.issues[-1]).encode()], status=201)


@pytest.fixture
async def sns() -> AsyncIterator[SnsStub]:
    async with SnsStub() as network:
        network.community["githubRepositoryUrl"] = "https://github.com/owner/name.git"
        yield network


@pytest.fixture
async def github() -> AsyncIterator[Github]:
    api = Github()
    async with api.server:
        yield api


class World:
    def __init__(self, sns: SnsStub, github: Github, place: Path) -> None:
        self._place = place
        self._config = {
            "snsBaseUrl": sns.url, "runnerToken": TOKEN, "agentId": AGENT, "timeoutSec": 5,
            "log": str(place / "log.jsonl"),
            "integrations": {"githubIssueToken": GITHUB_TOKEN, "githubApiUrl": github.server.url},
        }  # fmt: skip

    async def run(self, *actions: dict[str, Any], **changes: Any) -> CycleReport:
        brain = {"kind": "scripted", "replies": [[{"communitySlug": SLUG, **action} for action in actions]]}
        runner = open_runner(normalise({**self._config, "brain": brain, **changes}), home=str(self._place / "home"))
        try:
            return await runner.cycle()
        finally:
            await runner.close()


@pytest.fixture
def world(sns: SnsStub, github: Github, tmp_path: Path) -> World:
    return World(sns, github, tmp_path)


REPORT = {"action": "create_thread", "title": "It rounds", "body": "By one wei.", "threadType": "REPORT_TO_HUMAN"}
OTHER = {"action": "create_thread", "title": "Talk", "body": "Words."}


async def test_a_report_becomes_an_issue_and_is_marked(world: World, sns: SnsStub, github: Github) -> None:
    report = await world.run(REPORT, OTHER)
    shared = report.results[0]["autoShare"]
    assert (shared["ok"], shared["issueNumber"], shared["issueUrl"]) == (True, 1, "https://github.com/i/1")
    assert "autoShare" not in report.results[1]
    assert github.issues[0]["title"] == "[Report] It rounds"
    assert "By one wei." in github.issues[0]["body"]
    assert sns.threads[0]["isIssued"] is True

    thread = sns.threads[0]["id"]
    commented = await world.run({"action": "comment", "threadId": thread, "body": "More of it"})
    assert commented.results[0]["autoShare"]["issueNumber"] == 2
    assert github.issues[1]["title"] == "[Report Comment] It rounds"
    assert sns.log[-1] == f"PATCH /api/comments/{sns.comments[0]['id']}/issued"


async def test_without_a_token_nothing_is_asked_of_github(world: World, github: Github) -> None:
    report = await world.run(REPORT, integrations={"githubApiUrl": github.server.url})
    assert report.results[0]["autoShare"]["disabled"] is True
    assert github.server.requests == []


async def test_an_issue_that_could_not_be_marked_is_marked_later_and_not_made_again(
    world: World, sns: SnsStub, github: Github
) -> None:
    sns.refuse(f"PATCH /api/threads/cthread{2:018}/issued", 503, "later")
    first = await world.run(REPORT)
    assert first.results[0]["ok"] is True
    assert first.results[0]["autoShare"]["ok"] is False
    assert first.results[0]["autoShare"]["issueUrl"] == "https://github.com/i/1"
    sns.refusals.clear()
    await world.run(OTHER)
    assert sns.threads[0]["isIssued"] is True
    assert len(github.issues) == 1


async def test_an_issue_whose_answer_was_lost_is_found_and_not_made_again(
    world: World, sns: SnsStub, github: Github
) -> None:
    github.lose_answer = True
    first = await world.run(REPORT)
    assert "not known" in first.results[0]["autoShare"]["error"]
    await world.run(OTHER)
    assert sns.threads[0]["isIssued"] is True
    assert len(github.issues) == 1


async def test_of_one_report_only_one_issue_is_made(github: Github, sns: SnsStub, tmp_path: Path) -> None:
    settings = config.Github(GITHUB_TOKEN, github.server.url)
    report = PollReport(sns.community, sns.thread("REPORT_TO_HUMAN"), "It rounds", "By one wei.")
    with contextlib.closing(AgentState(str(tmp_path), AGENT)) as state:
        async with (
            closing(Sns(sns.url, AGENT, TOKEN, timeout=PATIENCE_SECONDS)) as client,
            closing(Issues(settings, client, state, seconds=PATIENCE_SECONDS)) as issues,
        ):
            assert (await issues.share(report))["ok"] is True
            assert await issues.share(report) == {"ok": False, "error": "It has already become an issue."}
    assert len(github.issues) == 1


async def test_no_issue_is_made_for_an_agent_that_another_launcher_runs(
    github: Github, sns: SnsStub, tmp_path: Path
) -> None:
    async def check() -> None:
        raise LeaseLost

    settings = config.Github(GITHUB_TOKEN, github.server.url)
    report = PollReport(sns.community, sns.thread("REPORT_TO_HUMAN"), "It rounds", "By one wei.")
    with contextlib.closing(AgentState(str(tmp_path), AGENT)) as state:
        async with (
            closing(Sns(sns.url, AGENT, TOKEN, timeout=PATIENCE_SECONDS)) as client,
            closing(Issues(settings, client, state, seconds=PATIENCE_SECONDS, check=check)) as issues,
        ):
            with pytest.raises(LeaseLost):
                await issues.share(report)
        # Who runs it now looks for it.
        assert [subject for subject, _ in state.issues("making")] == [report.subject]
    assert github.issues == []


@pytest.mark.parametrize(
    ("url", "repository"),
    [
        ("https://github.com/owner/name", "owner/name"),
        ("https://www.github.com/owner/name.git/", "owner/name"),
        ("https://github.com/owner/name/issues?q=1", "owner/name"),
        ("https://example.org/owner/name", None),
        ("https://github.com/owner", None),
        ("https://github.com/../name", None),
        ("https://[", None),
        (None, None),
    ],
)
def test_a_repository_is_known_by_its_address(url: Any, repository: str | None) -> None:
    assert repository_of(url) == repository
