"""Whole cycles, against a small network that checks signatures, with a scripted brain or a model's stub."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest

from tests.support.cycles import TX_MEMBERS, World, begin, comment, tx
from tests.support.loop import hold_limits
from tests.support.provider import Gate, StubProvider
from tests.support.provider_streams import anthropic_text, openai_text
from tests.support.sns_stub import AGENT, COMMUNITY, CONTRACT, SLUG, TOKEN, SnsStub
from trunkline.core.faults import ConfigError
from trunkline.models import providers
from trunkline.models.model import Model
from trunkline.models.providers import ModelSettings
from trunkline.runner import brain, contract, cycle
from trunkline.runner.chain.settings import MISSING
from trunkline.runner.config import normalise
from trunkline.runner.cycle import IN_FLIGHT, NO_COMMUNITY
from trunkline.runner.opening import open_runner

KEY = "0x" + "4f" * 32


# What is done


async def test_a_decision_is_carried_out_in_order_with_signed_writes(world: World, sns: SnsStub) -> None:
    request = sns.thread("REQUEST_TO_HUMAN")
    status = {"action": "set_request_status", "communitySlug": SLUG, "threadId": request, "status": "resolved"}
    report = await world.run([begin(threadType="REPORT_TO_HUMAN"), comment(request), status])

    assert report.error is None
    assert [(result["action"], result["ok"]) for result in report.results] == [
        ("create_thread", True), ("comment", True), ("set_request_status", True)
    ]  # fmt: skip
    assert report.results[0]["threadId"] == sns.threads[1]["id"]
    assert report.results[1]["commentId"] == sns.comments[0]["id"]
    assert [action["action"] for action in report.actions] == ["create_thread", "comment", "set_request_status"]
    assert sns.log[:2] == [f"GET /api/agents/{AGENT}/general", "GET /api/agents/context"]
    assert [body for _, body in sns.writes] == [
        {"communityId": COMMUNITY, "title": "A title", "body": "A body", "type": "REPORT_TO_HUMAN"},
        {"body": "A result"},
        {"status": "resolved"},
    ]
    (line,) = world.lines()
    assert (line["direction"], line["agentId"], line["port"]) == ("agent_to_runner", AGENT, None)
    assert line["pid"] == os.getpid()
    assert line["actionTypes"] == ["create_thread", "comment", "set_request_status"]
    assert json.loads(line["content"])[1]["body"] == "A result"


async def test_one_failed_action_fails_neither_the_cycle_nor_the_others(world: World, sns: SnsStub) -> None:
    thread = sns.thread()
    report = await world.run([comment("cnone"), comment(thread)])

    assert report.error is None
    assert [(result["ok"], result["error"]) for result in report.results] == [(False, "Thread not found"), (True, None)]
    assert [action["threadId"] for action in report.actions] == [thread]
    assert world.told()[0]["result"] == {"ok": False, "error": "Thread not found"}


async def test_there_is_a_result_for_every_element_and_reasons_for_those_that_are_dropped(
    world: World, sns: SnsStub
) -> None:
    thread = sns.thread()
    wrong = [
        7,
        {"communitySlug": SLUG},
        {"action": "vote", "communitySlug": SLUG},
        comment(thread) | {"communitySlug": "elsewhere"},
        {"action": "comment", "threadId": thread, "body": "b"},
        comment(thread, "  "),
        comment("", "b"),
        begin(title=""),
        {**begin(), "body": None},
        begin(threadType="SYSTEM"),
        {"action": "set_request_status", "communitySlug": SLUG, "threadId": thread, "status": "rejected"},
        {"action": "request_thread_comments", "communitySlug": SLUG, "threadId": thread},
        *({**tx(thread), name: None} for name in ("threadId", "contractAddress", "functionName", "args")),
    ]
    report = await world.run([*wrong, comment(thread)])

    assert report.error is None
    assert len(report.results) == len(wrong) + 1
    assert all(not result["ok"] and result["error"] for result in report.results[:-1])
    assert [result["action"] for result in report.results[:4]] == [None, None, "vote", "comment"]
    assert report.results[-1]["ok"]
    assert len(sns.writes) == 1
    feedback, *transactions = world.told()
    assert feedback["type"] == "decision_feedback"
    assert [dropped["index"] for dropped in feedback["dropped"]] == list(range(len(wrong) - 4))
    # One that was meant to be a transaction is told as one, so that every line of that type has the same members.
    lines = [line for line in world.lines("runner_to_agent") if "tx" in line["actionTypes"]]
    assert [line["actionTypes"] for line in lines] == [["tx"]] * 4
    assert [list(each) for each in transactions] == [TX_MEMBERS] * 4
    assert all(list(each["result"]) == ["error"] for each in transactions)


@pytest.mark.parametrize("reply", ["[]", "I have nothing to say.", "", "42", '{"no": "action"}', [7], '[{"action":"x'])
async def test_a_reply_without_a_valid_action_fails_the_cycle_and_says_why_next_time(
    world: World, sns: SnsStub, reply: Any
) -> None:
    report = await world.run(reply)

    assert report.error
    assert report.actions == ()
    assert sns.writes == []
    assert len(world.lines("agent_to_runner")) == 1
    assert world.told()[0]["type"] == "decision_feedback"


async def test_a_decision_that_is_no_valid_json_is_mended(world: World, sns: SnsStub) -> None:
    thread = sns.thread()
    reply = f"Here you go:\n```json\n[{{'action': 'comment', communitySlug: '{SLUG}', // why\n"
    reply += f'"threadId": "{thread}", "body": "two\nlines",}},]\n```'
    report = await world.run(reply)

    assert report.error is None
    assert sns.writes[0][1] == {"body": "two\nlines"}
    assert world.lines()[0]["actionTypes"] == ["comment"]


async def test_an_agent_without_a_community_decides_nothing(world: World, sns: SnsStub) -> None:
    sns.community.pop("slug")
    report = await world.run([begin()])
    assert report.error == NO_COMMUNITY


async def test_a_revoked_token_is_told_with_its_status(world: World) -> None:
    report = await world.run([begin()], runnerToken="rnr_" + "f" * 64)
    assert (report.error, report.status) == ("Invalid or revoked runner credential", 401)


async def test_a_second_cycle_at_once_is_skipped(world: World, sns: SnsStub) -> None:
    import asyncio

    brain = {"kind": "scripted", "replies": [[begin()]]}
    runner = open_runner(normalise({**world.config, "brain": brain}), home=str(world.home))
    first, second = await asyncio.gather(runner.cycle(), runner.cycle())
    await runner.close()
    assert (first.error, second.error, second.skipped) == (None, IN_FLIGHT, True)
    assert len(sns.writes) == 1


async def test_two_processes_run_their_cycles_one_after_the_other(world: World, sns: SnsStub) -> None:
    import asyncio

    reports = await asyncio.gather(world.run([begin()]), world.run([begin("Another")]))
    assert [report.error for report in reports] == [None, None]
    assert [path for path in sns.log if path.endswith("context")] == ["GET /api/agents/context"] * 2
    # Whole cycles, not mixed: the first has written when the second begins to read.
    assert sns.log.index("POST /api/threads") < sns.log.index(f"GET /api/agents/{AGENT}/general", 1)


async def test_scripted_replies_go_on_where_they_were_and_the_last_repeats(world: World, sns: SnsStub) -> None:
    for _ in range(3):
        await world.run([begin("First")], [begin("Second")])
    assert [thread["title"] for thread in sns.threads] == ["First", "Second", "Second"]


# What is told


async def test_a_transaction_without_a_wallet_is_told_as_tx_feedback(world: World, sns: SnsStub) -> None:
    report = await world.run([tx(sns.thread(), value="5")])

    assert report.error is None
    assert (report.results[0]["ok"], report.results[0]["error"]) == (False, MISSING)
    assert report.actions == ()
    line = world.lines("runner_to_agent")[0]
    assert line["actionTypes"] == ["tx"]
    payload = json.loads(line["content"])
    assert list(payload) == TX_MEMBERS
    assert (payload["type"], payload["args"], payload["value"]) == ("tx_feedback", [1], "5")


async def test_feedback_is_told_once_and_only_counts_as_told_when_a_model_answered(world: World, sns: SnsStub) -> None:
    thread = sns.thread()
    await world.run([tx(thread)])
    async with StubProvider() as model:
        brain = {"kind": "openai", "baseUrl": f"{model.url}/v1", "model": "stub", "apiKey": "key-of-the-model"}
        model.error(500)
        failed = await world.run(brain=brain)
        decision = json.dumps(comment(thread))
        model.openai(openai_text(decision))
        model.openai(openai_text(decision))
        told = await world.run(brain=brain)
        again = await world.run(brain=brain)
        prompts = [request.json["messages"][-1]["content"] for request in model.requests]

    assert failed.error is not None
    assert (told.error, again.error) == (None, None)
    # A failure is not tried again in the same cycle.
    assert len(prompts) == 3
    assert ["tx_feedback" in prompt for prompt in prompts] == [True, True, False]
    assert [role["role"] for role in model.requests[0].json["messages"]] == ["system", "user"]


async def test_a_prompt_tells_the_ten_that_waited_longest_and_the_next_one_the_rest(world: World, sns: SnsStub) -> None:
    thread = sns.thread()
    await world.run([tx(thread, functionName=f"f{number:02}") for number in range(12)])
    async with StubProvider() as model:
        brain = {"kind": "openai", "baseUrl": f"{model.url}/v1", "model": "stub"}
        for _ in range(2):
            model.openai(openai_text(json.dumps(comment(thread))))
            await world.run(brain=brain)
        prompts = [request.json["messages"][-1]["content"] for request in model.requests]
    names = [[f"f{number:02}" for number in range(12) if f'"f{number:02}"' in prompt] for prompt in prompts]
    assert names == [[f"f{number:02}" for number in range(10)], ["f10", "f11"]]


async def test_a_model_that_hangs_is_left_after_the_time_limit(
    world: World, sns: SnsStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    time_is_up = hold_limits(monkeypatch, 0.5)
    async with StubProvider() as model:
        hanging = Gate()
        model.openai(openai_text("["), hanging, done=False)
        brain = {"kind": "openai", "baseUrl": f"{model.url}/v1", "model": "stub"}
        running = asyncio.create_task(world.run(brain=brain, timeoutSec=0.5))
        await hanging.reached.wait()
        time_is_up()
        report = await running
    assert report.error is not None
    assert "within 0.5 s" in report.error


async def test_an_answer_without_an_end_is_logged_as_far_as_it_came(
    world: World, sns: SnsStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brain, "MAX_REPLY", 1000)
    async with StubProvider() as model:
        model.openai(openai_text("blah " * 500))
        report = await world.run(brain={"kind": "openai", "baseUrl": f"{model.url}/v1", "model": "stub"})
    assert "more than 1000 characters" in (report.error or "")
    (line,) = world.lines("agent_to_runner")
    assert (line["actionTypes"], line["content"]) == ([], "blah " * 200)


@pytest.mark.parametrize("room", [5, len(TOKEN), len(TOKEN) + 5])
async def test_an_answer_without_an_end_shows_neither_a_secret_nor_the_half_of_one(
    world: World, sns: SnsStub, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(brain, "MAX_REPLY", len("blah ") + room)
    async with StubProvider() as model:
        model.openai(openai_text(f"blah {TOKEN} and so on"))
        report = await world.run(brain={"kind": "openai", "baseUrl": f"{model.url}/v1", "model": "stub"})
    (line,) = world.lines("agent_to_runner")
    for said in (report.output or "", line["content"]):
        assert said.startswith("blah")
        assert TOKEN[:5] not in said


async def test_what_the_network_says_about_the_model_counts_where_no_brain_is_configured(
    world: World, sns: SnsStub
) -> None:
    thread = sns.thread()
    async with StubProvider() as model:
        sns.general |= {"llmProvider": "LITELLM", "llmModel": "small", "llmBaseUrl": "http://127.0.0.1:1/elsewhere"}
        model.openai(openai_text(json.dumps(comment(thread))))
        report = await world.run(llm={"apiKey": "key-of-the-model", "baseUrl": model.url}, runtime={"maxTokens": 77})
        assert report.error is None
        request = model.requests[0]
        assert request.headers["authorization"] == "Bearer key-of-the-model"
        assert (request.json["model"], request.json["max_tokens"]) == ("small", 77)


@pytest.mark.parametrize("provider", ["LITELLM", "OPENAI", "ANTHROPIC", "GEMINI", "http://127.0.0.1", None])
async def test_the_network_does_not_choose_where_the_key_goes(
    world: World, sns: SnsStub, provider: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []

    def noted(settings: ModelSettings) -> Model:
        asked.append(settings.base_url)
        raise ConfigError("enough")

    monkeypatch.setattr(providers, "make", noted)
    async with StubProvider() as evil:
        sns.general |= {"llmProvider": provider, "llmModel": "m", "llmBaseUrl": evil.url}
        report = await world.run(llm={"apiKey": "key-of-the-model"})
        assert report.error is not None
        assert evil.requests == []
        assert evil.url not in asked
    if provider == "LITELLM":
        assert "Set `llm.baseUrl`." in report.error


@pytest.mark.parametrize(
    ("key", "provider"),
    [
        ("sk-ant-123", "OPENAI"),
        ("sk-123", "ANTHROPIC"),
        ("sk-123", "GEMINI"),
        ("AIza123", "OPENAI"),
        ("sk-123", "DEEPSEEK"),
        ("sk-123", "OLLAMA"),
        ("sk-or-123", "OPENAI"),
    ],
)
async def test_a_key_does_not_go_to_another_maker_because_the_network_says_so(
    world: World, sns: SnsStub, key: str, provider: str
) -> None:
    sns.general |= {"llmProvider": provider, "llmModel": "m"}
    report = await world.run(llm={"apiKey": key})
    assert "`llm.apiKey` is a key of" in (report.error or "")


@pytest.mark.parametrize("provider", ["MYSTERY", "LOCAL", "SCRIPTED", "mock", "https://evil.example"])
async def test_a_provider_that_nobody_knows_is_refused_and_gets_no_key(
    world: World, sns: SnsStub, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(providers, "make", lambda settings: pytest.fail("the key is on its way"))
    sns.general |= {"llmProvider": provider, "llmModel": "m"}
    report = await world.run(llm={"apiKey": "sk-123"})
    assert "Set `llm.provider` to what the key is for" in (report.error or "")


@pytest.mark.parametrize("name", [name for name, service in providers.SERVICES.items() if service.base_url])
async def test_services_are_known_by_name_with_their_own_addresses(
    world: World, sns: SnsStub, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[ModelSettings] = []

    def noted(settings: ModelSettings) -> Model:
        asked.append(settings)
        raise ConfigError("enough")

    monkeypatch.setattr(providers, "make", noted)
    service = providers.SERVICES[name]
    sns.general |= {"llmProvider": name.upper(), "llmModel": ""}
    await world.run(llm={"apiKey": "key-of-the-service"})
    sns.general |= {"llmProvider": "ANTHROPIC", "llmModel": ""}
    key = {"gemini": "AIza1", "openrouter": "sk-or-1"}.get(name, "sk-1")
    await world.run(llm={"apiKey": key, "provider": name})
    assert [(each.provider, each.base_url, each.model) for each in asked] == [
        (service.provider, service.base_url, service.model)
    ] * 2


async def test_the_configuration_says_whose_key_it_is(world: World, sns: SnsStub) -> None:
    thread = sns.thread()
    async with StubProvider() as model:
        sns.general |= {"llmProvider": "OPENAI", "llmModel": "small"}
        model.anthropic(anthropic_text(json.dumps(comment(thread))))
        llm = {"apiKey": "key-of-the-model", "provider": "Anthropic", "baseUrl": model.url}
        report = await world.run(llm=llm)
        assert report.error is None
        assert model.requests[0].headers["x-api-key"] == "key-of-the-model"
    with pytest.raises(ConfigError, match=r"`llm\.provider` is `nobody`"):
        await world.run(llm={"apiKey": "k", "provider": "nobody"})


async def test_every_action_of_a_decision_is_carried_out_and_reported(world: World, sns: SnsStub) -> None:
    thread = sns.thread()
    request = sns.thread("REQUEST_TO_HUMAN")
    status = {"action": "set_request_status", "communitySlug": SLUG, "threadId": request, "status": "Resolved"}
    decided = [comment(thread), begin(threadType="report_to_human"), {"action": "dance", "communitySlug": SLUG}, status]
    numbered = "\n".join(f"{number}. `{json.dumps(each)}`" for number, each in enumerate(decided, 1))
    report = await world.run(f"This is what I do:\n{numbered}")
    names = ["comment", "create_thread", "dance", "set_request_status"]
    assert [(result["action"], result["ok"]) for result in report.results] == [
        (name, name != "dance") for name in names
    ]
    assert [body for _, body in sns.writes] == [
        {"body": "A result"},
        {"communityId": COMMUNITY, "title": "A title", "body": "A body", "type": "REPORT_TO_HUMAN"},
        {"status": "resolved"},
    ]
    assert any("There is no such action" in json.dumps(told) for told in world.told())
    assert world.lines("agent_to_runner")[0]["actionTypes"] == names


@pytest.mark.parametrize("word", ["report_to_human", "Report_To_Human", " REPORT_TO_HUMAN "])
def test_words_of_a_list_may_be_written_in_any_case(word: str) -> None:
    (action,) = contract.check([begin(threadType=word)], [SLUG])
    assert isinstance(action, contract.ContractAction)
    assert action.get("threadType") == "REPORT_TO_HUMAN"
    (action,) = contract.check([comment("t", commentKind=word)], [SLUG])
    assert isinstance(action, contract.Invalid)


async def test_any_agent_can_be_the_brain(world: World, sns: SnsStub) -> None:
    # What it echoes is the prompt, which holds the context and no action.
    report = await world.run(brain={"kind": "agent", "name": "echo"})
    assert report.error is not None
    assert report.output is not None
    assert f'"slug":"{SLUG}"' in report.output


# Secrets


@pytest.mark.parametrize("spelling", [KEY, KEY[2:].upper(), TOKEN, "hidden-in-the-environment"])
async def test_a_post_with_a_known_secret_is_refused_and_the_secret_shown_nowhere(
    world: World, sns: SnsStub, spelling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "hidden-in-the-environment")
    thread = sns.thread()
    execution = {"rpcUrl": "http://127.0.0.1:1", "privateKey": KEY}
    decision = [comment(thread, f"the key is {spelling}."), begin(title=f"x{spelling}x"), comment(thread)]
    report = await world.run(decision, execution=execution)

    assert [result["ok"] for result in report.results] == [False, False, True]
    assert "secret" in report.results[0]["error"]
    assert [body for _, body in sns.writes] == [{"body": "A result"}]
    assert any("secret" in feedback["result"]["error"] for feedback in world.told())
    everything = json.dumps(report.line()) + repr(report) + world.log.read_text()
    for path in world.home.rglob("*"):
        if path.is_file():
            everything += path.read_bytes().decode("latin-1")
    assert spelling.lower() not in everything.lower()


async def test_an_output_is_cleaned_before_it_is_cut(
    world: World, sns: SnsStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycle, "MAX_OUTPUT", 10)
    report = await world.run(f"....{TOKEN}")
    assert report.output == "....[redac"


async def test_a_transaction_with_a_secret_in_it_is_told_as_one_without_it(world: World, sns: SnsStub) -> None:
    spelled = ":".join(KEY[2:][place : place + 2] for place in range(0, 64, 2))
    execution = {"rpcUrl": "http://127.0.0.1:1", "privateKey": KEY}
    report = await world.run([tx(sns.thread(), args=[spelled], value="1")], execution=execution)
    assert "secret" in report.results[0]["error"]
    (told,) = world.told()
    assert list(told) == TX_MEMBERS
    assert (told["functionName"], told["args"], told["value"], list(told["result"])) == ("inc", [], "1", ["error"])
    assert world.lines("runner_to_agent")[0]["actionTypes"] == ["tx"]


async def test_a_secret_in_the_context_does_not_reach_the_model(world: World, sns: SnsStub) -> None:
    thread = sns.thread(title=f"found {TOKEN}")
    async with StubProvider() as model:
        model.openai(openai_text(json.dumps(comment(thread))))
        await world.run(brain={"kind": "openai", "baseUrl": f"{model.url}/v1", "model": "stub"})
        assert TOKEN not in model.requests[0].body.decode()


# Reading, where it is allowed


async def test_what_was_read_is_told_next_time(world: World, sns: SnsStub) -> None:
    thread = sns.thread()
    await world.run([comment(thread, "Something said")])
    ask = {"communitySlug": SLUG}
    decision = [
        {**ask, "action": "request_contract_source", "contractAddress": CONTRACT.upper().replace("X", "x")},
        {**ask, "action": "request_thread_comments", "threadId": thread, "commentLimit": 3},
        {**ask, "action": "request_contract_source", "contractId": "cunknown"},
    ]
    report = await world.run(decision, readActions=True)

    assert [result["ok"] for result in report.results] == [True, True, False]
    source, comments, unknown = world.told()
    assert (source["type"], source["result"]["source"]) == ("contract_source_feedback", "contract Vault {}")
    assert comments["result"]["comments"][0]["body"] == "Something said"
    assert unknown["result"] == {"ok": False, "error": "Contract not found in this community context."}
