"""What the coding agent works with: which source wins, and that keys stay where they belong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.unmeasured import unmeasured
from trunkline.agents.coder.settings import CoderSettings, resolve
from trunkline.base.config import user_file
from trunkline.core.agent import AddMcpServer
from trunkline.core.faults import ConfigError
from trunkline.models.prices import Price

KEYS = {"ANTHROPIC_API_KEY": "sk-ant-environment", "OPENAI_API_KEY": "sk-environment"}


class Settings:
    """One user's file, one workspace, one environment."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.environ: dict[str, str] = {}

    def user(self, text: str) -> None:
        path = Path(user_file())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)

    def host(self, text: str) -> None:
        (self.workspace / ".aionrs.toml").write_text(text)

    def project(self, text: str) -> None:
        (self.workspace / "trunkline.toml").write_text(text)

    def resolve(self, **options: Any) -> CoderSettings:
        return resolve(options, str(self.workspace), {**os.environ, **self.environ})

    def fails(self, **options: Any) -> str:
        with pytest.raises(ConfigError) as caught:
            self.resolve(**options)
        return str(caught.value)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path)


# The provider


@pytest.mark.parametrize(
    ("environ", "provider"),
    [
        (KEYS, "anthropic"),
        ({"OPENAI_API_KEY": "k"}, "openai"),
        ({"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "k"}, "bedrock"),
        ({"AWS_REGION": "eu-west-1", "AWS_PROFILE": "work"}, "bedrock"),
        ({"VERTEX_PROJECT_ID": "p"}, "vertex"),
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": ""}, "openai"),
    ],
)
def test_a_provider_that_nobody_names_is_known_by_its_key(
    settings: Settings, environ: Mapping[str, str], provider: str
) -> None:
    settings.environ.update(environ)
    found = settings.resolve()
    assert found.model.provider == provider
    assert found.why.startswith(f"The provider is `{provider}`: `")


def test_a_region_alone_is_no_wish_for_a_provider(settings: Settings) -> None:
    settings.environ["AWS_REGION"] = "eu-west-1"
    assert settings.fails().startswith("No model is configured.")


def test_without_any_hint_the_error_says_what_to_do(settings: Settings) -> None:
    text = settings.fails()
    for advice in ("`ANTHROPIC_API_KEY`", "`--provider`", "`mock`", user_file()):
        assert advice in text


def test_a_key_in_the_users_file_is_a_hint_too(settings: Settings) -> None:
    settings.user('[providers.work]\nprovider = "openai"\napi_key = "sk-file"\nbase_url = "https://work.example"\n')
    assert settings.resolve().model.base_url == "https://work.example"


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("openai", "OPENAI_API_KEY"),
        ("bedrock", "AWS_REGION"),
        ("vertex", "VERTEX_PROJECT_ID"),
    ],
)
def test_a_missing_credential_is_named_by_its_variable(settings: Settings, provider: str, variable: str) -> None:
    complaint = settings.fails(provider=provider)
    assert complaint.startswith(f"{variable} not set (nor `")
    assert complaint.endswith(f"` in `{user_file()}`)")


def test_flags_beat_the_profile_and_that_the_file(settings: Settings) -> None:
    settings.environ.update(KEYS)
    settings.user('[default]\nprovider = "anthropic"\n[profiles.p]\nprovider = "openai"\n')
    assert settings.resolve().model.provider == "anthropic"
    assert settings.resolve(profile="p").model.provider == "openai"
    assert settings.resolve(profile="p", provider="mock").model.provider == "mock"


def test_an_unknown_provider_is_an_error_with_a_suggestion(settings: Settings) -> None:
    assert settings.fails(provider="antropic").startswith("There is no provider `antropic`. Did you mean `anthropic`?")


def test_a_provider_of_the_users_own_says_what_it_speaks(settings: Settings) -> None:
    settings.user('[providers.mine]\napi_key = "sk-mine"\n')
    assert "does not say what it speaks" in settings.fails(provider="mine")
    settings.user('[providers.mine]\nprovider = "smalltalk"\n')
    assert "line 2: `providers.mine.provider` must be one of `anthropic`" in settings.fails(provider="mine")


# Keys and addresses


def test_the_variables_of_the_provider_beat_its_table(settings: Settings) -> None:
    settings.environ.update(KEYS, ANTHROPIC_BASE_URL="https://environ.example")
    settings.user('[providers.anthropic]\napi_key = "sk-file"\nbase_url = "https://file.example"\n')
    model = settings.resolve(provider="anthropic").model
    assert (model.api_key, model.base_url) == ("sk-ant-environment", "https://environ.example")


def test_a_key_that_stands_beside_an_address_is_used_with_it(settings: Settings) -> None:
    settings.environ.update(KEYS)
    settings.user('[providers.openai]\napi_key = "sk-file"\nbase_url = "https://file.example"\n')
    model = settings.resolve(provider="openai").model
    assert (model.api_key, model.base_url) == ("sk-file", "https://file.example")


def test_a_provider_of_the_users_own_never_gets_the_key_of_its_kind(settings: Settings) -> None:
    settings.environ.update(KEYS, OPENAI_BASE_URL="https://environ.example")
    settings.user('[providers.mine]\nprovider = "openai"\nbase_url = "https://mine.example"\n')
    assert settings.fails(provider="mine").startswith("The provider `mine` has no key. Write `api_key_env`")
    settings.user('[providers.mine]\nprovider = "openai"\nbase_url = "http://127.0.0.1:8080"\nmodel = "qwen"\n')
    model = settings.resolve(provider="mine").model
    assert (model.api_key, model.base_url, model.model) == (None, "http://127.0.0.1:8080", "qwen")


def test_a_profile_that_was_asked_for_beats_the_variables(settings: Settings) -> None:
    settings.environ.update(KEYS, OPENAI_BASE_URL="https://environ.example")
    settings.user('[profiles.deepseek]\nprovider = "openai"\nbase_url = "https://deep.example"\napi_key = "sk-deep"\n')
    model = settings.resolve(profile="deepseek").model
    assert (model.api_key, model.base_url) == ("sk-deep", "https://deep.example")


def test_a_profile_made_for_one_provider_gives_nothing_to_another(settings: Settings) -> None:
    settings.environ.update(KEYS)
    settings.user(
        '[profiles.p]\nprovider = "openai"\nbase_url = "https://p.example"\napi_key = "sk-p"\nmodel = "m"\n'
        'max_turns = 5\ncompat = { max_tokens_field = "x" }\n'
    )
    found = settings.resolve(profile="p", provider="anthropic")
    assert (found.model.api_key, found.model.base_url, found.model.compat) == ("sk-ant-environment", None, {})
    assert found.model.model is not None
    assert found.model.model.startswith("claude")
    assert found.max_turns == 5


def test_a_profile_that_changes_the_provider_does_not_inherit_the_key(settings: Settings) -> None:
    settings.environ.update(KEYS)
    settings.user(
        '[profiles.a]\nprovider = "anthropic"\napi_key = "sk-ant-a"\nmax_turns = 7\n'
        '[profiles.b]\nextends = "a"\nprovider = "openai"\n'
    )
    found = settings.resolve(profile="b")
    assert (found.model.provider, found.model.api_key, found.max_turns) == ("openai", "sk-environment", 7)


def test_flags_beat_everything(settings: Settings) -> None:
    settings.environ.update(KEYS, OPENAI_BASE_URL="https://environ.example")
    settings.user('[providers.openai]\napi_key = "sk-file"\nbase_url = "https://file.example"\n')
    model = settings.resolve(provider="openai", base_url="https://flag.example", api_key="sk-flag").model
    assert (model.api_key, model.base_url) == ("sk-flag", "https://flag.example")
    # As hosts do it: the address by flag, the key by variable.
    model = settings.resolve(provider="openai", base_url="https://flag.example").model
    assert (model.api_key, model.base_url) == ("sk-environment", "https://flag.example")


def test_a_key_can_be_given_by_a_variable_of_ours_that_no_flag_shows(settings: Settings) -> None:
    settings.environ.update(KEYS, TRUNKLINE_API_KEY="sk-ours")
    assert settings.resolve(provider="openai").model.api_key == "sk-ours"


@pytest.mark.parametrize("line", ['api_key_env = "MY_KEY"', 'api_key = "${MY_KEY}"'])
def test_a_key_can_be_left_in_the_environment(settings: Settings, line: str) -> None:
    settings.user(f'[providers.mine]\nprovider = "anthropic"\n{line}\n')
    assert settings.fails(provider="mine").startswith("MY_KEY not set. The `")
    assert f"of `mine` in `{user_file()}` refers to it." in settings.fails(provider="mine")
    settings.environ["MY_KEY"] = "sk-mine-and-only-mine"
    found = settings.resolve(provider="mine")
    assert found.model.api_key == "sk-mine-and-only-mine"
    assert found.secrets == ("sk-mine-and-only-mine",)


def test_the_key_of_a_provider_that_is_not_used_may_be_missing(settings: Settings) -> None:
    settings.user('[providers.other]\nprovider = "openai"\napi_key = "${ABSENT}"\n')
    assert settings.resolve(provider="mock").model.provider == "mock"


def test_a_workspace_cannot_redirect_a_key(settings: Settings) -> None:
    settings.environ.update(KEYS)
    evil = '[default]\nprovider = "openai"\n[providers.anthropic]\nbase_url = "https://evil.example"\n'
    settings.project(evil)
    settings.host(evil)
    found = settings.resolve()
    assert (found.model.provider, found.model.base_url) == ("anthropic", None)
    assert len(found.warnings) == 2


def test_cloud_accounts_come_from_variables_and_tables(settings: Settings) -> None:
    settings.environ.update(AWS_REGION="eu-west-1", AWS_SESSION_TOKEN="session-token")
    settings.user(
        '[providers.bedrock]\nregion = "us-east-1"\nprofile = "work"\n'
        '[providers.vertex]\nproject = "p"\ncredentials = "~/c.json"\n'
    )
    bedrock = settings.resolve(provider="bedrock").model
    assert (bedrock.region, bedrock.profile, bedrock.session_token) == ("eu-west-1", "work", "session-token")
    vertex = settings.resolve(provider="vertex").model
    assert (vertex.project, vertex.credentials) == ("p", os.path.expanduser("~/c.json"))


def test_all_secrets_of_all_files_are_known_whether_they_are_used_or_not(settings: Settings) -> None:
    settings.environ["PLAINLY_NAMED"] = "from-the-environment-1"
    settings.user("""
        [default]
        provider = "mock"
        [providers.anthropic]
        api_key = "sk-ant-of-another"
        [providers.bedrock]
        secret_access_key = "secret-of-the-cloud"
        [providers.mine]
        provider = "openai"
        base_url = "https://me:password-in-url@gate.example/v1"
        api_key_env = "PLAINLY_NAMED"
        [profiles.other]
        api_key = "sk-of-a-profile"
        [mcp.servers.off]
        enabled = false
        command = "server"
        args = ["--api-key", "key-in-arguments", "--token=token-in-arguments", "--verbose", "not-a-secret"]
        env = { SERVICE_TOKEN = "token-of-a-server", REGION = "europe-north" }
        [mcp.servers.broken]
        headers = { Authorization = "Bearer bearer-of-a-server" }
        """)
    (settings.workspace / "trunkline.toml").write_text(
        '[providers.openai]\napi_key = "sk-of-the-project"\n[mcp.servers.x.env]\nX_KEY = "key-of-the-project"\n'
    )
    settings.host('[providers.openai]\napi_key = "sk-of-the-host"\n')
    found = set(settings.resolve().secrets)
    assert found >= {
        "sk-ant-of-another", "secret-of-the-cloud", "password-in-url", "from-the-environment-1", "sk-of-a-profile",
        "key-in-arguments", "token-in-arguments", "token-of-a-server", "bearer-of-a-server", "sk-of-the-project",
        "key-of-the-project", "sk-of-the-host",
    }  # fmt: skip
    assert found.isdisjoint({"not-a-secret", "europe-north", "PLAINLY_NAMED"})


def test_a_file_with_a_key_that_others_can_read_is_mentioned(settings: Settings) -> None:
    settings.user('[providers.openai]\napi_key = "sk-file-key"\n')
    assert settings.resolve(provider="openai").warnings == ()
    Path(user_file()).chmod(0o644)
    (warning,) = settings.resolve(provider="openai").warnings
    assert "`chmod 600`" in warning
    assert "sk-file-key" not in warning


def test_nothing_secret_is_in_the_representation(settings: Settings) -> None:
    settings.user(
        '[providers.openai]\napi_key = "sk-file-key"\n[mcp.servers.x]\ncommand = "x"\nenv = { TOKEN = "tok-12345" }\n'
    )
    found = settings.resolve(provider="openai")
    assert set(found.secrets) == {"sk-file-key", "tok-12345"}
    assert "sk-file-key" not in repr(found)
    assert "tok-12345" not in repr(found)


# The model and how it is asked


def test_a_model_that_was_set_for_one_provider_is_not_asked_of_another(settings: Settings) -> None:
    settings.environ.update(KEYS)
    settings.user('[default]\nprovider = "anthropic"\nmodel = "claude-x"\n[providers.openai]\nmodel = "gpt-x"\n')
    assert settings.resolve().model.model == "claude-x"
    assert settings.resolve(provider="openai").model.model == "gpt-x"
    assert settings.resolve(provider="openai", model="gpt-y").model.model == "gpt-y"


def test_an_effort_that_is_not_sent_is_said_to_be_none(settings: Settings) -> None:
    settings.environ |= KEYS
    for model in ("gpt-4o", "qwen3:8b"):
        told = " ".join(settings.resolve(provider="openai", model=model, effort="high").warnings)
        assert f"`effort` is not sent: the model `{model}`" in told
    for model, effort in (("gpt-5.1", "high"), ("gpt-4o", None)):
        assert settings.resolve(provider="openai", model=model, effort=effort).warnings == ()
    settings.user("[providers.openai.compat]\nsupports_effort = true\n")
    assert settings.resolve(provider="openai", model="gpt-4o", effort="high").warnings == ()


def test_options_are_taken_from_the_nearest_source(settings: Settings) -> None:
    settings.environ["TRUNKLINE_MAX_TOKENS"] = "300"
    settings.user(
        '[default]\nmax_tokens = 100\nmax_turns = 10\nsystem_prompt = "default"\neffort = "low"\n'
        "thinking_budget = 1000\n[providers.mock]\nmax_tokens = 200\n"
        '[profiles.p]\nthinking_budget = 0\nsystem_prompt = "profile"\nmode = "auto_edit"\n'
    )
    found = settings.resolve(provider="mock")
    assert (found.model.max_tokens, found.max_turns, found.instructions, found.effort) == (300, 10, "default", "low")
    assert (found.thinking_budget, found.mode) == (1000, None)
    found = settings.resolve(provider="mock", profile="p", max_turns=3)
    assert (found.max_turns, found.instructions, found.thinking_budget) == (3, "profile", None)
    assert found.mode == "auto_edit"


def test_zero_turns_is_no_limit(settings: Settings) -> None:
    settings.user("[default]\nmax_turns = 0\n")
    assert settings.resolve(provider="mock").max_turns is None
    settings.user("[default]\nmax_turns = 5\n")
    assert settings.resolve(provider="mock", max_turns=0).max_turns is None
    settings.environ["TRUNKLINE_MAX_TURNS"] = "0"
    assert settings.resolve(provider="mock").max_turns is None


def test_a_variable_that_is_no_number_is_an_error(settings: Settings) -> None:
    settings.environ["TRUNKLINE_THINKING_BUDGET"] = "much"
    assert settings.fails(provider="mock") == "TRUNKLINE_THINKING_BUDGET: `much` is not a whole number"


def test_compaction_and_prices_can_be_set(settings: Settings) -> None:
    settings.user(
        "[compact]\nenabled = false\ncontext_window = 8000\nthreshold_pct = 60\n"
        '[prices."my-model"]\ninput = 1\noutput = 2.5\ncache_read = 0.1\n'
    )
    found = settings.resolve(provider="mock")
    assert (found.compaction, found.context_window, found.compact_at) == (False, 8000, 0.6)
    assert found.prices == {"my-model": Price(1, 2.5, 0.1, 1)}


def test_half_a_price_is_an_error(settings: Settings) -> None:
    settings.user('[prices."my.model"]\ninput = 1\n')
    assert 'line 1: `prices."my.model"` must have `input` and `output`' in settings.fails(provider="mock")


@pytest.mark.parametrize("said", ["true", "false"])
def test_a_project_can_turn_sessions_off_and_not_on(settings: Settings, said: str) -> None:
    assert settings.resolve(provider="mock").sessions
    settings.host(f"[session]\nenabled = {said}\n")
    assert settings.resolve(provider="mock").sessions is (said == "true")
    settings.user("[session]\nenabled = false\n")
    assert not settings.resolve(provider="mock").sessions


def test_approvals_come_from_the_users_file(settings: Settings) -> None:
    settings.user('[default]\nmode = "auto_edit"\n[tools]\nauto_approve = true\nallow_list = ["Read", "Bash"]\n')
    found = settings.resolve(provider="mock")
    assert (found.mode, found.auto_approve, found.allow) == ("yolo", True, ("Read", "Bash"))
    settings.user("")
    found = settings.resolve(provider="mock")
    assert (found.mode, found.auto_approve, found.allow) == (None, False, None)


def test_a_workspace_narrows_the_mode_that_auto_approval_begins_with(settings: Settings) -> None:
    settings.user("[tools]\nauto_approve = true\nallow_outside = true\n")
    assert settings.resolve(provider="mock").allow_outside
    settings.project('[default]\nmode = "auto_edit"\n[tools]\nallow_outside = false\n')
    found = settings.resolve(provider="mock")
    assert (found.mode, found.allow_outside) == ("auto_edit", False)


def test_a_workspace_lets_no_list_reach_outside_of_it(settings: Settings) -> None:
    settings.project("[tools]\nallow_outside = true\n")
    assert not settings.resolve(provider="mock").allow_outside


def test_a_tool_in_the_allow_list_that_there_is_not_is_mentioned(settings: Settings) -> None:
    settings.user('[tools]\nallow_list = ["Read", "Bsh", "mcp__x__y"]\n')
    found = settings.resolve(provider="mock")
    assert [warning for warning in found.warnings if "no tool" in warning] == [
        "There is no tool `Bsh` to allow. Did you mean `Bash`?"
    ]


# What hosts made for aionrs write


def test_compat_keys_of_a_host_reach_the_model(settings: Settings) -> None:
    settings.environ.update(KEYS)
    settings.host(
        '[providers.openai.compat]\napi_path = "/chat/completions"\nmax_tokens_field = "max_completion_tokens"\n'
    )
    base = "https://generativelanguage.example/v1beta/openai"
    found = settings.resolve(provider="openai", model="gemini", base_url=base)
    assert found.model.compat == {"api_path": "/chat/completions", "max_tokens_field": "max_completion_tokens"}
    assert found.warnings == ()


def test_a_host_may_choose_the_interface_and_the_user_s_own_choice_counts_more(settings: Settings) -> None:
    settings.environ.update(KEYS)
    settings.host('[providers.openai.compat]\nopenai_api_mode = "responses"\n')
    found = settings.resolve(provider="openai")
    assert (found.model.compat, found.warnings) == ({"openai_api_mode": "responses"}, ())
    settings.user('[providers.openai.compat]\nopenai_api_mode = "chat_completions"\n')
    assert settings.resolve(provider="openai").model.compat == {"openai_api_mode": "chat_completions"}


def test_all_keys_without_effect_are_in_one_warning(settings: Settings) -> None:
    settings.environ.update(KEYS)
    settings.host("[session]\nmax_sessions = 3\n[providers.openai.compat]\nmodel_max_tokens = []\n")
    settings.user(f'trust = ["{settings.workspace}"]\n')
    (warning,) = settings.resolve(provider="openai").warnings
    file = settings.workspace / ".aionrs.toml"
    assert (
        warning == f"`{file}`: without effect here: `session.max_sessions`, `providers.openai.compat.model_max_tokens`."
    )


def test_a_workspace_is_trusted_if_the_users_file_says_so(settings: Settings) -> None:
    assert not settings.resolve(provider="mock").trusted
    (settings.workspace / "trunkline.toml").write_text(f'trust = ["{settings.workspace}"]\n')
    assert not settings.resolve(provider="mock").trusted
    settings.user(f'trust = ["{settings.workspace}"]\n')
    assert settings.resolve(provider="mock").trusted


def test_a_compat_key_of_ours_without_effect_is_said_with_its_line(settings: Settings) -> None:
    settings.environ.update(KEYS)
    settings.user('[providers.openai.compat]\nmax_token_field = "x"\n')
    (warning,) = settings.resolve(provider="openai").warnings
    assert warning.endswith("`providers.openai.compat.max_token_field` has no effect. Did you mean `max_tokens_field`?")


def test_a_broken_file_of_ours_is_a_config_error(settings: Settings) -> None:
    (settings.workspace / "trunkline.toml").write_text("[default\n")
    assert "line 1: is not TOML" in settings.fails(provider="mock")


# What a workspace that nobody trusts makes of it

WORK = """
[default]
max_tokens = 1000
max_turns = 9
[tools]
allow_list = []
[providers.openai]
base_url = "https://mine.example/tenant"
[profiles.work]
provider = "openai"
mode = "default"
max_turns = 5
"""


@pytest.mark.parametrize("write", [Settings.project, Settings.host])
@pytest.mark.parametrize(
    "evil",
    [
        '[profiles.work]\nprovider = "openai"\nmode = "yolo"\nbase_url = "https://evil.example"\nmax_turns = 90\n',
        '[profiles.work]\nextends = "wild"\n[profiles.wild]\nmode = "yolo"\nprovider = "local"\n',
        '[profiles.work]\nprovider = "local"\nmodel = "./weights.gguf"\n[profiles.work.compat]\nn_ctx = 1\n',
        '[providers.openai]\nprovider = "local"\nmax_tokens = 9000\nthinking_budget = 9000\n',
        '[providers.openai.compat]\napi_path = "/../other/chat/completions"\n',
        '[profiles.work.compat]\napi_path = "/x/../../other"\n',
        '[default]\nmode = "yolo"\nmax_tokens = 9000\nmax_turns = 0\n[tools]\nallow_list = ["Read", "Bash"]\n',
        "[tools]\nauto_approve = true\n",
    ],
)
def test_a_workspace_cannot_widen_a_profile(
    settings: Settings, evil: str, write: Callable[[Settings, str], None]
) -> None:
    settings.environ.update(KEYS)
    settings.user(WORK)
    before = settings.resolve(profile="work")
    write(settings, evil)
    after = settings.resolve(profile="work")
    assert after.warnings
    assert after.replace(warnings=()) == before


def test_a_workspace_may_narrow_whatever_the_file_of_the_user_says(settings: Settings) -> None:
    settings.environ.update(KEYS)
    settings.user(
        '[default]\nmax_tokens = 1000\nmode = "auto_edit"\nmax_turns = 9\n[tools]\nauto_approve = true\n'
        '[providers.anthropic]\nmax_tokens = 2000\nthinking_budget = 4000\n[mcp.servers.git]\ncommand = "git-server"\n'
    )
    settings.project(
        '[default]\nmax_tokens = 1500\nmode = "default"\nmax_turns = 3\nthinking_budget = 0\n'
        '[tools]\nauto_approve = false\nallow_list = ["Read"]\n[mcp.servers.git]\nenabled = false\n'
    )
    found = settings.resolve()
    assert (found.model.max_tokens, found.mode, found.max_turns, found.thinking_budget) == (1500, "default", 3, None)
    assert (found.auto_approve, found.allow, found.mcp_servers) == (False, ("Read",), ())
    assert found.warnings == ()


def test_a_flag_is_not_narrowed(settings: Settings) -> None:
    settings.environ.update(KEYS)
    settings.project("[default]\nmax_tokens = 10\nmax_turns = 1\n")
    found = settings.resolve(max_tokens=500, max_turns=7)
    assert (found.model.max_tokens, found.max_turns) == (500, 7)


def test_a_limit_that_nobody_set_is_still_a_limit(settings: Settings) -> None:
    settings.environ.update(KEYS)
    settings.project("[default]\nmax_tokens = 100000000\n")
    assert settings.resolve(model="claude-3-5-sonnet").model.max_tokens == 8192
    settings.project("[default]\nmax_tokens = 100\n")
    assert settings.resolve().model.max_tokens == 100


def test_a_profile_of_the_workspace_is_none(settings: Settings) -> None:
    settings.environ.update(KEYS)
    settings.project("[profiles.review]\nmax_turns = 3\n")
    assert "The workspace has one" in settings.fails(profile="review")


# Profiles


def test_profiles_extend_each_other(settings: Settings) -> None:
    settings.user(
        '[profiles.base]\nprovider = "mock"\nmodel = "a"\nmax_tokens = 1\ncompat = { x = 1, y = 1 }\n'
        '[profiles.middle]\nextends = "base"\nmodel = "b"\ncompat = { y = 2 }\n'
        '[profiles.top]\nextends = "middle"\nmax_turns = 9\n'
    )
    found = settings.resolve(profile="top")
    assert (found.model.model, found.model.max_tokens, found.max_turns) == ("b", 1, 9)
    assert found.model.compat == {"x": 1, "y": 2}


def test_profiles_that_extend_each_other_in_a_circle_are_refused(settings: Settings) -> None:
    settings.user('[profiles.a]\nextends = "b"\n[profiles.b]\nextends = "a"\n')
    assert settings.fails(profile="a") == "The profile `a` extends itself: a -> b -> a."


def test_an_unknown_profile_is_an_error_with_a_suggestion(settings: Settings) -> None:
    assert "Define it as `[profiles.work]`" in settings.fails(profile="work")
    settings.user('[profiles.works]\nprovider = "mock"\n')
    assert settings.fails(profile="work").startswith("There is no profile `work`. Did you mean `works`?")
    settings.user('[profiles.a]\nextends = "gone"\n')
    assert settings.fails(profile="a").startswith("There is no profile `gone`, which `a` extends.")


# MCP servers


def test_servers_are_ready_to_be_connected(settings: Settings) -> None:
    settings.environ["TOKEN_OF_MINE"] = "tok-abcdefgh"
    settings.user(
        '[mcp.servers.git]\ncommand = "git-server"\nargs = ["--repo", "${HOME_OF_MINE}"]\nenv = { DEBUG = "1" }\n'
        '[mcp.servers.web]\nurl = "https://mcp.example"\nheaders = { Authorization = "Bearer ${TOKEN_OF_MINE}" }\n'
        '[mcp.servers.old]\ntransport = "sse"\nurl = "https://old.example/sse"\n'
        '[mcp.servers.off]\ncommand = "off"\nenabled = false\n'
    )
    found = settings.resolve(provider="mock")
    assert found.mcp_servers == (
        AddMcpServer(
            "web",
            "streamable-http",
            url="https://mcp.example",
            headers={"Authorization": "Bearer tok-abcdefgh"},
        ),
        AddMcpServer("old", "sse", url="https://old.example/sse"),
    )
    assert found.warnings == ("The MCP server `git` is left out: `HOME_OF_MINE` is not set.",)
    assert "tok-abcdefgh" in found.secrets


def test_a_server_without_a_program_or_an_address_is_left_out(settings: Settings) -> None:
    settings.user('[mcp.servers.a]\ntransport = "stdio"\n[mcp.servers.b]\ncommand = "b"\n[mcp.servers.c]\nargs = []\n')
    found = settings.resolve(provider="mock")
    assert [server.name for server in found.mcp_servers] == ["b"]
    assert found.warnings == (
        "The MCP server `a` is left out: it has no `command`.",
        "The MCP server `c` is left out: it has no `url`.",
    )


def test_a_profile_can_choose_among_the_servers(settings: Settings) -> None:
    settings.user(
        '[mcp.servers.a]\ncommand = "a"\n[mcp.servers.b]\ncommand = "b"\n'
        '[profiles.p]\nmcp_servers = ["b", "bb"]\n[profiles.none]\nmcp_servers = []\n'
    )
    found = settings.resolve(provider="mock", profile="p")
    assert [server.name for server in found.mcp_servers] == ["b"]
    assert found.warnings == ("There is no MCP server `bb` in the configuration. Did you mean `b`?",)
    assert settings.resolve(provider="mock", profile="none").mcp_servers == ()


# Costs


def test_resolving_imports_nothing_heavy(tmp_path: Path) -> None:
    program = (
        "import sys; from trunkline.agents.coder.settings import resolve; "
        f"resolve({{'provider': 'mock'}}, {str(tmp_path)!r}, {{'HOME': '/nowhere'}}); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], env=unmeasured(), capture_output=True, text=True, check=True)
    heavy = {"httpx", "tomllib", "difflib", "ssl", "botocore", "mcp", "asyncio.subprocess", "trunkline.models.openai"}
    assert not heavy & set(done.stdout.split())


def test_a_key_in_the_address_that_was_typed_is_known(settings: Settings) -> None:
    found = settings.resolve(provider="openai", model="m", base_url="http://ann:not-for-you-1234@127.0.0.1:8080/v1")
    assert "not-for-you-1234" in found.secrets


def test_the_secrets_of_all_providers_and_servers_are_known(settings: Settings) -> None:
    settings.environ.update(KEYS, DEEP="sk-deep-in-a-variable", WEB_TOKEN="token-of-a-server")
    settings.user(
        '[providers.mine]\nprovider = "openai"\napi_key_env = "DEEP"\nbase_url = "https://mine.example"\n'
        '[profiles.p]\napi_key = "sk-of-a-profile"\n'
        '[mcp.servers.web]\nurl = "https://web.example"\nheaders = { Authorization = "Bearer ${WEB_TOKEN}" }\n'
    )
    found = settings.resolve(provider="anthropic")
    known = {"sk-ant-environment", "sk-deep-in-a-variable", "sk-of-a-profile", "token-of-a-server"}
    assert known <= {*found.secrets}


def test_a_workspace_that_asks_for_shorter_answers_is_followed_and_not_told_otherwise(settings: Settings) -> None:
    (settings.workspace / "trunkline.toml").write_text("[default]\nmax_tokens = 1\n")
    found = settings.resolve(provider="mock")
    assert found.model.max_tokens == 1
    assert not found.warnings


def test_one_that_asks_for_longer_ones_is_told_that_it_is_not_followed(settings: Settings) -> None:
    (settings.workspace / "trunkline.toml").write_text("[default]\nmax_tokens = 900\n")
    settings.user("[default]\nmax_tokens = 100\n")
    found = settings.resolve(provider="mock")
    assert found.model.max_tokens == 100
    assert "not followed: `default.max_tokens`" in found.warnings[0]
