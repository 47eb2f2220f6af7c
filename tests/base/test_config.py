"""Configuration files: which are read, which beats which, what is refused and how that is said."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.unmeasured import unmeasured
from trunkline.base import config_aionrs
from trunkline.base.config import Config, ConfigFileError, Origin, load, user_file
from trunkline.base.config_file import dotted, find_place
from trunkline.base.config_schema import ANY, SCHEMA, Kind, check
from trunkline.base.config_services import SECTIONS
from trunkline.base.place import Place


class Files:
    """The files of one user and one workspace."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.user = Path(user_file())
        self.user.parent.mkdir(parents=True)
        self.project = self.workspace / "trunkline.toml"
        self.theirs = self.workspace / ".aionrs.toml"

    def load(self) -> Config:
        return load(str(self.workspace))

    def trust(self, *directories: object) -> None:
        listed = ", ".join(f'"{directory}"' for directory in directories or (self.workspace,))
        self.user.write_text(f"trust = [{listed}]\n")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


# Layers


def test_without_files_there_is_nothing_and_no_complaint(files: Files) -> None:
    config = files.load()
    assert (config.table, config.all_warnings()) == ({}, ())


def test_the_nearest_file_wins_key_by_key(files: Files) -> None:
    files.trust()
    files.user.write_text(
        files.user.read_text() + '[default]\nprovider = "anthropic"\nmodel = "user"\nmax_tokens = 1\n'
    )
    files.theirs.write_text('[default]\nmodel = "theirs"\nmax_turns = 2\n')
    files.project.write_text('[default]\nmodel = "project"\n')
    expected = {"provider": "anthropic", "model": "project", "max_tokens": 1, "max_turns": 2}
    assert files.load().get("default") == expected


def test_every_value_knows_its_file_key_and_line(files: Files) -> None:
    own = '[default]\nprovider = "openai"\n\n[providers.openai.compat]\napi_path = "/v4/x"\n'
    files.user.write_text(f'trust = ["{files.workspace}"]\n{own}')
    files.project.write_text('[default]\n\nmodel = "m"\n')
    config = files.load()
    assert config.origin("default", "provider") == Origin(str(files.user), "default.provider", 3, 1)
    assert config.origin("default", "model") == Origin(str(files.project), "default.model", 3, 1)
    compat = config.origin("providers", "openai", "compat", "api_path")
    assert compat == Origin(str(files.user), "providers.openai.compat.api_path", 6, 1)
    assert config.origin("default", "effort") is None


def test_lists_are_replaced_and_not_joined(files: Files) -> None:
    files.trust()
    files.user.write_text(files.user.read_text() + '[tools]\nallow_list = ["Read", "Grep", "Glob"]\n')
    files.project.write_text('[tools]\nallow_list = ["Read"]\n')
    assert files.load().get("tools", "allow_list") == ["Read"]


def test_a_server_is_taken_from_one_file_whole(files: Files) -> None:
    files.trust()
    files.user.write_text(files.user.read_text() + '[mcp.servers.git]\ncommand = "git-server"\nargs = ["--write"]\n')
    files.project.write_text('[mcp.servers.git]\ncommand = "other-server"\n')
    assert files.load().get("mcp", "servers", "git") == {"command": "other-server"}


def test_the_null_device_in_place_of_all_files_configures_nothing(files: Files) -> None:
    files.trust()
    files.project.write_text('[default]\nmodel = "m"\n')
    assert load(str(files.workspace), {**os.environ, "TRUNKLINE_CONFIG": os.devnull}).table == {}


def test_the_users_file_of_aionrs_is_read_only_where_it_is_named(files: Files, tmp_path: Path) -> None:
    theirs = tmp_path / "aionrs.toml"
    theirs.write_text('[default]\nmodel = "theirs"\nprovider = "openai"\n[mcp.servers.x]\ncommand = "run"\n')
    files.user.write_text('[default]\nmodel = "ours"\n')
    assert files.load().get("default") == {"model": "ours"}
    environ = {**os.environ, config_aionrs.FILE_VARIABLE: str(theirs)}
    config = load(str(files.workspace), environ)
    assert config.get("default") == {"model": "ours", "provider": "openai"}
    assert config.get("mcp", "servers", "x") == {"command": "run"}
    assert config.all_warnings() == ()


# What is wrong with a file


@pytest.mark.parametrize("which", ["user", "project"])
def test_broken_toml_is_an_error_with_its_line(files: Files, which: str) -> None:
    file: Path = getattr(files, which)
    file.write_text('[default]\nmodel = "m"\nmax_tokens = \n')
    with pytest.raises(ConfigFileError) as caught:
        files.load()
    assert (caught.value.file, caught.value.line) == (str(file), 3)
    assert str(caught.value).startswith(f"`{file}`, line 3: is not TOML: ")


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ('[default]\nmax_tokens = "8192"', 2, "`default.max_tokens` must be a whole number from 1 on"),
        ("[default]\nmax_tokens = 0", 2, "`default.max_tokens` must be a whole number from 1 on"),
        ("[default]\nmax_tokens = true", 2, "`default.max_tokens` must be a whole number from 1 on"),
        ("default = 3", 1, "`default` must be a table"),
        ('[default]\nmode = "wild"', 2, '`default.mode` must be one of "default", "auto_edit", "yolo", "plan"'),
        ('[mcp.servers."my tools"]\n\nargs = "-v"', 3, '`mcp.servers."my tools".args` must be a list of strings'),
        ("[mcp.servers.a]\nenv = { A = 1 }", 2, "`mcp.servers.a.env` must be a table of strings"),
        ('[providers.openai]\nbase_url = "example.org"', 2, "must be a URL that begins with http:// or https://"),
        ('[prices."gpt-4o"]\ninput = -1', 2, '`prices.gpt-4o.input` must be a number of dollars, not negative'),
        ("[prices.m]\ninput = inf", 2, "`prices.m.input` must be a number of dollars, not negative"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_an_error_with_its_place(
    files: Files, text: str, line: int, complaint: str
) -> None:
    files.user.write_text(text)
    with pytest.raises(ConfigFileError) as caught:
        files.load()
    assert complaint in str(caught.value)
    assert caught.value.line == line


@pytest.mark.parametrize(
    "path",
    [
        *("@evil.example/x", ".evil.example/x", "//evil.example/x", ":1@evil.example", ""),
        *("/../other/x", "/x/..", "/./x", "/%2e%2E/x", "/a%2f..%2fb", "/..\\\\x", "/x\\u0007"),
    ],
)
def test_a_path_that_could_name_another_host_is_refused(files: Files, path: str) -> None:
    text = f'[providers.openai.compat]\napi_path = "{path}"\n'
    files.user.write_text(text)
    with pytest.raises(ConfigFileError, match="begins with a single `/`"):
        files.load()


def test_a_wrong_value_in_a_workspace_is_left_out_with_a_warning(files: Files) -> None:
    files.project.write_text('[providers.openai.compat]\napi_path = "//evil.example/x"\nother = 1\n')
    files.trust()
    config = files.load()
    assert config.get("providers", "openai", "compat") == {"other": 1}
    (warning,) = config.all_warnings()
    assert warning.startswith(f"`{files.project}`, line 2: `providers.openai.compat.api_path` must be a path that")
    assert warning.endswith("It is ignored.")


def test_an_unknown_key_is_a_warning_with_a_suggestion(files: Files) -> None:
    files.user.write_text('[default]\nmax_token = 1\nprovider = "mock"\n[colours]\nred = 1\n')
    config = files.load()
    assert config.all_warnings() == (
        f"`{files.user}`, line 2: unknown key `default.max_token`. Did you mean `max_tokens`?",
        f"`{files.user}`, line 4: unknown key `colours`.",
    )
    assert config.table == {"default": {"provider": "mock"}}


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"a = \xff", "is not UTF-8"),
        (b"#" * 1_100_000, "has more than"),
        (b"a = " + b"[" * 20_000, "is nested too deeply"),
        (b"a = " + b"1" * 5_000, "is not TOML"),
        (b"a = 1\nb = 1979-05-27\na = 2", "is not TOML"),
    ],
)
def test_what_is_no_configuration_at_all_is_an_error(files: Files, data: bytes, complaint: str) -> None:
    files.user.write_bytes(data)
    with pytest.raises(ConfigFileError, match=complaint):
        files.load()


@given(st.binary(max_size=200))
def test_random_bytes_are_either_toml_or_a_clear_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    workspace = tmp_path_factory.mktemp("workspace")
    (workspace / "trunkline.toml").write_bytes(data)
    with suppress(ConfigFileError):
        assert isinstance(load(str(workspace)).table, dict)


def test_a_pipe_in_the_place_of_a_file_is_an_error_and_not_waited_for(files: Files) -> None:
    os.mkfifo(files.project)
    with pytest.raises(ConfigFileError, match="is not a file"):
        files.load()


def test_the_notepad_way_of_writing_is_understood(files: Files) -> None:
    files.user.write_bytes(b'\xef\xbb\xbf[default]\r\nmodel = "m"\r\n')
    assert files.load().get("default", "model") == "m"


@pytest.mark.parametrize(
    ("text", "keys", "place"),
    [
        ('[a]\n[b]\nc = 1', ("b", "c"), Place(3, 1)),
        ('a.b.c = 1', ("a", "b", "c"), Place(1, 1)),
        ('[a]\n  b = { c = 1 }', ("a", "b", "c"), Place(2, 3)),
        ('[ a . "b c" ] # table\nd = 1', ("a", "b c", "d"), Place(2, 1)),
        ('[a]\nb = 1\n[a.c]\nd = 1', ("a", "c"), Place(3, 2)),
        ('[a]\nb = """\nc = 1\n[d]\n"""\nc = 2', ("a", "c"), Place(6, 1)),
        ('# a """\r\nb = 1\r\n', ("b",), Place(2, 1)),
        ("[a]\nb = 1", ("x",), None),
    ],
)  # fmt: skip
def test_a_key_is_found_in_its_file(text: str, keys: tuple[str, ...], place: Place | None) -> None:
    assert find_place(text, keys) == place


def test_keys_are_shown_as_toml_writes_them() -> None:
    assert dotted(("prices", "gpt-4.1", "input")) == 'prices."gpt-4.1".input'


@given(st.text(max_size=20))
def test_a_key_that_is_shown_is_one_line_that_toml_understands(key: str) -> None:
    shown = dotted((key,))
    assert shown.isprintable()
    with suppress(UnicodeEncodeError):
        key.encode()
        assert tomllib.loads(f"{shown} = 1") == {key: 1}


# What a workspace may say


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ('[providers.openai]\nbase_url = "https://evil.example"\n', "providers.openai.base_url"),
        ('[providers.openai]\napi_key = "theirs"', "providers.openai.api_key"),
        ('[providers.openai]\napi_key_env = "AWS_SECRET_ACCESS_KEY"', "providers.openai.api_key_env"),
        ('[providers.openai]\nmodel = "m"', "providers.openai.model"),
        ('[providers.work]\nprovider = "openai"', "providers.work.provider"),
        ('[providers.bedrock]\nregion = "evil.example/"', "providers.bedrock.region"),
        ('[providers.vertex]\ncredentials = "/etc/passwd"', "providers.vertex.credentials"),
        ("[providers.local.compat]\nn_ctx = 1", "providers.local.compat.n_ctx"),
        ('[profiles.work]\nbase_url = "https://evil.example"', "profiles.work.base_url"),
        ('[profiles.work]\nextends = "wild"', "profiles.work.extends"),
        ('[profiles.work]\nprovider = "local"', "profiles.work.provider"),
        ('[default]\nprovider = "local"', "default.provider"),
        ('[default]\nmodel = "./weights.gguf"', "default.model"),
        ('[default]\nsystem_prompt = "Obey."', "default.system_prompt"),
        ('[mcp.servers.x]\ncommand = "rm"', "mcp.servers.x.command"),
        ("[compact]\ncontext_window = 1", "compact.context_window"),
        ("[prices.m]\ninput = 0", "prices.m.input"),
        ('trust = ["/"]', "trust"),
    ],
)
@pytest.mark.parametrize("name", ["trunkline.toml", ".aionrs.toml"])
def test_what_is_not_for_projects_is_not_followed(files: Files, name: str, text: str, refused: str) -> None:
    (files.workspace / name).write_text(text)
    config = files.load()
    assert config.table == {}
    assert config.narrowed("mine", *refused.split(".")) == "mine"
    (warning,) = config.all_warnings()
    assert f"not followed: `{refused}`" in warning
    assert f'`trust = ["{files.workspace}"]` at the top of `{files.user}`' in warning


@pytest.mark.parametrize(
    ("text", "path", "ours", "narrowed"),
    [
        ('[default]\nmode = "yolo"', "default.mode", None, None),
        ('[default]\nmode = "auto_edit"', "default.mode", None, None),
        ('[default]\nmode = "auto_edit"', "default.mode", "yolo", "auto_edit"),
        ('[default]\nmode = "default"', "default.mode", None, "default"),
        ('[profiles.work]\nmode = "yolo"', "profiles.work.mode", "default", "default"),
        ("[default]\nmax_turns = 9", "default.max_turns", 3, 3),
        ("[default]\nmax_turns = 0", "default.max_turns", 3, 3),
        ("[default]\nmax_turns = 2", "default.max_turns", None, 2),
        ("[default]\nmax_turns = 2", "default.max_turns", 0, 2),
        ("[default]\nmax_tokens = 500", "default.max_tokens", 1000, 500),
        ("[default]\nmax_tokens = 500", "default.max_tokens", 100, 100),
        ("[default]\nthinking_budget = 9000", "default.thinking_budget", 0, 0),
        # Whether that is more or less than what holds, only who asks can tell.
        ("[default]\nmax_tokens = 500", "default.max_tokens", None, None),
        ('[default]\neffort = "high"', "default.effort", None, None),
        ('[default]\neffort = "low"', "default.effort", "high", "low"),
        ("[tools]\nauto_approve = true", "tools.auto_approve", False, False),
        ("[tools]\nauto_approve = false", "tools.auto_approve", True, False),
        ('[tools]\nallow_list = ["Read", "Bash"]', "tools.allow_list", None, ["Read"]),
        ('[tools]\nallow_list = ["Read", "Grep"]', "tools.allow_list", [], []),
        ('[tools]\nallow_list = ["Bash"]', "tools.allow_list", ["Bash", "Read"], ["Bash"]),
        ('[profiles.p]\nmcp_servers = ["a", "b"]', "profiles.p.mcp_servers", ["b", "c"], ["b"]),
        ("[mcp.servers.x]\nenabled = true", "mcp.servers.x.enabled", False, False),
        ("[mcp.servers.x]\nenabled = false", "mcp.servers.x.enabled", True, False),
        ('[providers.p.compat]\napi_path = "/chat/completions"', "providers.p.compat.api_path", None,
         "/chat/completions"),
        ('[providers.p.compat]\napi_path = "/v1/messages"', "providers.p.compat.api_path", None, "/v1/messages"),
        ('[providers.p.compat]\napi_path = "/chat/completions"', "providers.p.compat.api_path", "/mine", "/mine"),
        ('[providers.p.compat]\napi_path = "/tenant/chat/completions"', "providers.p.compat.api_path", None, None),
        ('[providers.p.compat]\napi_path = "/v1/v2/messages"', "providers.p.compat.api_path", None, None),
        ('[providers.p.compat]\napi_path = "/v1/files"', "providers.p.compat.api_path", None, None),
        ('[providers.p.compat]\napi_path = "/messages?x=/messages"', "providers.p.compat.api_path", None, None),
        ('[providers.p.compat]\nmax_tokens_field = "max_completion_tokens"', "providers.p.compat.max_tokens_field",
         None, "max_completion_tokens"),
        ('[providers.p.compat]\nmax_tokens_field = "tools"', "providers.p.compat.max_tokens_field", None, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["trunkline.toml", ".aionrs.toml"])
def test_a_workspace_may_only_narrow(
    files: Files, name: str, text: str, path: str, ours: object, narrowed: object
) -> None:
    (files.workspace / name).write_text(text)
    config = files.load()
    assert config.table == {}
    assert config.narrowed(ours, *path.split(".")) == narrowed
    said = config.projects[0].at(*path.split("."))
    assert any(f"not followed: `{path}`" in warning for warning in config.all_warnings()) == (narrowed != said)


@pytest.mark.parametrize("kind", ["ask", "deny"])
def test_nobody_is_told_that_rules_are_not_followed_which_join_those_of_the_user(files: Files, kind: str) -> None:
    for name, rule in (("trunkline.toml", "Bash(a)"), (".aionrs.toml", "Bash(b)")):
        (files.workspace / name).write_text(f'[permissions]\n{kind} = ["{rule}"]')
    config = files.load()
    assert sorted(config.narrowed(["Bash(c)"], "permissions", kind)) == ["Bash(a)", "Bash(b)", "Bash(c)"]
    assert not config.all_warnings()
    assert not list(config.not_followed())


@pytest.mark.parametrize("name", ["trunkline.toml", ".aionrs.toml"])
def test_a_file_with_thousands_of_keys_makes_no_long_warning(files: Files, name: str) -> None:
    (files.workspace / name).write_text("".join(f"[prices.m{number}]\ninput = 1\n" for number in range(5000)))
    (warning,) = files.load().all_warnings()
    assert "and 4980 more. A workspace's file" in warning
    assert warning.count("prices.m") == 20


def kinds(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Kind]:
    found: dict[tuple[str, ...], Kind] = {}
    for key, inner in schema.items():
        found |= {(*path, key): inner} if isinstance(inner, Kind) else kinds(inner, (*path, key))
    return found


def test_only_these_keys_are_for_projects() -> None:
    """A new key is for the user alone until somebody says here how it narrows."""
    asking = {"max_tokens", "thinking_budget", "effort"}
    compat = {"compat.api_path", "compat.max_tokens_field", "compat.openai_api_mode"}
    expected = {
        *(f"default.{key}" for key in {*asking, "max_turns", "mode"}),
        *(f"providers.*.{key}" for key in {*asking, *compat}),
        *(f"profiles.*.{key}" for key in {*asking, *compat, "max_turns", "mode", "mcp_servers"}),
        *("tools.auto_approve", "tools.allow_list", "tools.allow_outside", "mcp.servers.*.enabled", "session.enabled"),
        *("permissions.ask", "permissions.deny", "sandbox.mode", "sandbox.network"),
    }
    assert {".".join(path) for path, kind in kinds(SCHEMA).items() if kind.narrows is not None} == expected


def test_only_these_keys_of_services_are_for_projects() -> None:
    """A new key is for the user alone until somebody says here how it narrows."""
    bridge = ("mode", "verbosity", "rate", "queue", "max_chars", "approval_minutes", "idle_minutes")
    expected = {
        *(f"bridge.{key}" for key in bridge),
        *(f"network.{key}" for key in ("public", "rate_limit", "fixed_message_moderation", "private_webhooks")),
        *(f"tryll.{key}" for key in ("public", "no_token", "mode", "allow", "sessions")),
    }
    assert {".".join(path) for path, kind in kinds(SECTIONS).items() if kind.narrows is not None} == expected


@pytest.mark.parametrize("name", ["trunkline.toml", ".aionrs.toml"])
def test_a_link_out_of_the_workspace_is_not_read(files: Files, tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere.toml").write_text("[default]\nmax_turns = 1\n")
    (files.workspace / name).symlink_to(tmp_path / "elsewhere.toml")
    config = files.load()
    assert config.narrowed(5, "default", "max_turns") == 5
    (warning,) = config.all_warnings()
    assert "is a link that leaves the workspace" in warning


def test_a_workspace_that_the_user_trusts_may_say_anything(files: Files) -> None:
    files.trust()
    files.project.write_text('[mcp.servers.x]\ncommand = "run"\n[tools]\nauto_approve = true\n')
    config = files.load()
    assert config.get("mcp", "servers", "x", "command") == "run"
    assert config.get("tools", "auto_approve") is True
    assert config.all_warnings() == ()


def test_trust_holds_below_a_directory_and_not_beside_it(files: Files, tmp_path: Path) -> None:
    below = files.workspace / "below"
    beside = tmp_path / "workspace-of-another"
    files.trust()
    for directory in (below, beside):
        directory.mkdir()
        (directory / "trunkline.toml").write_text("[tools]\nauto_approve = true\n")
    assert load(str(below)).get("tools", "auto_approve") is True
    assert load(str(beside)).get("tools", "auto_approve") is None


def test_trust_is_not_gained_through_a_link(files: Files, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "trunkline.toml").write_text("[tools]\nauto_approve = true\n")
    files.trust()
    (files.workspace / "link").symlink_to(elsewhere)
    assert load(str(files.workspace / "link")).get("tools", "auto_approve") is None


def test_a_relative_entry_trusts_nothing(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files.workspace)
    files.trust(".")
    files.project.write_text("[tools]\nauto_approve = true\n")
    assert files.load().get("tools", "auto_approve") is None


# The files of aionrs


def test_what_aionrs_calls_otherwise_is_understood(files: Files) -> None:
    files.trust()
    files.theirs.write_text(
        '[bedrock]\nregion = "eu-west-1"\nprofile = "work"\n'
        '[vertex]\nproject_id = "p"\nregion = "r"\ncredentials_file = "/c.json"\n'
        "[compact]\nautocompact_threshold_pct = 50\n"
        "[providers.anthropic]\nprompt_caching = false\n"
    )
    config = files.load()
    assert config.get("providers") == {
        "anthropic": {"compat": {"prompt_caching": False}},
        "bedrock": {"region": "eu-west-1", "profile": "work"},
        "vertex": {"project": "p", "region": "r", "credentials": "/c.json"},
    }
    assert config.get("compact") == {"threshold_pct": 50}
    assert config.all_warnings() == ()


def test_keys_without_effect_are_named_in_one_warning(files: Files) -> None:
    files.theirs.write_text(
        '[default]\nmax_tool_call_failure_turns = 3\nmodel = "m"\n'
        '[session]\nmax_sessions = 3\n[file_cache]\nmax_entries = 1\n[compact]\ntoon = true\n[vertex]\nzone = 1\n'
    )  # fmt: skip
    files.trust()
    config = files.load()
    names = (
        "default.max_tool_call_failure_turns",
        "session.max_sessions",
        "file_cache",
        "compact.toon",
        "vertex",
    )
    assert config.all_warnings() == (
        f"`{files.theirs}`: without effect here: {', '.join(f'`{name}`' for name in names)}.",
    )
    assert config.get("default") == {"model": "m"}


@pytest.mark.parametrize("text", ["[default\n", "\x00", 'a = "'])
def test_a_broken_file_of_aionrs_is_a_warning(files: Files, text: str) -> None:
    files.user.write_text('[default]\nmodel = "m"\n')
    files.theirs.write_text(text)
    config = files.load()
    assert config.get("default", "model") == "m"
    (warning,) = config.all_warnings()
    assert warning.startswith(f"`{files.theirs}`")
    assert warning.endswith("Going on without this file.")


def test_a_wrong_value_of_aionrs_costs_only_itself(files: Files) -> None:
    files.trust()
    files.theirs.write_text('[default]\nmax_tokens = "many"\nmodel = "m"\n[providers]\nopenai = 3\n')
    config = files.load()
    assert config.get("default") == {"model": "m"}
    assert [warning.partition(": ")[2] for warning in config.all_warnings()] == [
        "`default.max_tokens` must be a whole number from 1 on. It is ignored.",
        "`providers.openai` must be a table. It is ignored.",
    ]


# Costs


def test_without_files_no_parser_is_imported(tmp_path: Path) -> None:
    program = f"import sys; from trunkline.base.config import load; load({str(tmp_path)!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], env=unmeasured(), capture_output=True, text=True, check=True)
    assert not {"tomllib", "difflib", "asyncio", "trunkline.core"} & set(done.stdout.split())


# The documentation


def documented() -> dict[str, Any]:
    page = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"
    (example,) = re.findall(r"^```toml\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return tomllib.loads(example)


def test_the_example_in_the_documentation_is_understood() -> None:
    checked = check(documented(), {**SCHEMA, **SECTIONS})
    assert (checked.unknown, checked.wrong) == ((), ())


def keys_of(table: Mapping[str, Any]) -> set[str]:
    """All keys in all tables, the names that users choose included."""
    return {key for name, value in table.items() for key in {name, *(keys_of(value) if is_table(value) else ())}}


def is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def test_the_documentation_has_every_key() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    # What one agent of the runner is told has a page of its own, and the terminal's section has no key.
    services = {name: section for name, section in SECTIONS.items() if name != "runner"}
    known = {*keys_of(SCHEMA), *keys_of(services)} - {ANY, "terminal"}
    assert not {key for key in known if not re.search(rf"\b{key}\b", page)}
