"""A real model behind the Tryll server, against the same model called by its own library."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bench._measure import Goal, Row, spread
from bench._peers import PYTHON, Peer
from bench._tryll_wire import Server

from trunkline.core.faults import Fault
from trunkline.models import catalog, fetch
from trunkline.models.catalog_entry import USUAL_WINDOW
from trunkline.models.llama_server import default_threads
from trunkline.wires.tryll.drive import Tryll
from trunkline.wires.tryll.drive.agent import RemoteAgent
from trunkline.wires.tryll.messages import (
    ConfigureSessionRequest,
    GenerateParams,
    GraphDescription,
    InferenceEngine,
    NodeDescription,
    SamplingOverrides,
)

DIRECT = str(Path(__file__).with_name("_tryll_direct.py"))
MODEL = "smollm2-135m"

#: As fast as the library, but for what a frame costs.
STACK_GOAL = Goal(">=", 0.95)
WARM_GOAL = Goal(">=", 10.0)

SYSTEM = "You are a miller who likes to tell long stories."
QUESTION = "Tell me story number {} about the old mill, the river and the people who live there."
#: Enough to see that the model has begun to answer.
FEW_TOKENS = 4


@dataclass(frozen=True)
class Answer:
    """One answer, as its reader sees it."""

    first: float
    """Seconds to its first piece."""
    whole: float
    tokens: int


def weights() -> str | None:
    """The file of the model, fetched if need be; None where that is not possible."""
    if find_spec("xllamacpp") is None:
        return None
    try:
        return asyncio.run(fetch.pull(catalog.find(MODEL)))
    except (Fault, OSError):
        return None


def model_rows(home: str, path: str, tokens: int, answers: int, long_prompts: int, words: int) -> list[Row]:
    """All rows."""
    with asyncio.Runner() as runner, Server("graphs", home) as server:
        stack = runner.run(Stack.open(server.port, tokens))
        with Direct(home, path, tokens) as direct:
            pairs = _answers(runner, stack, direct, answers)
        turns = [runner.run(stack.two_turns(number, words)) for number in range(long_prompts)]
        runner.run(stack.close())
    return [
        _first_row("first AnswerText", [(ours.first, theirs.first) for ours, theirs in pairs], "xllamacpp", STACK_GOAL),
        _tokens_row([(ours.tokens / ours.whole, theirs.tokens / theirs.whole) for ours, theirs in pairs]),
        _first_row(f"first AnswerText of turn 2, {words} words before it", turns, "turn 1", WARM_GOAL),
    ]


def _answers(runner: asyncio.Runner, stack: Stack, direct: Direct, count: int) -> list[tuple[Answer, Answer]]:
    """The same questions to both, by turns. The first one, which finds every cache cold, does not count."""
    pairs = []
    for number in range(count + 1):
        question = QUESTION.format(number)
        if number % 2:
            theirs = direct.ask(question)
            pairs.append((runner.run(stack.ask(question)), theirs))
        else:
            pairs.append((runner.run(stack.ask(question)), direct.ask(question)))
    return pairs[1:]


def _first_row(name: str, pairs: list[tuple[float, float]], control: str, goal: Goal) -> Row:
    """A row about a wait: the ratio is how many times as fast the subject is."""
    ours, theirs = spread([one * 1e3 for one, _ in pairs]), spread([other * 1e3 for _, other in pairs])
    return Row(name, "ms", ours, control, theirs, spread([other / one for one, other in pairs]), goal=goal)


def _tokens_row(pairs: list[tuple[float, float]]) -> Row:
    """A row about tokens per second, from the question to the end."""
    ours, theirs = spread([one for one, _ in pairs]), spread([other for _, other in pairs])
    return Row(
        "tokens", "/s", ours, "xllamacpp", theirs, spread([one / other for one, other in pairs]), goal=STACK_GOAL
    )


class Stack:
    """An agent with a real model, by our client over our server."""

    def __init__(self, client: Tryll, agent: RemoteAgent) -> None:
        self._client = client
        self._agent = agent

    @classmethod
    async def open(cls, port: int, tokens: int) -> Stack:
        config = ConfigureSessionRequest(inference_engine=InferenceEngine.LLAMA_CPP)
        client = await Tryll("127.0.0.1", port, config=config).connect()
        return cls(client, await client.create_agent(graph(SYSTEM, tokens)))

    async def ask(self, question: str) -> Answer:
        """Ask, as if nothing had been said before."""
        await self._agent.restore(())
        return await answer(self._agent, question)

    async def two_turns(self, number: int, words: int) -> tuple[float, float]:
        """The seconds to the first piece of the second turn and of the first, with a prompt that is new."""
        # What is different stands first: nothing of it was read before.
        prompt = " ".join([f"This is village {number}.", *(f"House {house} is old." for house in range(words // 4))])
        async with await self._client.create_agent(graph(prompt, FEW_TOKENS)) as agent:
            first = await answer(agent, "Who lives here?")
            second = await answer(agent, "Who else?")
        return second.first, first.first

    async def close(self) -> None:
        await self._client.close()


async def answer(agent: RemoteAgent, question: str) -> Answer:
    """Read an answer to its end."""
    started = time.perf_counter()
    first = None
    async with agent.stream(question) as reply:
        async for _ in reply:
            first = first or time.perf_counter() - started
        turn = await reply.result()
    if first is None:
        raise AssertionError("the model said nothing")
    return Answer(first, time.perf_counter() - started, turn.tokens_generated)


def graph(system: str, tokens: int) -> GraphDescription:
    """A model that always says the same, as far as it goes."""
    sampling = SamplingOverrides(temperature=0.0, max_tokens=tokens)
    params = GenerateParams(MODEL, system, stream=True, sampling=sampling)
    return GraphDescription((NodeDescription("say", params),), "say")


class Direct(Peer):
    """The library without anything else."""

    def __init__(self, home: str, path: str, tokens: int) -> None:
        super().__init__([PYTHON, DIRECT, path, str(USUAL_WINDOW), str(default_threads())], home)
        self._tokens = tokens
        self.line()

    def ask(self, question: str) -> Answer:
        """Ask, as if nothing had been said before."""
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
        request = {"messages": messages, "max_tokens": self._tokens, "temperature": 0.0, "stream": True}
        self.send(json.dumps(request | {"stream_options": {"include_usage": True}, "cache_prompt": True}).encode())
        return Answer(*json.loads(self.line()))
