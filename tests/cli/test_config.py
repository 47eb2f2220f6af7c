"""`trunkline config`: what holds, who says so, and what is wrong."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from trunkline.base.config import user_file
from trunkline.base.config_services import SECTIONS, Setting
from trunkline.cli.config import command

SECRETS = (
    "sk-very-secret-1",
    "abcdefgh-secret",
    "gh-secret-value",
    "123:bot-secret",
    "hush-hush-hush",
    "0123456789abcdefghij",
)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    Path(user_file()).parent.mkdir(parents=True)
    place = tmp_path / "workspace"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def own(text: str) -> Path:
    path = Path(user_file())
    path.write_text(text)
    return path


def config(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(command, arguments, env=environ)


def settings(**environ: str) -> dict[str, tuple[Any, Mapping[str, Any]]]:
    result = config("show", "--json", **environ)
    assert result.exit_code == 0, result.output
    return {each["key"]: (each["value"], each["origin"]) for each in json.loads(result.stdout)["settings"]}


# show


def test_every_part_is_shown_with_what_holds_by_default(workspace: Path) -> None:
    found = settings()
    for service, schema in SECTIONS.items():
        for key, setting in schema.items():
            if isinstance(setting, Setting):
                value, origin = found[f"{service}.{key}"]
                assert (value or None, origin) == (setting.default or None, {"kind": "default"})
    assert found["default.mode"] == ("default", {"kind": "default"})
    assert found["tools.allow_list"][0] == ["Read", "Grep", "Glob"]


def test_a_value_tells_the_variable_or_the_place_that_it_comes_from(workspace: Path) -> None:
    file = own('[default]\n  model = "m"\neffort = "low"\n[network]\nlisten = "127.0.0.1:1"\nrate_limit = 9\n')
    found = settings(TRUNKLINE_EFFORT="high", SNS_APP_ORIGIN="https://Net.Example/", TRUNKLINE_TRYLL_ALLOW="Read, Grep")
    in_file = {"kind": "file", "name": str(file)}
    assert found["default.model"] == ("m", {**in_file, "line": 2, "column": 3})
    assert found["network.listen"] == ("127.0.0.1:1", {**in_file, "line": 5, "column": 1})
    assert found["default.effort"] == ("high", {"kind": "variable", "name": "TRUNKLINE_EFFORT"})
    assert found["network.app_origin"] == ("https://net.example", {"kind": "variable", "name": "SNS_APP_ORIGIN"})
    assert found["tryll.allow"] == (["Read", "Grep"], {"kind": "variable", "name": "TRUNKLINE_TRYLL_ALLOW"})


def test_what_a_strange_workspace_narrows_is_shown_as_it_is_then(workspace: Path) -> None:
    own('[default]\nmode = "yolo"\n[network]\npublic = false\n')
    (workspace / "trunkline.toml").write_text(
        '[default]\nmode = "auto_edit"\n[network]\npublic = true\nrate_limit = 7\nadmin_key = "theirs"\n'
    )
    found = settings()
    assert found["default.mode"][0] == "auto_edit"
    assert found["default.mode"][1]["name"].endswith("trunkline.toml")
    assert (found["network.public"][0], found["network.rate_limit"][0], found["network.admin_key"][0]) == (
        False,
        7,
        None,
    )
    assert "not followed: `network.admin_key`, `network.public`" in config("show").stderr


def test_the_bridge_is_shown_as_it_is_in_its_own_workspace(workspace: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    own(f'[bridge]\nworkspace = "{elsewhere}"\n')
    (workspace / "trunkline.toml").write_text("[bridge]\nrate = 1\nqueue = 1\n")
    (elsewhere / "trunkline.toml").write_text("[bridge]\nrate = 2\n")
    found = settings()
    assert (found["bridge.rate"][0], found["bridge.queue"][0]) == (2, 10)


def test_the_text_is_toml_and_says_where_each_value_comes_from(workspace: Path) -> None:
    file = own('trust = ["/nowhere"]\n[providers."my own"]\nprovider = "openai"\nmodel = "a \\"b\\""\n')
    plain, told = config("show"), config("show", "--origin")
    assert tomllib.loads(plain.stdout)["providers"]["my own"] == {"provider": "openai", "model": 'a "b"'}
    assert tomllib.loads(plain.stdout) == tomllib.loads(told.stdout)
    assert f'model = "a \\"b\\""  # {file}:4:1' in told.stdout.splitlines()
    assert 'listen = "127.0.0.1:9100"  # default' in told.stdout.splitlines()
    assert "127.0.0.1:9100  #" not in plain.stdout


def test_no_secret_is_shown(workspace: Path) -> None:
    own(
        f"""
        [providers.openai]
        api_key = "{SECRETS[0]}"
        [providers.other]
        api_key = "${{OTHER}}"
        base_url = "https://me:{SECRETS[1]}@gateway.example"
        [mcp.servers.git]
        command = "git-server"
        args = ["--token", "{SECRETS[1]}"]
        env = {{ GH_TOKEN = "{SECRETS[2]}" }}
        [bridge.telegram]
        token = "{SECRETS[3]}"
        [runner.agents.ada]
        runnerToken = "{SECRETS[0]}"
        encodedInput = "{SECRETS[5]}"
        execution = {{ rpcUrl = "https://node.example/v2/{SECRETS[5]}", privateKey = "{SECRETS[2]}" }}
        """
    )
    environ = {"ADMIN_API_KEY": SECRETS[4], "TRUNKLINE_TRYLL_TOKEN": "short", "OTHER": SECRETS[4]}
    for arguments in (["show"], ["show", "--origin"], ["show", "--json"]):
        result = config(*arguments, **environ)
        assert result.exit_code == 0, result.output
        assert not any(secret in result.output for secret in (*SECRETS, '"short"'))
        assert "${OTHER}" in result.output


def test_what_the_coding_agent_would_use_is_told_or_what_keeps_it_from_starting(workspace: Path) -> None:
    used = json.loads(config("show", "--json", ANTHROPIC_API_KEY="sk-ant-0123456789").stdout)["in_use"]
    assert (used["provider"], used["key"], "ANTHROPIC_API_KEY" in used["why"]) == ("anthropic", None, True)
    own('[default]\nprovider = "opnai"\n')
    assert "There is no provider `opnai`. Did you mean `openai`?" in config("show").stdout


def test_what_cannot_be_used_is_an_error_with_its_place(workspace: Path) -> None:
    file = own("[tryll]\nlisten = 3\n")
    result = config("show")
    assert (result.exit_code, f"Error: `{file}`, line 2: `tryll.listen` must be an address" in result.stderr) == (
        1,
        True,
    )


# check


def test_mistakes_are_told_with_their_places_and_what_was_meant(workspace: Path) -> None:
    file = workspace / "some.toml"
    file.write_text(
        '[defualt]\n[network]\n  publik = true\nhosts = ["net.example:1"]\n[bridge]\nallow = ["me"]\n[runner.x]\n'
    )
    result = config("check", str(file))
    assert result.exit_code == 1
    lines = [line.removeprefix(f"{file}:") for line in result.stdout.splitlines()]
    assert lines[:3] == [
        "1:2: unknown key `defualt`. Did you mean `default`?",
        "3:3: unknown key `network.publik`. Did you mean `network.public`?",
        "4:1: `network.hosts` must be a list of names of hosts, such as net.example, without a port.",
    ]
    assert lines[3].startswith("6:1: `bridge.allow` holds `me`, which is not a sender")
    assert lines[4:] == ["7:2: unknown key `runner.x`."]


def test_rules_and_hooks_that_cannot_be_used_are_told(workspace: Path) -> None:
    file = workspace / "trunkline.toml"
    hook = '[[hooks.pre_tool_use]]\nmatcher = "("\ncommand = "true"\n'
    file.write_text(f'[permissions]\nallow = ["Bash(git status", "Read"]\n{hook}')
    result = config("check", str(file))
    assert result.exit_code == 1
    assert (
        f"{file}:2:1: `permissions.allow` has the rule `Bash(git status`, which cannot be read: it is" in result.stdout
    )
    assert (
        "`hooks.pre_tool_use` has a hook with a mistake: Its `matcher` is not a valid regular expression"
        in result.stdout
    )
    file.write_text('[permissions]\nallow = ["Bash(git status:*)", "mcp__hub"]\n[[hooks.stop]]\ncommand = "true"\n')
    assert config("check", str(file)).exit_code == 0
    file.write_text('[permissions]\ndeny = ["Bsh(rm:*)"]\n')
    result = config("check", str(file))
    assert (result.exit_code, result.stdout) == (
        1,
        f"{file}:2:1: `permissions.deny` has the rule `Bsh(rm:*)`, which names no known tool. Did you mean `Bash`?\n",
    )


def test_what_is_no_toml_is_told_with_its_place(workspace: Path) -> None:
    file = workspace / "broken.toml"
    file.write_text('[default]\nmodel = "m" x\n')
    result = config("check", str(file))
    assert (result.exit_code, result.stdout.startswith(f"{file}:2:13: is not TOML: ")) == (1, True), result.stdout
    missing = config("check", "nowhere.toml")
    assert (missing.exit_code, missing.stdout) == (1, "nowhere.toml: does not exist.\n")


def test_without_a_file_all_files_and_variables_that_count_are_checked(workspace: Path) -> None:
    assert "There is no configuration file here" in config("check").stdout
    file = own("[network]\nrate_limit = 1\n")
    (workspace / "trunkline.toml").write_text("[default]\nmax_turn = 3\n")
    result = config("check")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "./trunkline.toml:2:1: unknown key `default.max_turn`. Did you mean `default.max_turns`?",
        f"{file}: ok",
    ]
    (workspace / "trunkline.toml").unlink()
    assert config("check").exit_code == 0
    wrong = config("check", "--json", TRUNKLINE_NETWORK_RATE_LIMIT="many")
    assert wrong.exit_code == 1
    (problem,) = json.loads(wrong.stdout)["problems"]
    assert (problem["file"], problem["problem"].startswith("must be")) == ("TRUNKLINE_NETWORK_RATE_LIMIT", True)


def test_a_file_that_is_read_in_place_of_all_others_is_the_one_that_is_checked_and_named(workspace: Path) -> None:
    own("[default]\nmax_turn = 3\n")
    file = workspace / "server.toml"
    file.write_text('[models."m"]\ngpu_layers = -4\n')
    result = config("check", TRUNKLINE_CONFIG="server.toml")
    assert (result.exit_code, result.stdout.partition(" `")[0]) == (1, "server.toml:2:1:"), result.stdout
    file.write_text("[tryll]\nmax_clients = 3\n")
    assert config("check", TRUNKLINE_CONFIG="server.toml").stdout == "server.toml: ok\n"
    assert config("path", TRUNKLINE_CONFIG="server.toml").stdout.splitlines()[1:] == [
        f"yes    TRUNKLINE_CONFIG  {file}"
    ]
    assert config("check", TRUNKLINE_CONFIG="gone.toml").stdout == "gone.toml: does not exist.\n"


STRANGE = '[default]\nmodel = "m"\nmax_turns = 3\n[tools]\nallow_list = ["Bash"]\n[bridge]\nagent = "echo"\n'


def test_what_a_workspace_says_in_vain_is_told_with_its_place_and_how_to_trust_it(workspace: Path) -> None:
    (workspace / "trunkline.toml").write_text(STRANGE)
    for name in ("./trunkline.toml", "trunkline.toml"):
        result = config("check") if name.startswith(".") else config("check", name)
        assert result.exit_code == 0, result.output
        *lines, advice = result.stdout.splitlines()
        assert lines == [
            f"{name}:2:1: `default.model` is not followed.",
            f"{name}:5:1: `tools.allow_list` is not followed.",
            f"{name}:7:1: `bridge.agent` is not followed.",
        ]
        assert f'`trust = ["{workspace.resolve()}"]` at the top of `{user_file()}`' in advice
    told = json.loads(config("check", "--json").stdout)
    assert told["ok"]
    assert [each["key"] for each in told["not_followed"]] == ["default.model", "tools.allow_list", "bridge.agent"]
    file = own(f'trust = ["{workspace}"]\n')
    assert config("check").stdout.splitlines() == [f"{file}: ok", "./trunkline.toml: ok"]
    assert json.loads(config("check", "--json").stdout)["not_followed"] == []


def test_a_file_of_another_place_is_no_workspaces(workspace: Path, tmp_path: Path) -> None:
    (workspace / "trunkline.toml").write_text(STRANGE)
    other = tmp_path / "other.toml"
    other.write_text(STRANGE)
    assert config("check", str(other)).stdout == f"{other}: ok\n"


def test_an_agent_of_the_runner_is_checked_like_all_else(workspace: Path) -> None:
    file = own('[runner.agents.ada]\nagentId = "a"\nrunnerToken = 3\n[runner.agents.ada.llm]\napikey = "x"\n')
    result = config("check")
    assert result.stdout.splitlines() == [
        f'{file}:3:1: `runner.agents.ada.runnerToken` must be a string, or {{ env = "NAME" }}.',
        f"{file}:5:1: unknown key `runner.agents.ada.llm.apikey`. Did you mean `runner.agents.ada.llm.apiKey`?",
    ]


def test_the_json_of_a_runner_is_checked_with_places_too(workspace: Path) -> None:
    file = workspace / "agent.json"
    file.write_text(
        '{\n  "agentId": 3,\n  "llm": {"apikey": "x", "note": "of a page"},\n  "log": null,\n  "brain": {"x": 1}\n}'
    )
    result = config("check", str(file))
    assert result.exit_code == 1
    lines = [line.removeprefix(f"{file}:") for line in result.stdout.splitlines()]
    assert lines[0] == '2:3: `agentId` must be a string, or { env = "NAME" }.'
    assert lines[1] == "3:11: unknown key `llm.apikey`. Did you mean `llm.apiKey`?"
    assert lines[2].startswith("5:13: unknown key `brain.x`. `brain.kind` says whose model decides")
    assert len(lines) == 3
    file.write_text("{")
    assert (config("check", str(file)).exit_code, f"{file}: not JSON" in config("check", str(file)).stdout) == (1, True)
    assert "cannot be read: No such file" in config("check", "nowhere.json").stdout


# path


def test_the_files_that_are_read_are_named_the_one_that_counts_most_first(workspace: Path) -> None:
    own("")
    told = json.loads(config("path", "--json").stdout)["files"]
    assert [(each["path"], each["exists"]) for each in told] == [
        (str(workspace / "trunkline.toml"), False),
        (str(workspace / ".aionrs.toml"), False),
        (user_file(), True),
    ]
    assert config("path").stdout.splitlines()[-1].split() == ["yes", "yours", user_file()]
    assert config("path", "--user").stdout == f"{user_file()}\n"


def test_the_line_that_trusts_a_workspace_can_be_used_as_it_is_shown(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / 'a "b\\c'
    odd.mkdir()
    monkeypatch.chdir(odd)
    (odd / "trunkline.toml").write_text('[default]\nmodel = "m"\n')
    shown = re.search(r"say `(trust = .*)` at the top", config("check").output)
    assert shown is not None
    assert tomllib.loads(shown[1]) == {"trust": [str(odd)]}
