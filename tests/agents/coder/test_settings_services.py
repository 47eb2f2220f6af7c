"""Providers by name that speak like another: what is known of them, what the files may change, whose key it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trunkline.agents.coder.agent import Coder
from trunkline.agents.coder.settings import CoderSettings, resolve
from trunkline.agents.with_model import made
from trunkline.base.config import user_file
from trunkline.core.faults import ConfigError, NoModel
from trunkline.models.providers import NAMES, SERVICES, ModelSettings, make

HOSTED = [name for name, service in SERVICES.items() if service.variable]
NOBODY = "http://127.0.0.1:9"


def resolved(folder: Path, environ: dict[str, str], **options: object) -> CoderSettings:
    return resolve(options, str(folder), {**os.environ, **environ})


def of_the_user(text: str) -> None:
    path = Path(user_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)


@pytest.mark.parametrize("name", HOSTED)
def test_a_name_is_enough_where_the_key_is_set(name: str, tmp_path: Path) -> None:
    service = SERVICES[name]
    model = resolved(tmp_path, {str(service.variable): "k-123456789"}, provider=name).model
    assert (model.provider, model.base_url, model.model) == (service.provider, service.base_url, service.model)
    assert (model.api_key, model.key_name) == ("k-123456789", service.variable)


@pytest.mark.parametrize("name", HOSTED)
def test_without_its_key_the_variable_that_is_read_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"^{SERVICES[name].variable} not set"):
        resolved(tmp_path, {"OPENAI_API_KEY": "of-another"}, provider=name)


def test_a_file_changes_what_is_known_of_a_name_and_keeps_the_rest(tmp_path: Path) -> None:
    of_the_user('[providers.gemini]\nmodel = "gemini-other"\napi_key = "from-the-file"\n')
    model = resolved(tmp_path, {"GEMINI_API_KEY": "from-the-environment"}, provider="gemini").model
    assert (model.model, model.base_url) == ("gemini-other", SERVICES["gemini"].base_url)
    assert (model.api_key, model.key_name) == ("from-the-file", "providers.gemini.api_key")


def test_a_key_of_the_environment_does_not_go_to_an_address_of_a_file(tmp_path: Path) -> None:
    of_the_user('[providers.gemini]\nbase_url = "https://elsewhere.example/v1"\n')
    with pytest.raises(ConfigError, match="has no key"):
        resolved(tmp_path, {"GEMINI_API_KEY": "from-the-environment"}, provider="gemini")


def test_a_table_that_says_what_it_speaks_is_the_users_own(tmp_path: Path) -> None:
    of_the_user('[providers.deepseek]\nprovider = "anthropic"\nbase_url = "http://127.0.0.1:1"\nmodel = "m"\n')
    model = resolved(tmp_path, {}, provider="deepseek").model
    assert (model.provider, model.base_url, model.model) == ("anthropic", "http://127.0.0.1:1", "m")


@pytest.mark.parametrize(
    ("environ", "url"),
    [({}, "http://127.0.0.1:11434/v1"), ({"OLLAMA_HOST": "10.0.0.7:1"}, "http://10.0.0.7:1/v1")],
)
def test_an_ollama_is_where_its_own_variable_says_and_wants_no_key(
    environ: dict[str, str], url: str, tmp_path: Path
) -> None:
    model = resolved(tmp_path, environ, provider="ollama", model="qwen3").model
    assert (model.provider, model.base_url, model.model) == ("openai", url, "qwen3")
    make(model)


def test_a_server_whose_model_nobody_named_is_to_be_asked(tmp_path: Path) -> None:
    with pytest.raises(NoModel, match="--model") as caught:
        resolved(tmp_path, {"ANTHROPIC_API_KEY": "k"}, provider="ollama")
    assert caught.value.provider == "ollama"


async def test_a_server_that_was_named_and_is_not_there_is_not_replaced_by_another(tmp_path: Path) -> None:
    environ = {"OLLAMA_HOST": NOBODY, "ANTHROPIC_API_KEY": "k"}
    with pytest.raises(ConfigError, match=r"No ollama answers at `http://127\.0\.0\.1:9`\. `ollama serve` starts it\."):
        await made(lambda options: resolve(options, str(tmp_path), environ), {"provider": "ollama"}, environ)


def test_a_name_that_does_not_exist_is_told_with_one_that_does(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Did you mean `deepseek`") as caught:
        resolved(tmp_path, {}, provider="deepsek")
    assert all(f"`{name}`" in str(caught.value) for name in NAMES)


@pytest.mark.parametrize(
    ("environ", "options", "named"),
    [
        ({"OPENAI_API_KEY": "k-123456789"}, {}, "OPENAI_API_KEY"),
        ({"TRUNKLINE_API_KEY": "k-123456789"}, {"provider": "openai"}, "TRUNKLINE_API_KEY"),
        ({"GEMINI_API_KEY": "k-123456789"}, {"provider": "gemini"}, "GEMINI_API_KEY"),
    ],
)
def test_a_refused_key_is_called_by_the_variable_that_it_was_read_from(
    environ: dict[str, str], options: dict[str, str], named: str, tmp_path: Path
) -> None:
    model = make(resolved(tmp_path, environ, **options).model)
    hints: dict[int, str] = model._service._hints  # type: ignore[attr-defined]
    assert hints[401].startswith(f"Check `{named}`")


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:7", "http://127.0.0.1:7/v1/"])
async def test_a_server_is_asked_for_its_model_where_it_was_said_to_be(base_url: str, tmp_path: Path) -> None:
    options = {"provider": "ollama", "base_url": base_url}
    with pytest.raises(ConfigError, match=r"No ollama answers at `http://127\.0\.0\.1:7`"):
        await made(lambda given: resolve(given, str(tmp_path), os.environ), options, {})


def test_a_start_that_fails_says_what_is_odd_about_the_configuration(tmp_path: Path) -> None:
    of_the_user('[default]\nprovder = "mock"\n')
    with pytest.raises(NoModel, match=r"`default\.provder`.*Did you mean `provider`"):
        resolved(tmp_path, {})


@pytest.mark.parametrize(
    ("model", "checked"),
    [
        (ModelSettings("openai", "m", "k-123456789"), True),
        (ModelSettings("mock"), True),
        # What is found out about these only when the model is made must keep the agent from being ready.
        (ModelSettings("openai", "m", "k-123456789", compat={"max_tokens_field": "tokens"}), False),
        (ModelSettings("bedrock", "m"), False),
        (ModelSettings("local", "m"), False),
    ],
)
def test_an_agent_is_ready_ahead_of_its_model_only_if_nothing_can_keep_that_from_being_made(
    model: ModelSettings, checked: bool
) -> None:
    assert Coder(CoderSettings(model, "")).checked is checked
