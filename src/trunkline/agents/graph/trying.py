"""Runs the written tests of a graph: each is a conversation of its own, and begins with empty memories.

    async with GraphTester(file, "graph:smith.yaml", folder) as tester:
        tried = await tester.run(file.tests[0])

The graph may call all of its own tools, which nobody carries out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any, Literal, Self

from trunkline.agents.graph.conversation import GraphFileAgent
from trunkline.agents.graph.drawing import recorded
from trunkline.agents.graph.drawing.recorded import RecordedNode
from trunkline.agents.graph.hosting import SessionHost
from trunkline.agents.graph.patterns import PatternError
from trunkline.agents.graph.tried_turn import TurnHeard
from trunkline.agents.graph.written_tests import NONE, Expectation, WrittenTest, WrittenTurn, as_texts, holds
from trunkline.agents.graph.yaml_graph import GraphFile
from trunkline.base.place import Place
from trunkline.base.values import Value
from trunkline.core.approvals import Policy
from trunkline.core.events import UserMessage
from trunkline.core.faults import ConfigError
from trunkline.core.graph.description import NodeDescription, SamplingOverrides
from trunkline.core.ids import new_id
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session

Outcome = Literal["passed", "failed", "skipped"]
#: Letters of an answer that a failure repeats.
SHOWN = 300
_CLASSIFIERS = ("ClassifyIntent", "ClassifyIntentLLM")


class Failure(Value):
    """Something that was expected, and did not happen. `key` is empty for a turn that failed."""

    key: str
    expected: str
    happened: str
    place: Place | None = None


class TurnResult(Value):
    """A turn of a test, as it was."""

    say: str
    text: str
    status: str
    error: str
    path: tuple[RecordedNode, ...]
    tools: tuple[tuple[str, Mapping[str, Any]], ...]
    intent: str
    memory: Mapping[str, tuple[str, ...]]
    """What was written down so far, by the memory."""
    ms: float
    failures: tuple[Failure, ...] = ()
    place: Place | None = None

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that ran, in their order."""
        return tuple(step.name for step in self.path)


class TriedTest(Value):
    """What came of a test. `why` it was not run, if it was not."""

    test: WrittenTest
    outcome: Outcome
    ms: float = 0.0
    turns: tuple[TurnResult, ...] = ()
    why: str = ""


class GraphTester:
    """Runs tests one after the other. The models stay loaded in between."""

    def __init__(
        self,
        file: GraphFile,
        name: str,
        folder: str,
        *,
        model: str = "",
        seed: int | None = None,
        models_dir: str | None = None,
        on_progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`model`: in place of the file's default; `mock` needs no weights. `seed`: that of every node."""
        file = file if seed is None else file.replace(graph=file.graph.replace(nodes=_seeded(file, seed)))
        self.file = file
        self._agent = GraphFileAgent(file, name, folder, models_dir=models_dir, keeps_memories=False)
        self._folder = folder
        self._model = model
        self._mock = self._agent.runs_mock(model or file.default_model)
        self._on_progress = on_progress
        self._held: SessionHost | None = None

    async def __aenter__(self) -> Self:
        """Look whether all models can be had.

        Raises:
            ConfigError: one cannot, or is not for a graph to name.
        """
        self._held = self._agent.enter(self._model, self._folder)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            await self._agent.leave(held)

    async def run(self, test: WrittenTest) -> TriedTest:
        """Hold the conversation of a test, to its end.

        Raises:
            ConfigError: there is no agent to hold it with: a model or a storage cannot be had.
        """
        if test.models != "any" and (test.models == "mock") != self._mock:
            return TriedTest(test, "skipped", why="it needs real models" if self._mock else "it needs the mock engine")
        began = perf_counter()
        session = await Session.open(
            self._agent,
            MemoryLog(new_id(), keep=0),
            Policy(allow=self._agent.tools, interactive=False),
            workspace=self._folder,
            options={**({"model": self._model} if self._model else {}), "diagnostics": True},
        )
        turns: list[TurnResult] = []
        try:
            for turn in test.turns:
                turns.append(await self._turn(session, turn, turns[-1].memory if turns else {}))
        finally:
            await session.close()
        failed = any(turn.failures for turn in turns)
        return TriedTest(test, "failed" if failed else "passed", _ms(began), tuple(turns))

    async def _turn(self, session: Session, turn: WrittenTurn, memory: Mapping[str, tuple[str, ...]]) -> TurnResult:
        began = perf_counter()
        heard = TurnHeard(self._on_progress)
        session.attach(heard)
        session.submit(UserMessage(turn.say))
        await session.at_rest()
        session.detach(heard)
        if heard.diagnostics is None:
            raise ConfigError(heard.failed or "The graph did not answer.")
        found = recorded.read(dict(heard.diagnostics))
        result = TurnResult(
            turn.say,
            heard.text,
            "error" if heard.failed else heard.outcome,
            heard.failed,
            found.steps,
            tuple(heard.tools),
            _intent(found.steps),
            _remembered(memory, found.steps),
            _ms(began),
            place=turn.place,
        )
        return result.replace(failures=tuple(failures(turn, result)))


def failures(turn: WrittenTurn, result: TurnResult) -> Iterator[Failure]:
    """What was expected of a turn, and did not happen. Where no `status` is, it is expected to succeed."""
    if result.status != "success" and not any(each.key == "status" for each in turn.expect):
        yield Failure("", "a turn that succeeds", f"it ended with {result.status}: {result.error}", turn.place)
    for each in turn.expect:
        try:
            told = _unmet(each, result)
        except (PatternError, TimeoutError) as error:
            why = "it takes too long" if isinstance(error, TimeoutError) else error
            told = _wanted(each), f"the pattern could not be looked for: {why}"
        if told is not None:
            yield Failure(each.key, *told, each.place or turn.place)


def _unmet(each: Expectation, result: TurnResult) -> tuple[str, str] | None:
    """What was expected and what happened; None if that is the same."""
    wanted = each.wanted[0] if each.wanted else ""
    match each.key:
        case "text":
            met, happened = holds(wanted, result.text), f"the answer was {_quoted(result.text)}"
        case "not_text":
            met, happened = not holds(wanted, result.text), f"the answer was {_quoted(result.text)}"
        case "path":
            met, happened = _is_part(each.wanted, result.nodes), f"the path was {_listed(result.nodes)}"
        case "visits":
            met, happened = wanted in result.nodes, f"the path was {_listed(result.nodes)}"
        case "avoids":
            met, happened = wanted not in result.nodes, f"the path was {_listed(result.nodes)}"
        case "tool":
            met = any(_is_call(each, name, arguments) for name, arguments in result.tools)
            met = not result.tools if wanted == NONE else met
            happened = f"it called {_calls(result.tools)}"
        case "intent":
            met, happened = (result.intent or NONE) == wanted, f"the intent was {result.intent or NONE}"
        case "status":
            met = result.status == wanted
            happened = f"it ended with {result.status}{f': {result.error}' if result.error else ''}"
        case _:
            kept = result.memory.get(wanted, ())
            met, happened = any(holds(each.wanted[1], text) for text in kept), f"it holds {_listed(kept)}"
    return None if met else (_wanted(each), happened)


def _wanted(each: Expectation) -> str:
    """An expectation as it is written."""
    match each.key:
        case "path":
            return f"path: {_listed(each.wanted)}"
        case "memory":
            return f"memory: {each.wanted[0]}: {each.wanted[1]}"
        case _:
            arguments = f" {dict(each.arguments)}" if each.arguments else ""
            return f"{each.key}: {each.wanted[0]}{arguments}"


def _is_part(wanted: Sequence[str], walked: Sequence[str]) -> bool:
    """Whether some nodes ran one right after the other."""
    count = len(wanted)
    return any(tuple(walked[at : at + count]) == tuple(wanted) for at in range(len(walked) - count + 1))


def _is_call(each: Expectation, name: str, arguments: Mapping[str, Any]) -> bool:
    given = as_texts(arguments)
    return name == each.wanted[0] and all(
        key in given and _is_argument(wanted, given[key]) for key, wanted in each.arguments.items()
    )


def _is_argument(wanted: str, given: str) -> bool:
    return holds(wanted, given) if wanted[:1] == wanted[-1:] == "/" and len(wanted) > 2 else wanted == given


def _intent(steps: Sequence[RecordedNode]) -> str:
    """The last that was found, whether or not its node told anybody."""
    found = [step.data.get("result.intent", "") for step in steps if step.type in _CLASSIFIERS and step.exit == "found"]
    return found[-1] if found else ""


def _remembered(before: Mapping[str, tuple[str, ...]], steps: Sequence[RecordedNode]) -> Mapping[str, tuple[str, ...]]:
    found = dict(before)
    for step in steps:
        if step.type == "Remember" and step.data.get("remembered"):
            name = step.data.get("memory", "")
            found[name] = (*found.get(name, ()), step.data["remembered"])
    return found


def _seeded(file: GraphFile, seed: int) -> tuple[NodeDescription, ...]:
    return tuple(_with_seed(node, seed) for node in file.graph.nodes)


def _with_seed(node: NodeDescription, seed: int) -> NodeDescription:
    params = node.params
    if params is None or "sampling" not in type(params).__fields__:
        return node
    sampling = getattr(params, "sampling", None) or SamplingOverrides()
    return node.replace(params=params.replace(sampling=sampling.replace(seed=seed)))


def _calls(tools: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    return ", ".join(f"{name} {dict(arguments)}" if arguments else name for name, arguments in tools) or "no tool"


def _listed(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


def _quoted(text: str) -> str:
    return f'"{text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."}"'


def _ms(began: float) -> float:
    return round((perf_counter() - began) * 1000, 3)
