"""The agents there are, by name. Each is imported when it is made, and costs nothing before.

A name is one of

- `names()`: the agents that come with Trunkline;
- `PACKAGE.MODULE:NAME`: an agent of yours, or a class or function that makes one and needs no arguments. A module that
  is not installed is looked for in the current directory;
- `jsonstream:COMMAND ARGS...`: any program that speaks the JSON stream. Quotes work as in a shell, nothing else does;
- `acp:COMMAND ARGS...`: any program that speaks the Agent Client Protocol, or the name of one that is known, such as
  `acp:opencode`;
- `agentproc:PROFILE`: any program that an AgentProc profile describes: a file, or the name of a bundled one;
- `scripted:SCRIPT`: what a script plays: a file, or the name of a bundled one;
- `graph:GRAPH`: what a graph describes: a file, or the name of a bundled one;
- `tryll:HOST:PORT[/MODEL]`: a model behind a Tryll server;
- `model:NAME`: a plain model of this machine.

An agent may have a method `problem() -> str | None`: why it cannot answer here, if that can be told without trying. One
for which that depends on the workspace has `problem_in(workspace) -> str | None`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType, TracebackType
from typing import Any

from trunkline.core.agent import Agent, Capabilities
from trunkline.core.faults import ConfigError, Fault

#: What a name can be besides those of `names`.
FORMS = (
    "MODULE:NAME",
    "jsonstream:COMMAND",
    "acp:COMMAND",
    "agentproc:PROFILE",
    "scripted:SCRIPT",
    "graph:GRAPH",
    "tryll:HOST:PORT",
    "model:NAME",
)
#: Those of them that name a file, or one of ours.
FILE_FORMS = ("agentproc", "scripted", "graph")

_PROGRAM = "jsonstream"
_ACP = "acp"
_PROFILE = "agentproc"
_SCRIPT = "scripted"
_SERVER = "tryll"
_GRAPH = "graph"
_MODEL = "model"
#: How the names of graphs begin.
GRAPH_FORM = f"{_GRAPH}:"
#: Exit codes above it mean a signal, which `trunkline agent` turns into `SystemExit` while it starts.
_SIGNALLED = 128


def names() -> tuple[str, ...]:
    """The names of the agents that come with Trunkline."""
    return tuple(_FACTORIES)


def is_bundled(kind: str, name: str) -> bool:
    """Whether a name behind one of the `FILE_FORMS` is one of ours. Then it is never a file, wherever it is said:
    whose the files of the current directory are, nobody knows."""
    if kind == _PROFILE:
        from trunkline.wires.agentproc import hub

        return name in hub.names()
    if kind == _GRAPH:
        from trunkline.agents.graph import bundled

        return name in bundled.names()
    from trunkline.agents import script

    return kind == _SCRIPT and name in script.bundled()


def runs_code(name: str) -> bool:
    """Whether the name brings a program or a module along: then whoever writes it decides what runs here."""
    kind, colon, _ = name.partition(":")
    return bool(colon) and kind not in (_SCRIPT, _SERVER, _GRAPH, _MODEL)


def make(name: str, options: Mapping[str, Any]) -> Agent:
    """The agent of that name. Options that are of no use to it are ignored.

    Raises:
        ConfigError: there is none, or it lacks what it needs.
    """
    kind, colon, rest = name.partition(":")
    if kind == _GRAPH and colon:
        return _graph(rest, options)
    if colon:
        return _FORMS[kind](rest) if kind in _FORMS else _imported(name, kind, rest)
    factory = _FACTORIES.get(name)
    if factory is None:
        from trunkline.base.document import listed
        from trunkline.base.nearest import suggestion

        hint = suggestion(name, _FACTORIES)
        raise ConfigError(
            f"There is no agent `{name}`.{hint} The agents are {listed(_FACTORIES)}; {listed(FORMS)} name yours."
        )
    return factory(options)


# Those that come with Trunkline


def _echo(options: Mapping[str, Any]) -> Agent:
    from trunkline.agents.echo import EchoAgent

    return EchoAgent()


def _coder(options: Mapping[str, Any]) -> Agent:
    from trunkline.agents.coder.agent import Coder
    from trunkline.agents.coder.settings import resolve

    return Coder(resolve(options, str(options.get("workspace") or "."), os.environ))


def _scripted(options: Mapping[str, Any]) -> Agent:
    from trunkline.agents import script
    from trunkline.base.document import listed

    spec = options.get("script")
    if not spec:
        raise ConfigError(
            "The agent `scripted` needs a script.",
            hint=f"Write `{_SCRIPT}:FILE`, or `{_SCRIPT}:NAME` with one of {listed(script.bundled())}. Where there is "
            "`--script`, that does the same.",
        )
    return _playing(str(spec))


_FACTORIES: dict[str, Callable[[Mapping[str, Any]], Agent]] = {"coder": _coder, "echo": _echo, "scripted": _scripted}


# Programs and files


def problem(agent: Agent, workspace: str) -> str | None:
    """Why an agent cannot answer in a workspace, as far as that can be told without trying: a program, a model or what
    runs one is missing.
    """
    if callable(ask_there := getattr(agent, "problem_in", None)):
        return ask_there(workspace) or None
    ask = getattr(agent, "problem", None)
    return (ask() or None) if callable(ask) else None


def _program(command: str) -> Agent:
    argv = _words(_PROGRAM, command, f"Such as `--agent '{_PROGRAM}:some-agent --json-stream'`.")
    from trunkline.agents.external.jsonstream import JsonStreamAgent
    from trunkline.base.own_python import safe_python

    return JsonStreamAgent(safe_python(argv), name=os.path.basename(argv[0]) or _PROGRAM)


def _acp(command: str) -> Agent:
    from trunkline.agents.external.acp import AcpAgent
    from trunkline.base.own_python import safe_python
    from trunkline.wires.acp import hub

    if (known := hub.PROGRAMS.get(command.strip())) is not None:
        return AcpAgent(known.argv, name=command.strip(), mode=known.mode, hint=known.how_to_install)
    argv = _words(_ACP, command, f"Such as `--agent {_ACP}:opencode`, or `--agent '{_ACP}:some-agent --acp'`.")
    return AcpAgent(safe_python(argv), name=os.path.basename(argv[0]) or _ACP)


def _words(form: str, command: str, hint: str) -> list[str]:
    """The words of a command. Quotes work as in a shell, nothing else does."""
    import shlex

    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"The command in `{form}:{command}` cannot be split: {error}.") from None
    if not argv:
        raise ConfigError(f"`{form}:` needs a command.", hint=hint)
    return argv


def _profiled(profile: str) -> Agent:
    if not profile:
        raise ConfigError(
            f"`{_PROFILE}:` needs a profile.", hint="A file, or a name from `trunkline agentproc hub list`."
        )
    from trunkline.agents.external.agentproc import AgentProcAgent
    from trunkline.wires.agentproc.profile.file import find

    return AgentProcAgent(find(profile))


def _playing(spec: str) -> Agent:
    from trunkline.agents import script
    from trunkline.agents.scripted import ScriptedAgent

    if not spec:
        from trunkline.base.document import listed

        raise ConfigError(f"`{_SCRIPT}:` needs a script.", hint=f"A file, or one of {listed(script.bundled())}.")
    return ScriptedAgent(script.load(os.path.expanduser(spec)))


def _graph(spec: str, options: Mapping[str, Any]) -> Agent:
    from trunkline.base.extras import lacking

    if not spec:
        from trunkline.agents.graph import bundled
        from trunkline.base.document import listed

        raise ConfigError(f"`{GRAPH_FORM}` needs a graph.", hint=f"A file, or one of {listed(bundled.names())}.")
    try:
        from trunkline.agents.graph.conversation import GraphFileAgent

        return GraphFileAgent.load(spec, models_dir=options.get("models_dir"))
    except ModuleNotFoundError as error:
        if (lacks := lacking(error)) is None:
            raise
        raise ConfigError(lacks) from None


def _served(address: str) -> Agent:
    from trunkline.agents.external.tryll import TryllAgent

    return TryllAgent.parse(address)


def _model(name: str) -> Agent:
    from trunkline.agents.plain_model import PlainModel

    return PlainModel(name)


_FORMS: dict[str, Callable[[str], Agent]] = {
    _PROGRAM: _program,
    _ACP: _acp,
    _PROFILE: _profiled,
    _SCRIPT: _playing,
    _SERVER: _served,
    _MODEL: _model,
}


# Agents in a module


def _imported(spec: str, module_name: str, attribute: str) -> Agent:
    if not attribute or not all(part.isidentifier() for part in module_name.split(".")):
        raise ConfigError(f"`{spec}` names no agent.", hint="Write `MODULE:NAME`, such as `my_agent:MyAgent`.")
    module = _module(module_name)
    try:
        found = getattr(module, attribute)
    except AttributeError:
        from trunkline.base.nearest import suggestion

        hint = suggestion(attribute, [name for name in vars(module) if not name.startswith("_")])
        raise ConfigError(f"The module `{module_name}` (`{_place(module)}`) has no `{attribute}`.{hint}") from None
    with _told(f"`{spec}` cannot be made"):
        return _checked(spec, _made(spec, found))


def _module(name: str) -> ModuleType:
    import importlib

    _find(name.partition(".")[0])
    try:
        with _told(f"The module `{name}` cannot be imported"):
            return importlib.import_module(name)
    except ConfigError as error:
        absent = error.__cause__
        # What the module itself imports and is absent is another matter: then the message names the module's problem.
        if isinstance(absent, ModuleNotFoundError) and absent.name and f"{name}.".startswith(f"{absent.name}."):
            raise _not_found(name) from None
        raise


def _find(package: str) -> None:
    """Let a package in the current directory be found, if it is nowhere else.

    Only then, and last: a directory that somebody merely works in does not get to replace what is installed. It stays,
    for what the agent imports later.
    """
    from importlib.util import find_spec

    here = os.getcwd()
    if package not in sys.modules and find_spec(package) is None and here not in sys.path:
        sys.path.append(here)


def _not_found(name: str) -> ConfigError:
    from trunkline.base.nearest import suggestion

    here = os.getcwd()
    beside = [entry.removesuffix(".py") for entry in os.listdir(here)]
    hint = suggestion(name, [entry for entry in beside if entry.isidentifier()])
    return ConfigError(
        f"There is no module `{name}`.{hint} It was looked for in `{here}`, in `PYTHONPATH`, and among the packages of "
        f"`{sys.executable}`."
    )


def _made(spec: str, found: Any) -> Any:
    """The object that was named, or what it makes if it is a class or a function."""
    if not isinstance(found, type) and (not callable(found) or not _problems(found)):
        return found
    import inspect

    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise ConfigError(
            f"`{spec}` cannot be called without arguments: {error}.", hint="Give them defaults, or name an instance."
        ) from None
    except ValueError:
        # Some that are written in C do not tell their arguments. Then the call itself will show.
        pass
    made = found()
    if inspect.iscoroutine(made):
        made.close()
        raise ConfigError(f"`{spec}` is an async function.", hint="What needs to wait belongs into the agent's `open`.")
    return made


def _checked(spec: str, agent: Any) -> Agent:
    problems = _problems(agent)
    if problems:
        what = f"the module `{agent.__name__}`" if isinstance(agent, ModuleType) else f"of type `{_type(agent)}`"
        raise ConfigError(
            f"`{spec}` is not an agent but {what}: {'; '.join(problems)}.",
            hint="See `trunkline.Agent` for what it needs.",
        )
    checked: Agent = agent
    return checked


def _problems(agent: Any) -> list[str]:
    """What is missing for an `Agent`."""
    problems = []
    for member, kind in (("name", str), ("capabilities", Capabilities), ("open", None)):
        try:
            value = getattr(agent, member)
        except AttributeError:
            problems.append(f"`{member}` is missing")
            continue
        if not (callable(value) if kind is None else isinstance(value, kind)):
            wanted = "a method" if kind is None else f"of type `{kind.__name__}`"
            problems.append(f"`{member}` is of type `{_type(value)}` and must be {wanted}")
    return problems


def _type(value: object) -> str:
    return type(value).__qualname__


def _place(module: ModuleType) -> str:
    return getattr(module, "__file__", None) or "built in"


@contextmanager
def _told(failure: str) -> Iterator[None]:
    """Turn whatever foreign code raises into a `ConfigError` that says what it was and where. Faults stay as they are.

    Raises:
        ConfigError: the code inside failed, or wanted to exit.
    """
    try:
        yield
    except Fault:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and isinstance(error.code, int) and error.code > _SIGNALLED:
            raise
        said = f"{_type(error)}: {error}" if str(error) else _type(error)
        raise ConfigError(f"{failure}: {said}{_raised_at(error.__traceback__)}") from error


def _raised_at(trace: TracebackType | None) -> str:
    """` (FILE, line N)` of the innermost Python code that is not the import machinery or ours."""
    import importlib

    place = ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file not in (__file__, importlib.__file__) and not file.startswith("<frozen"):
            place = f" (`{file}`, line {trace.tb_lineno})"
        trace = trace.tb_next
    return place
