"""Rules of one's own for one directory: kept outside of it, and counted like those of the configuration."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from tests.support.coding import calls, coding, of, says
from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.coder.kept_rules import KeptRules, kept_in
from trunkline.base.replacing import replace_private
from trunkline.core.faults import ConfigError
from trunkline.core.rules import NO_RULES, Rules


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "my-place"
    place.mkdir()
    return place


def test_rules_are_added_and_taken_back_in_a_file_of_ones_own(place: Path) -> None:
    kept = KeptRules(str(place))
    assert kept.read() is NO_RULES
    assert kept.add(" Bash(make test) ")
    assert not kept.add("Bash(make test)")
    assert kept.add("Read(secret/**)", "deny")
    file = Path(kept.file)
    assert place not in file.parents
    assert json.loads(file.read_text()) == {
        "workspace": str(place), "allow": ["Bash(make test)"], "ask": [], "deny": ["Read(secret/**)"],
    }  # fmt: skip
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    rules = kept_in(str(place))
    assert (rules.allow, rules.deny) == (("Bash(make test)",), ("Read(secret/**)",))
    assert rules.file_of("allow", "Bash(make test)") == kept.file
    assert not kept.remove("Bash(make test)", "deny")
    assert kept.remove("Bash(make test)")
    assert not kept.remove("Bash(make test)")
    assert os.listdir(file.parent) == [file.name]


def test_none_is_lost_when_two_are_added_at_the_same_time(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = "trunkline.agents.coder.kept_rules.replace_private"
    adding = threading.Thread(target=lambda: KeptRules(str(place)).add("Bash(two)", "deny"))

    def begin_another(path: str, data: bytes) -> None:
        monkeypatch.setattr(changed, replace_private)
        adding.start()
        # It cannot come to its end before this one does.
        adding.join(0.05)
        replace_private(path, data)

    monkeypatch.setattr(changed, begin_another)
    KeptRules(str(place)).add("Bash(one)", "deny")
    adding.join(PATIENCE_SECONDS)
    assert kept_in(str(place)).deny == ("Bash(one)", "Bash(two)")


def test_they_are_those_of_the_directory_by_whatever_name_it_is_called(place: Path, tmp_path: Path) -> None:
    KeptRules(str(place)).add("Bash(make test)")
    (tmp_path / "link").symlink_to(place)
    assert kept_in(str(tmp_path / "link")).allow == ("Bash(make test)",)
    assert kept_in(str(tmp_path)) == Rules()


@pytest.mark.parametrize("rule", ["Bash(ls", "", "WebFetch(x.org)"])
def test_what_is_no_rule_is_not_kept(place: Path, rule: str) -> None:
    with pytest.raises(ConfigError, match="says how rules are written"):
        KeptRules(str(place)).add(rule)


@pytest.mark.parametrize("text", ["{", "[]", '{"deny": "Bash"}', '{"deny": [1]}'])
def test_a_file_that_cannot_be_read_is_an_error_since_it_may_deny_something(place: Path, text: str) -> None:
    kept = KeptRules(str(place))
    kept.add("Bash", "deny")
    Path(kept.file).write_text(text)
    with pytest.raises(ConfigError, match="cannot be read"):
        kept_in(str(place))


def test_where_nobody_says_where_they_would_be_there_are_none(place: Path) -> None:
    assert kept_in(str(place), {"TRUNKLINE_HOME": str(place / "nowhere")}) is NO_RULES


@pytest.mark.process
def test_they_count_in_every_later_session_there_and_nowhere_else(place: Path, tmp_path: Path) -> None:
    KeptRules(str(place)).add("Bash(touch a)")
    KeptRules(str(place)).add("Bash(touch b)", "deny")
    wanted = calls(("Bash", {"command": "touch a"}), ("Bash", {"command": "touch b"}))
    with coding(place, wanted, says("Done.")) as agent:
        lines = agent.ask("Go.")
        assert not of(lines, "tool_request")
        assert "`Bash(touch b)` denies it" in agent.asked.results[1]
    assert sorted(os.listdir(place)) == ["a"]
    with coding(tmp_path, wanted, says("Done.")) as agent:
        assert len(of(agent.ask("Go."), "tool_request")) == 2
