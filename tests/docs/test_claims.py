"""What the documentation says in its own words, where the code could have changed since."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from tests.docs.examples import ROOT
from trunkline.agents import player, registry
from trunkline.base import jsontext, stdio
from trunkline.cli import agent as agent_cli
from trunkline.core import approvals, performer, recorder, turns
from trunkline.wires import ledger
from trunkline.wires.jsonstream import codec, drive
from trunkline.wires.jsonstream import stdio as jsonstream_stdio

pytestmark = pytest.mark.docs

MIB = 1024 * 1024

#: Document, words, and the fact in the code that they repeat.
QUOTED: list[tuple[str, str, Any, Any]] = [
    ("reference/jsonstream.md", "an agent reads is 16 MiB", codec.MAX_LINE, 16 * MIB),
    ("reference/jsonstream.md", "JSON may be nested 200 deep", jsontext.MAX_DEPTH, 200),
    ("reference/jsonstream.md", "makes the agent wait, from 1 MiB on", stdio.HIGH_WATER, MIB),
    ("reference/jsonstream.md", "beyond 4 MiB the agent reads no more", jsonstream_stdio.FLOODED_BYTES, 4 * MIB),
    ("reference/jsonstream.md", "may hold 100,000 members and items", codec.MAX_VALUES, 100_000),
    ("reference/jsonstream.md", "at most 1,024 characters", codec.MAX_MSG_ID, 1024),
    ("reference/jsonstream.md", "beyond 10,000, at once", turns.MAX_WAITING, 10_000),
    ("reference/jsonstream.md", "Beyond 1,000 waiting ones", turns.MAX_QUEUED, 1000),
    ("reference/jsonstream.md", "reason `Stopped by user`", turns.STOPPED, "Stopped by user"),
    ("reference/jsonstream.md", "`User denied`", turns.DENIED, "User denied"),
    ("reference/jsonstream.md", "get half a second to end", jsonstream_stdio.LAST_ANSWER_SECONDS, 0.5),
    ("reference/jsonstream.md", "`Read`, `Grep` and `Glob`", approvals.DEFAULT_ALLOW, ("Read", "Grep", "Glob")),
    ("reference/jsonstream.md", "at least every 10 s", player.PROGRESS_SECONDS, 10.0),
    ("how-to/write-an-agent.md", "after 0.7 s its task is cancelled", performer.CANCEL_SECONDS, 0.7),
    ("how-to/drive-an-agent.md", "after 30 s (`ready_seconds`)", drive.READY_SECONDS, 30.0),
    ("how-to/drive-an-agent.md", "killed after 0.6 s", drive.STOP_SECONDS, 0.6),
    ("how-to/drive-an-agent.md", "after 5 s of silence", drive.ERROR_QUIET_SECONDS, 5.0),
    ("how-to/drive-an-agent.md", "`AgentFailed` after 30 s", drive.SEND_SECONDS, 30.0),
    ("explanation/sessions-and-log.md", "an agent gets 0.7 s", performer.CANCEL_SECONDS, 0.7),
    ("explanation/sessions-and-log.md", "(256 KiB, and four times", recorder.CHECKPOINT_BYTES, 256 * 1024),
    ("explanation/sessions-and-log.md", "(256 KiB, and four times", recorder.CHECKPOINT_RATIO, 4),
]


def document(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "words", "fact", "told"), QUOTED, ids=[words for _, words, _, _ in QUOTED])
def test_a_limit_that_is_quoted_is_the_one_in_the_code(name: str, words: str, fact: Any, told: Any) -> None:
    assert words in " ".join(document(name).split())
    assert fact == told


def rows(text: str) -> list[list[str]]:
    """The rows of all tables of a document."""
    lines = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines]


def test_the_modes_are_told_as_they_are() -> None:
    told = {row[0].strip("`"): row[2:5] for row in rows(document("explanation/approvals.md")) if row[0].startswith("`")}
    assert told.keys() == approvals.MODES["yolo"]
    for category, cells in told.items():
        assert cells == ["allows" if category in approvals.MODES[mode] else "asks" for mode in approvals.MODES]


def test_the_readme_calls_a_wire_done_exactly_if_it_is_in_the_ledger() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    status = {row[0].strip("`"): row[-1] for row in rows(readme) if len(row) == 3 and row[0].startswith("`")}
    assert status.keys() == {"jsonstream", "agentproc", "sns", "tryll"}
    assert {wire for wire, words in status.items() if words.startswith("done")} == set(ledger.WIRES)
    assert {words for wire, words in status.items() if wire not in ledger.WIRES} == {"planned"}


def test_every_agent_there_is_is_named_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in registry.names() if f"`{name}`" not in readme] == []


def test_every_providers_variable_is_in_the_reference() -> None:
    text = document("reference/environment.md")
    variables = [variable for provider in agent_cli.PROVIDERS.values() for variable in provider.values()]
    assert len(variables) == 11
    assert [variable for variable in variables if f"`{variable}`" not in text] == []


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    wanted += [name for extra in project["project"]["optional-dependencies"].values() for name in extra]
    names = {re.split(r"[^\w.-]", wish)[0] for wish in wanted} - {"trunkline"}
    taken = document("explanation/dependencies.md").partition("## Not taken")[0]
    assert [name for name in sorted(names) if f"`{name}`" not in taken] == []
