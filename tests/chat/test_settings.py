"""What the bridge is told by files."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from trunkline.base.config import user_file
from trunkline.chat import settings
from trunkline.core.faults import ConfigError


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path


def own(text: str) -> None:
    path = Path(user_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_without_files_the_coder_answers_and_nobody_is_let_in(workspace: Path) -> None:
    found = settings.load(str(workspace))
    assert (found.agent, dict(found.agents), found.allow, found.mode) == ("coder", {"coder": "coder"}, (), "default")
    assert found.workspace == os.path.realpath(workspace)


def test_the_users_file_says_everything(workspace: Path) -> None:
    own(
        f"""
        [bridge]
        agent = "claude"
        allow = ["telegram:12345", "matrix:@me:example.org"]
        approvers = ["telegram:12345"]
        workspace = "{workspace}"
        mode = "auto_edit"
        verbosity = "quiet"
        rate = 5
        approval_minutes = 0.5
        [bridge.agents]
        claude = "agentproc:claude-code"
        echo = "echo"
        [bridge.telegram]
        token = "123:secret-token"
        """
    )
    found = settings.load()
    assert (found.agent, found.rate, found.approval_seconds, found.mode) == ("claude", 5, 30.0, "auto_edit")
    assert found.allow == ("telegram:12345", "matrix:@me:example.org")
    assert found.workspace == str(workspace)
    assert found.secrets == ("123:secret-token",)
    assert "secret-token" not in repr(found)


def test_the_first_agent_answers_if_none_is_chosen(workspace: Path) -> None:
    own('[bridge.agents]\nclaude = "agentproc:claude-code"\necho = "echo"\n')
    assert settings.load(str(workspace)).agent == "claude"


def test_a_workspace_may_only_narrow(workspace: Path) -> None:
    own('[bridge]\nagent = "a"\nallow = ["telegram:1"]\nqueue = 5\n[bridge.agents]\na = "echo"\nb = "echo"\n')
    (workspace / "trunkline.toml").write_text(
        '[bridge]\nagent = "b"\nallow = ["*"]\nmode = "yolo"\nqueue = 50\nrate = 3\nverbosity = "quiet"\n'
        'approval_minutes = 2\nidle_minutes = 600\n[bridge.agents]\nb = "jsonstream:evil"\n'
    )
    found = settings.load(str(workspace))
    assert (found.agent, found.agents["b"], found.allow, found.mode) == ("a", "echo", ("telegram:1",), "default")
    assert (found.queue, found.rate, found.verbosity, found.approval_seconds) == (5, 3, "quiet", 120)
    assert found.idle_seconds == 1800
    refused = found.warnings[0].partition("not followed: ")[2].partition(". ")[0]
    assert {*refused.split(", ")} == {
        f"`bridge.{key}`" for key in ("agent", "allow", "agents.b", "mode", "queue", "idle_minutes")
    }


def test_what_holds_without_files_is_what_the_schema_says(workspace: Path) -> None:
    found, plain = settings.load(str(workspace)), settings.BridgeSettings()
    assert found == plain.replace(workspace=found.workspace)


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ('[bridge.telegram]\ntokn = "x"', "unknown key `bridge.telegram.tokn`. Did you mean `token`?"),
        ('[bridge.matrix]\ntokn = "x"', "unknown key `bridge.matrix.tokn`. Did you mean `token`?"),
        ("[bridge.terminal]\nx = 1", "unknown key `bridge.terminal.x`."),
    ],
)
def test_an_unknown_key_of_a_platform_is_warned_about(workspace: Path, text: str, warned: str) -> None:
    own(text)
    (warning,) = settings.load(str(workspace)).warnings
    assert warning.endswith(warned)


def test_variables_beat_the_files_and_flags_beat_variables(workspace: Path) -> None:
    own('[bridge]\nrate = 5\nmode = "yolo"\nagent = "coder"\n')
    (workspace / "trunkline.toml").write_text("[bridge]\nrate = 1\n")
    environ = {
        **os.environ,
        "TRUNKLINE_BRIDGE_RATE": "7",
        "TRUNKLINE_BRIDGE_MODE": "default",
        "TRUNKLINE_BRIDGE_AGENT": "echo",
        "TRUNKLINE_BRIDGE_ALLOW": "telegram:1, matrix:@me:example.org",
    }
    found = settings.load(str(workspace), environ=environ)
    # What the user says here and now is not narrowed either.
    assert (found.rate, found.mode, found.agent, found.insist) == (7, "default", "echo", False)
    assert found.allow == ("telegram:1", "matrix:@me:example.org")
    assert settings.load(str(workspace), "coder", environ).agent == "coder"
    with pytest.raises(ConfigError, match=r"TRUNKLINE_BRIDGE_RATE: must be a whole number from 1 on, not `many`"):
        settings.load(str(workspace), environ={**environ, "TRUNKLINE_BRIDGE_RATE": "many"})


def test_of_two_files_one_says_all_about_an_account(workspace: Path) -> None:
    own(f'trust = ["{workspace}"]\n[bridge.telegram]\ntoken = "mine"\n')
    (workspace / "trunkline.toml").write_text('[bridge.telegram]\napi_url = "https://other.example"\n')
    assert settings.load(str(workspace)).platforms == {"telegram": {"api_url": "https://other.example"}}


def test_a_trusted_workspace_may_say_more(workspace: Path) -> None:
    own(f'trust = ["{workspace}"]\n')
    (workspace / "trunkline.toml").write_text('[bridge]\nallow = ["telegram:7"]\n')
    assert settings.load(str(workspace)).allow == ("telegram:7",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[bridge]\nallow = ["telegram:1", "12345"]',
            "line 2: `bridge.allow` holds `12345`, which is not a sender: write",
        ),
        ("[bridge]\nallow = [12345]", "`bridge.allow` must be a list of senders"),
        ('[bridge]\nallow = "telegram:1"', "must be a list of senders"),
        (
            '[bridge]\nallow = ["telegram:@me"]',
            "line 2: `bridge.allow` holds `telegram:@me`, which is not a valid sender: Telegram's",
        ),
        (
            '[bridge]\napprovers = ["matrix:me"]',
            "`bridge.approvers` holds `matrix:me`, which is not a valid sender: Matrix ids look",
        ),
        ('[bridge]\nallow = ["matrix:@me"]', "as in `matrix:@me:example.org`"),
        ('[bridge]\nallow = ["terminal:me"]', "at the terminal there is only `terminal:you`"),
        ("[bridge]\nrate = 0", "`bridge.rate` must be a whole number from 1 on"),
        ("[bridge]\napproval_minutes = 0", "must be a number of minutes above 0"),
        ('[bridge]\nagent = "ech"', "Did you mean `echo`?"),
        ('[bridge]\nworkspace = "/nowhere/at/all"', "is not a directory"),
        ("[bridge.matrix]\nuser = 3", "line 2: `bridge.matrix.user` must be a string"),
        ("[bridge", "is not TOML"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, said: str) -> None:
    own(text)
    with pytest.raises(ConfigError, match=re.escape(said)):
        settings.load()


def test_an_unknown_key_is_warned_about_and_other_sections_are_left_alone(workspace: Path) -> None:
    own('[bridge]\nalow = ["telegram:1"]\n[default]\nmodel = "x"\n')
    found = settings.load(str(workspace))
    assert len(found.warnings) == 1
    assert "Did you mean `allow`?" in found.warnings[0]


def test_a_flag_may_name_any_agent_and_only_what_is_named_can_be_chosen(workspace: Path) -> None:
    chosen = settings.load(str(workspace), "jsonstream:some-agent")
    assert (chosen.agent, chosen.insist) == ("jsonstream:some-agent", True)
    assert dict(chosen.agents) == {"jsonstream:some-agent": "jsonstream:some-agent"}
    own('[bridge.agents]\na = "echo"\n')
    assert dict(settings.load(str(workspace), "coder").agents) == {"coder": "coder", "a": "echo"}
    assert dict(settings.load(str(workspace), "a").agents) == {"a": "echo"}
    with pytest.raises(ConfigError, match="no agent `nobody`"):
        settings.load(str(workspace), "nobody")


def test_a_profile_is_relative_to_the_file_that_names_it(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(workspace))
    own(
        """
        [bridge]
        agent = "scripted:talk.yaml"
        [bridge.agents]
        mine = "agentproc:my-agent.yaml"
        deep = "agentproc:../deep/x"
        home = "agentproc:~/x.yaml"
        bundled = "agentproc:claude-code"
        program = "jsonstream:./agent.yaml"
        """
    )
    beside = Path(user_file()).parent
    assert dict(settings.load(str(workspace)).agents) == {
        "scripted:talk.yaml": f"scripted:{beside}/talk.yaml",
        "mine": f"agentproc:{beside}/my-agent.yaml",
        "deep": f"agentproc:{beside.parent}/deep/x",
        "home": f"agentproc:{workspace}/x.yaml",
        "bundled": "agentproc:claude-code",
        "program": "jsonstream:./agent.yaml",
    }
    # What a flag names lies where the flag was typed.
    monkeypatch.chdir(workspace)
    (workspace / "plain").touch()
    for name, path in (("other.yaml", "other.yaml"), ("./other.yaml", "other.yaml"), ("plain", "plain")):
        chosen = settings.load(str(workspace), f"agentproc:{name}")
        assert chosen.agents[f"agentproc:{name}"] == f"agentproc:{workspace / path}"
    assert settings.load(str(workspace), "agentproc:codex").agents["agentproc:codex"] == "agentproc:codex"


@pytest.mark.parametrize("name", ["agentproc:claude-code", "scripted:tour", "jsonstream:some-agent", "module:Agent"])
def test_no_file_of_the_current_directory_takes_the_place_of_what_a_flag_names(
    name: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    (workspace / name.partition(":")[2]).touch()
    assert settings.load(str(workspace), name).agents[name] == name


def test_a_workspace_that_nobody_trusts_cannot_choose_a_program(workspace: Path) -> None:
    (workspace / "trunkline.toml").write_text('[bridge]\nagent = "jsonstream:evil"\n')
    found = settings.load(str(workspace))
    assert dict(found.agents) == {"coder": "coder"}
    assert "not followed: `bridge.agent`" in found.warnings[0]


@pytest.mark.parametrize("trusted", [False, True])
def test_a_link_out_of_a_workspace_is_read_only_where_that_is_trusted(workspace: Path, trusted: bool) -> None:
    inside = workspace / "inside"
    inside.mkdir()
    (workspace / "elsewhere.toml").write_text("[bridge]\nrate = 3\n")
    (inside / "trunkline.toml").symlink_to(workspace / "elsewhere.toml")
    if trusted:
        own(f'trust = ["{inside}"]\n')
    assert settings.load(str(inside)).rate == (3 if trusted else settings.BridgeSettings().rate)
    # One that stays in it is as good as a file.
    (inside / "trunkline.toml").unlink()
    (inside / "own.toml").write_text("[bridge]\nrate = 4\n")
    (inside / "trunkline.toml").symlink_to("own.toml")
    assert settings.load(str(inside)).rate == 4


@pytest.mark.parametrize("named", ['[bridge.agents]\nsafe = "echo"\n', '[bridge]\nagent = "echo"\n'])
def test_a_workspace_that_nobody_trusts_cannot_add_an_agent(workspace: Path, named: str) -> None:
    own(named)
    (workspace / "trunkline.toml").write_text('[bridge]\nagent = "coder"\n')
    found = settings.load(str(workspace))
    assert "coder" not in found.agents
    assert "not followed: `bridge.agent`" in found.warnings[0]


def test_a_sender_without_a_platform_is_refused() -> None:
    assert settings.check_senders(["telegram:1", "*"]) == ("telegram:1", "*")
    with pytest.raises(ConfigError, match="Telegram's ids are numbers"):
        settings.check_senders(["telegram:@me"])
    with pytest.raises(ConfigError, match="is not a sender"):
        settings.check_senders(["12345"])
