from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import trunkline
from trunkline.agents.coder.agent import Coder
from trunkline.agents.coder.settings import CoderSettings, resolve
from trunkline.agents.coder.settings_sandbox import sandbox_for
from trunkline.base.redact import Redactor
from trunkline.core.faults import ConfigError
from trunkline.models.providers import ModelSettings
from trunkline.tools.sandbox import availability

SETTINGS = CoderSettings(ModelSettings("mock", "mock"), "")


@pytest.fixture
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "problem", lambda: "it needs another kernel")


@pytest.fixture
def a_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "problem", lambda: "")


@pytest.mark.usefixtures("a_sandbox")
@pytest.mark.parametrize(("asked", "found"), [(None, "off"), ("off", "off"), ("auto", "on"), ("on", "on")])
def test_where_there_is_one_it_is_as_asked(asked: str | None, found: str) -> None:
    agent = Coder(SETTINGS.replace(sandbox=asked))
    assert agent.settings.sandbox == found
    assert agent.capabilities.sandbox == (found == "on")
    assert agent.settings.warnings == ()


@pytest.mark.usefixtures("no_sandbox")
def test_where_there_is_none_auto_is_off_with_a_warning() -> None:
    agent = Coder(SETTINGS.replace(sandbox="auto"))
    assert agent.settings.sandbox == "off"
    assert agent.settings.warnings == (
        "There is no sandbox here, so commands run without one: it needs another kernel.",
    )


@pytest.mark.usefixtures("no_sandbox")
def test_where_there_is_none_on_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"There is no sandbox here: it needs another kernel\."):
        Coder(SETTINGS.replace(sandbox="on"))


def test_nobody_tries_who_does_not_want_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "problem", lambda: pytest.fail("it was tried"))
    assert Coder(SETTINGS).checked


@pytest.mark.usefixtures("a_sandbox")
def test_what_does_not_name_a_host_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"`https://pypi\.org` is not the name of a host"):
        Coder(SETTINGS.replace(sandbox="on", sandbox_hosts=("https://pypi.org",)))


@pytest.mark.usefixtures("a_sandbox")
def test_with_one_the_agent_is_ready_only_when_it_has_begun() -> None:
    assert not Coder(SETTINGS.replace(sandbox="on")).checked


def test_the_whole_file_system_is_no_workspace_for_it() -> None:
    with pytest.raises(ConfigError, match="the whole file system"):
        sandbox_for(SETTINGS.replace(sandbox="on"), "/", Redactor())


def resolved(tmp_path: Path, theirs: str, ours: str = "", **options: Any) -> CoderSettings:
    """What holds where the user's own file and one of a workspace that nobody trusts say this."""
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    (home / "config").mkdir(parents=True)
    workspace.mkdir()
    (home / "config/config.toml").write_text(ours)
    (workspace / "trunkline.toml").write_text(theirs)
    return resolve({"provider": "mock", **options}, str(workspace), {"TRUNKLINE_HOME": str(home)})


def test_a_workspace_may_ask_for_one(tmp_path: Path) -> None:
    assert resolved(tmp_path, '[sandbox]\nmode = "on"').sandbox == "on"


def test_a_workspace_cannot_turn_it_off_or_reach_more(tmp_path: Path) -> None:
    ours = '[sandbox]\nmode = "on"\nnetwork = ["a.example", "b.example"]'
    found = resolved(tmp_path, '[sandbox]\nmode = "off"\nnetwork = ["b.example", "evil.example"]', ours)
    assert (found.sandbox, found.sandbox_hosts) == ("on", ("b.example",))


def test_the_flag_comes_first(tmp_path: Path) -> None:
    assert resolved(tmp_path, "", '[sandbox]\nmode = "on"', sandbox="off").sandbox == "off"


def test_our_own_code_is_not_written_to_where_it_lies_in_the_workspace() -> None:
    """It is loaded bit by bit, outside of the sandbox."""
    package = Path(trunkline.__file__).parent
    sandbox = sandbox_for(SETTINGS.replace(sandbox="on"), str(package.parent.parent), Redactor())
    assert sandbox is not None
    assert str(package) in sandbox._ours
    assert sys.prefix in sandbox._ours
