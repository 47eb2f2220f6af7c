"""Agents by name: ours, those in somebody's module, and programs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agents.helpers import play, request, text_of
from tests.packaging.commands import ECHO_TEXT, echo_turn
from tests.support.agent_process import AgentProcess
from trunkline.agents import registry
from trunkline.agents.external.acp import AcpAgent
from trunkline.agents.external.jsonstream import JsonStreamAgent
from trunkline.core.faults import ConfigError, ProviderError
from trunkline.wires.acp import hub

#: The installed program, not `python -m`: that one has the current directory on its path by itself.
SCRIPT = str(Path(sys.executable).with_name("trunkline"))

MY_AGENT = """
from trunkline import Capabilities, Conversation, OpenRequest, TextDelta, TurnEnded


class MyConversation:
    session_id = None

    async def turn(self, message):
        from my_words import GREETING  # beside this file, and imported late

        yield TextDelta(GREETING + message.text)
        yield TurnEnded("success")

    async def cancel(self):
        pass

    async def close(self):
        pass


class MyAgent:
    name = "mine"
    capabilities = Capabilities()

    def __init__(self, name="mine"):
        self.name = name

    async def open(self, request: OpenRequest) -> Conversation:
        return MyConversation()


def make_agent():
    return MyAgent("made")


an_agent = MyAgent("ready-made")
"""

Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes modules into the current directory, which is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    write("my_agent.py", MY_AGENT)
    write("my_words.py", "GREETING = 'You said: '\n")
    yield write
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(str(tmp_path)) or name == "my_package":
            del sys.modules[name]


def refusal(name: str) -> str:
    with pytest.raises(ConfigError) as caught:
        registry.make(name, {})
    return str(caught.value)


# Ours


@pytest.mark.parametrize(
    ("name", "options"), [("echo", {}), ("echo", {"script": None, "model": "any"}), ("scripted", {"script": "tour"})]
)
async def test_every_agent_can_be_made_by_name_and_answers(name: str, options: dict[str, object]) -> None:
    agent = registry.make(name, options)
    assert agent.name == name
    assert name in registry.names()
    conversation = await agent.open(request())
    assert "hello" in text_of(await play(conversation, "well, hello"))
    await conversation.close()


def test_an_unknown_agent_is_refused_with_a_suggestion_and_the_list() -> None:
    assert refusal("ecco") == (
        "There is no agent `ecco`. Did you mean `echo`? The agents are `coder`, `echo`, `scripted`; "
        "`MODULE:NAME`, `jsonstream:COMMAND`, `acp:COMMAND`, `agentproc:PROFILE`, `scripted:SCRIPT`, "
        "`graph:GRAPH`, `tryll:HOST:PORT`, `model:NAME` name yours."
    )


def test_the_scripted_agent_asks_for_its_script() -> None:
    with pytest.raises(ConfigError, match=r"Write `scripted:FILE`, or `scripted:NAME` with one of .*`tour`"):
        registry.make("scripted", {})


async def test_a_script_can_be_named_wherever_an_agent_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = await registry.make("scripted:tour", {}).open(request())
    assert "hello" in text_of(await play(conversation, "well, hello"))
    await conversation.close()
    (tmp_path / "mine.yaml").write_text("turns:\n- steps:\n  - text: hi\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert (
        registry.make("scripted:~/mine.yaml", {}).capabilities
        == registry.make(f"scripted:{tmp_path}/mine.yaml", {}).capabilities
    )
    assert "`scripted:` needs a script. A file, or one of " in refusal("scripted:")
    assert "Did you mean `tour`?" in refusal("scripted:tuor")


def test_the_echo_agent_costs_no_import_of_the_others() -> None:
    program = (
        "import sys; from trunkline.agents import registry; registry.make('echo', {});"
        "print([m for m in sys.modules if m.startswith('trunkline.agents.') or m in ('yaml', 'difflib', 'shlex')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert eval(done.stdout) == ["trunkline.agents.registry", "trunkline.agents.attachments", "trunkline.agents.echo"]


# Somebody's module


@pytest.mark.parametrize(
    ("name", "calls_itself"),
    [("my_agent:MyAgent", "mine"), ("my_agent:make_agent", "made"), ("my_agent:an_agent", "ready-made")],
)
async def test_an_agent_is_a_class_a_function_or_an_instance_in_a_module_here(
    write: Write, name: str, calls_itself: str
) -> None:
    agent = registry.make(name, {})
    assert agent.name == calls_itself
    conversation = await agent.open(request())
    assert text_of(await play(conversation, "hello")) == "You said: hello"


def test_a_module_in_a_package_is_named_with_dots(write: Write) -> None:
    write("my_package/deep.py", MY_AGENT)
    assert registry.make("my_package.deep:MyAgent", {}).name == "mine"


def test_what_is_installed_is_not_replaced_by_what_lies_in_the_current_directory(write: Write) -> None:
    write("yaml.py", MY_AGENT)
    assert "has no `MyAgent`" in refusal("yaml:MyAgent")
    assert os.getcwd() not in sys.path


def test_a_module_that_is_absent_is_told_with_where_it_was_looked_for(write: Write, tmp_path: Path) -> None:
    assert refusal("my_agnt:MyAgent") == (
        f"There is no module `my_agnt`. Did you mean `my_agent`? It was looked for in `{tmp_path}`, in `PYTHONPATH`, "
        f"and among the packages of `{sys.executable}`."
    )
    assert refusal("my_agent.inner:MyAgent").startswith("There is no module `my_agent.inner`.")


def test_what_a_module_misses_itself_is_not_taken_for_the_module(write: Write, tmp_path: Path) -> None:
    write("needy.py", "\nimport no_such_thing\n")
    assert refusal("needy:A") == (
        "The module `needy` cannot be imported: ModuleNotFoundError: No module named 'no_such_thing' "
        f"(`{tmp_path}/needy.py`, line 2)"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 / 0\n", "ZeroDivisionError: division by zero (`{}/bad.py`, line 1)"),
        ("def f(:\n", "SyntaxError: invalid syntax (bad.py, line 1)"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3 (`{}/bad.py`, line 2)"),
        ("raise ValueError\n", "ValueError (`{}/bad.py`, line 1)"),
    ],
)
def test_an_import_that_fails_is_told_with_its_exception_and_its_place(
    write: Write, tmp_path: Path, text: str, told: str
) -> None:
    write("bad.py", text)
    assert refusal("bad:A") == "The module `bad` cannot be imported: " + told.format(tmp_path)


def test_an_attribute_that_is_missing_is_told_with_a_suggestion(write: Write, tmp_path: Path) -> None:
    assert refusal("my_agent:MyAgnet") == (
        f"The module `my_agent` (`{tmp_path}/my_agent.py`) has no `MyAgnet`. Did you mean `MyAgent`?"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("A = 3", "not an agent but of type `int`: `name` is missing; `capabilities` is missing; `open` is missing."),
        ("class A:\n  name = 'a'\n  async def open(self, request): ...", "of type `A`: `capabilities` is missing."),
        (
            "class A:\n  name = None\n  capabilities = {}\n  open = 1",
            (
                "`name` is of type `NoneType` and must be of type `str`; "
                "`capabilities` is of type `dict` and must be of type `Capabilities`; "
                "`open` is of type `int` and must be a method."
            ),
        ),
        ("import json as A", "not an agent but the module `json`: "),
        ("def A(key): ...", "cannot be called without arguments: missing a required argument: 'key'. Give them"),
        ("async def A(): ...", "`odd:A` is an async function."),
        ("def A(): raise OSError('no luck')", "`odd:A` cannot be made: OSError: no luck (`"),
        ("class A:\n  @property\n  def name(self): return 1 / 0", "`odd:A` cannot be made: ZeroDivisionError: "),
    ],
)
def test_what_is_not_an_agent_is_told_with_what_is_missing(write: Write, text: str, told: str) -> None:
    write("odd.py", text + "\n")
    assert told in refusal("odd:A")


@pytest.mark.parametrize("name", ["my_agent:", ":MyAgent", "my-agent:MyAgent", "my_agent.:MyAgent"])
def test_half_a_name_is_refused_with_an_example(write: Write, name: str) -> None:
    assert refusal(name) == f"`{name}` names no agent. Write `MODULE:NAME`, such as `my_agent:MyAgent`."


def test_a_fault_that_the_agent_raises_is_passed_on_as_it_is(write: Write) -> None:
    write("poor.py", "from trunkline import ProviderError\n\ndef make():\n    raise ProviderError('no key')\n")
    with pytest.raises(ProviderError, match=r"^no key$"):
        registry.make("poor:make", {})


@pytest.mark.process
def test_my_agent_is_served_from_the_directory_that_it_lies_in(write: Write, tmp_path: Path) -> None:
    turn = echo_turn([SCRIPT, "agent", "--json-stream", "--agent", "my_agent:MyAgent"], tmp_path)
    assert turn.text == f"You said: {ECHO_TEXT}", turn
    assert turn.exit_code == 0


@pytest.mark.process
def test_an_agent_that_cannot_be_had_is_one_config_error_for_the_host(write: Write, tmp_path: Path) -> None:
    write("loud.py", "print('hello, I am no protocol line')\n1 / 0\n")
    turn = echo_turn([SCRIPT, "agent", "--json-stream", "--agent", "loud:A"], tmp_path)
    (line,) = turn.events
    assert line["error"]["code"] == "config_error"
    assert "The module `loud` cannot be imported: ZeroDivisionError" in line["error"]["message"]
    assert turn.exit_code == 1


@pytest.mark.process
def test_a_signal_while_a_module_is_imported_ends_the_start_and_is_no_failure_of_the_module(
    write: Write, tmp_path: Path
) -> None:
    # A wait without end hears of no signal that comes in front of it.
    waits = "while True:\n    time.sleep(0.01)"
    write("slow.py", f"import sys, time\nprint('importing', file=sys.stderr, flush=True)\n{waits}\n")
    with AgentProcess("--agent", "slow:A", cwd=tmp_path) as agent:
        assert agent.process.stderr is not None
        assert agent.process.stderr.readline() == b"importing\n"
        assert agent.kill(signal.SIGTERM) == 128 + signal.SIGTERM
        assert agent.rest() == []


# Programs


@pytest.mark.process
def test_a_program_that_speaks_the_json_stream_is_an_agent(tmp_path: Path) -> None:
    home = tmp_path / "its own home"
    program = f"env 'TRUNKLINE_HOME={home}' {SCRIPT} agent --json-stream --agent echo"
    turn = echo_turn([SCRIPT, "agent", "--json-stream", "--agent", f"jsonstream:{program}"], tmp_path)
    assert turn.text == ECHO_TEXT, turn
    assert turn.exit_code == 0
    assert len(list((home / "sessions").iterdir())) == 1


def test_a_program_is_called_by_its_name_and_no_shell_sees_the_command() -> None:
    assert registry.make("jsonstream:/opt/bin/some-agent --json-stream; rm '$HOME'", {}).name == "some-agent"


async def test_a_program_that_is_not_there_is_told_when_it_is_opened() -> None:
    agent = registry.make("jsonstream:no-such-program --json-stream", {})
    with pytest.raises(ConfigError, match="no-such-program"):
        await agent.open(request())


def test_a_program_can_tell_that_it_is_not_there() -> None:
    def problem(name: str) -> str | None:
        agent = registry.make(name, {})
        assert isinstance(agent, JsonStreamAgent | AcpAgent)
        return agent.problem()

    assert problem("jsonstream:no-such-program --json-stream") == (
        "There is no program `no-such-program` on `PATH`. Install it, or give its full path."
    )
    assert problem("jsonstream:/no/such/program") == (
        "There is no program `/no/such/program` that could be run. Check the path."
    )
    assert problem("jsonstream:sh") is None
    assert problem("jsonstream:./relative/to/the/workspace") is None
    assert problem("acp:no-such-program --acp") == (
        "There is no program `no-such-program` on `PATH`. Install it, or give its full path."
    )


def test_an_agent_that_goes_by_a_short_name_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for name in hub.PROGRAMS:
        agent = registry.make(f"acp:{name}", {})
        assert agent.name == name
        assert hub.PROGRAMS[name].how_to_install in (registry.problem(agent, ".") or "")
    assert hub.PROGRAMS["opencode"].how_to_install == "Install it with `npm install -g opencode-ai`."
    assert hub.PROGRAMS["goose"].how_to_install == "To install it, see https://github.com/aaif-goose/goose."
    assert registry.make("acp:opencode acp --pure", {}).name == "opencode"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("jsonstream:", "`jsonstream:` needs a command. Such as `--agent 'jsonstream:some-agent --json-stream'`."),
        ("acp: ", "`acp:` needs a command. Such as `--agent acp:opencode`, or `--agent 'acp:some-agent --acp'`."),
        ("jsonstream:a 'b", "The command in `jsonstream:a 'b` cannot be split: No closing quotation."),
    ],
)
def test_a_command_that_is_none_is_refused(name: str, told: str) -> None:
    assert refusal(name) == told


def test_a_graph_whose_extra_is_missing_is_a_fault_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(spec: str) -> object:
        raise ModuleNotFoundError("No module named 'regex'", name="regex")

    monkeypatch.setattr("trunkline.agents.graph.yaml_graph.load", load)
    with pytest.raises(ConfigError, match=r"This needs `regex`, which is not installed. Add it with `.*\[graph\]"):
        registry.make("graph:npc", {"workspace": "."})
