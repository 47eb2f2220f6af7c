"""What is chosen when nobody says what: keys before servers, servers before pulled models, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.model_servers import NOBODY, QWEN, llama_server, ollama
from trunkline.base.extras import install_hint
from trunkline.core.faults import ConfigError
from trunkline.models import catalog, providers
from trunkline.models.discover import KEYS, ModelChoice, discover
from trunkline.models.providers import ModelSettings

NO_SERVERS = {"OLLAMA_HOST": NOBODY}


async def found(**environ: str) -> ModelChoice:
    return await discover(NO_SERVERS | environ, llama_server_url=NOBODY)


@pytest.mark.parametrize("variable", list(KEYS))
async def test_a_key_is_used_with_the_provider_that_it_opens(variable: str) -> None:
    choice = await found(**{variable: "sk-0123"})
    assert choice.why == f"`{variable}` is set"
    assert choice.settings.api_key == "sk-0123"
    assert choice.settings.model
    providers.check(choice.settings)


async def test_anthropic_goes_before_openai_and_both_before_the_others() -> None:
    every = dict.fromkeys(KEYS, "sk-0123")
    assert (await found(**every)).settings.provider == "anthropic"
    del every["ANTHROPIC_API_KEY"]
    assert (await found(**every)).why == "`OPENAI_API_KEY` is set"


async def test_gemini_is_reached_through_its_compatible_endpoint() -> None:
    settings = (await found(GEMINI_API_KEY="k", OPENAI_BASE_URL="https://elsewhere")).settings
    assert (settings.provider, settings.model) == ("openai", "gemini-flash-latest")
    assert settings.base_url == "https://generativelanguage.googleapis.com/v1beta/openai"


async def test_the_address_that_belongs_to_a_key_goes_with_it() -> None:
    choice = await found(ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL="https://proxy.example")
    assert choice.settings.base_url == "https://proxy.example"


async def test_an_empty_key_is_none() -> None:
    assert (await found(ANTHROPIC_API_KEY="", OPENAI_API_KEY="k")).why == "`OPENAI_API_KEY` is set"


async def test_an_openai_address_on_this_machine_needs_no_key() -> None:
    choice = await found(OPENAI_BASE_URL="http://127.0.0.1:1234/v1")
    assert (choice.settings.provider, choice.settings.base_url) == ("openai", "http://127.0.0.1:1234/v1")


@pytest.mark.parametrize("variable", ["AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"])
async def test_amazons_variables_mean_bedrock(variable: str) -> None:
    choice = await found(**{variable: "x", "AWS_REGION": "eu-west-1"})
    assert choice.why.startswith(f"`{variable}` is set, and servers on this machine were not looked for")
    assert "`--provider`" in choice.why
    assert (choice.settings.provider, choice.settings.region) == ("bedrock", "eu-west-1")


async def test_a_google_project_means_vertex() -> None:
    choice = await found(VERTEX_PROJECT_ID="p", VERTEX_REGION="europe-west1")
    expected = ("vertex", "p", "europe-west1")
    assert (choice.settings.provider, choice.settings.project, choice.settings.region) == expected


async def test_without_the_package_that_signs_the_variable_is_only_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.models.discover.find_spec", lambda _: None)
    with pytest.raises(ConfigError) as caught:
        await found(AWS_PROFILE="x", AWS_ACCESS_KEY_ID="y", VERTEX_PROJECT_ID="p")
    assert str(caught.value).count(install_hint("bedrock")) == 1
    assert str(caught.value).count(install_hint("vertex")) == 1


async def test_a_key_goes_before_a_server_and_no_server_is_asked() -> None:
    async with ollama(QWEN) as stub:
        choice = await discover({"OLLAMA_HOST": stub.url, "OPENAI_API_KEY": "k"}, llama_server_url=stub.url)
        assert choice.why == "`OPENAI_API_KEY` is set"
        assert stub.requests == []


async def test_an_ollama_is_used_with_its_model() -> None:
    async with ollama(QWEN) as stub:
        choice = await discover({"OLLAMA_HOST": stub.url}, llama_server_url=NOBODY)
        assert choice.why == f"Ollama answers at `{stub.url}` with model `qwen3:8b`"
        assert choice.settings == ModelSettings("openai", "qwen3:8b", base_url=f"{stub.url}/v1")
        providers.check(choice.settings)


async def test_a_llama_server_is_used_with_its_model() -> None:
    async with llama_server({"status": "ok"}, {"data": [{"id": "/models/some.gguf"}]}) as stub:
        choice = await discover(NO_SERVERS, llama_server_url=stub.url)
        assert choice.why == f"llama-server answers at `{stub.url}` with model `some.gguf`"
        assert choice.settings == ModelSettings("openai", "/models/some.gguf", base_url=f"{stub.url}/v1")


async def test_an_ollama_without_models_is_passed_over_for_a_llama_server() -> None:
    async with ollama() as empty, llama_server({"status": "ok"}, {"data": [{"id": "m"}]}) as other:
        choice = await discover({"OLLAMA_HOST": empty.url}, llama_server_url=other.url)
        assert choice.settings.base_url == f"{other.url}/v1"


async def test_an_ollama_without_models_is_said_so_when_nothing_else_is_found() -> None:
    async with ollama() as stub:
        with pytest.raises(ConfigError, match="but has no model: `ollama pull"):
            await discover({"OLLAMA_HOST": stub.url}, llama_server_url=NOBODY)


def pretend_to_have_pulled(name: str) -> None:
    entry = catalog.find(name)
    folder = Path(catalog.place(entry))
    folder.mkdir(parents=True)
    for file in entry.files:
        with (folder / file.name).open("wb") as made:
            made.truncate(file.size)


async def test_a_pulled_model_is_the_last_resort() -> None:
    pretend_to_have_pulled("smollm2-135m")
    choice = await found()
    assert choice.settings == ModelSettings("local", "smollm2-135m")


async def test_a_pulled_model_comes_with_what_was_missed_and_what_it_is_good_for() -> None:
    pretend_to_have_pulled("smollm2-135m")
    async with ollama() as stub:
        why = (await discover({"OLLAMA_HOST": stub.url}, llama_server_url=NOBODY)).why
    assert why.startswith(
        "no key is set, no Ollama and no `llama-server` with a model was found, and this one was pulled"
    )
    assert "It is a small demo model" in why
    assert f"Ollama answers at `{stub.url}`, but has no model" in why


async def test_nothing_found_lists_the_ways() -> None:
    with pytest.raises(ConfigError) as caught:
        await found()
    for way in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "Ollama", "llama-server", "trunkline models pull smollm2-135m"):
        assert way in str(caught.value)
    assert "pip install" not in str(caught.value)


async def test_without_an_engine_it_is_named_before_the_model_that_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.models.installed.find_spec", lambda _: None)
    with pytest.raises(ConfigError) as caught:
        await found()
    told = str(caught.value)
    assert 0 < told.index(install_hint("local")) < told.index("trunkline models pull smollm2-135m")
