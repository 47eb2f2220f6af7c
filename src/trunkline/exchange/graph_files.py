"""The graphs of an exchange: the files that its agents name, and those that come with Trunkline.

A file is read and written only where the configuration names it. A link that leads out of the file's folder is neither
followed nor replaced: whoever may write into that folder would decide what is shown here, and what is overwritten.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

from trunkline.agents.graph import bundled
from trunkline.agents.registry import GRAPH_FORM
from trunkline.base.regular import read_regular
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.exchange.settings import AgentSettings

#: The largest graph that is shown and saved: far more than a person writes. Long lists belong into files beside it.
MAX_BYTES = 1024 * 1024

LINKED_AWAY = "The configuration names a link that leads out of its folder. Name the file itself."
#: What graphs are called. Others are neither shown nor overwritten, whatever the configuration names by mistake.
SUFFIXES = (".yaml", ".yml")
NOT_YAML = "Only files whose names end in `.yaml` or `.yml` are shown and saved here."
NOT_TEXT = "It is not UTF-8: what is shown here is not what it says."
COMES_ALONG = "It comes with Trunkline and stays as it is. Save a copy, and name that file in the configuration."


class AgentGraph(Value):
    """A graph. `id` is the name of an agent, or `graph:NAME` for one that comes along; `spec` what the agents' settings
    have behind `graph:`."""

    id: str
    spec: str
    agents: tuple[AgentSettings, ...] = ()

    @property
    def user(self) -> AgentSettings | None:
        """The agent that the id names, else the first that has it; None if no agent has."""
        return next((each for each in self.agents if each.name == self.id), self.agents[0] if self.agents else None)

    @property
    def is_bundled(self) -> bool:
        """Whether it comes with Trunkline."""
        return self.spec in bundled.names()

    @property
    def path(self) -> str:
        """Its file."""
        return bundled.locate(os.path.expanduser(self.spec))

    @property
    def name(self) -> str:
        """What people call it."""
        return self.spec if self.is_bundled else os.path.basename(self.path)

    @property
    def folder(self) -> str:
        """Where it looks for other files."""
        return os.path.dirname(os.path.abspath(self.path))


class GraphText(Value):
    """What a graph's file says. `text` is as good as it can be read; `version` changes whenever the file does, and is
    empty while there is none."""

    text: str
    version: str
    why_fixed: str = ""
    """Why it cannot be saved; empty if it can."""


class GraphChanged(ConfigError):
    """The file is another than the one that was read."""


class GraphFixed(ConfigError):
    """The file is not for writing."""


class GraphTooLarge(ConfigError):
    """More than `MAX_BYTES`."""


def graphs(agents: Mapping[str, AgentSettings]) -> tuple[AgentGraph, ...]:
    """Those that agents have, in the order of the configuration, then the others that come along."""
    users: dict[str, list[AgentSettings]] = {}
    for each in agents.values():
        if each.agent.startswith(GRAPH_FORM) and each.agent != GRAPH_FORM:
            users.setdefault(each.agent.removeprefix(GRAPH_FORM), []).append(each)
    used = (AgentGraph(theirs[0].name, spec, tuple(theirs)) for spec, theirs in users.items())
    return (*used, *(AgentGraph(GRAPH_FORM + name, name) for name in bundled.names() if name not in users))


def find(agents: Mapping[str, AgentSettings], id: str) -> AgentGraph | None:
    """The graph of an agent, or the one of ours with that id; None if there is none."""
    if id.startswith(GRAPH_FORM) and (name := id.removeprefix(GRAPH_FORM)) in bundled.names():
        return AgentGraph(id, name, tuple(each for each in agents.values() if each.agent == id))
    for each in graphs(agents):
        if any(user.name == id for user in each.agents):
            return each.replace(id=id)
    return None


def read(graph: AgentGraph) -> GraphText:
    """What its file says now. Not for an event loop.

    Raises:
        GraphTooLarge: it is.
        ConfigError: it is no file, may not be read, or is not where the configuration says.
    """
    try:
        found = read_regular(_real_path(graph), MAX_BYTES)
    except FileNotFoundError:
        return GraphText("", "", _why_fixed(graph))
    except OSError as error:
        raise ConfigError(f"The graph `{graph.name}` cannot be read: {error.strerror}.") from None
    if found.cut:
        raise GraphTooLarge(_too_large(f"`{graph.name}`"))
    try:
        text, why_fixed = found.data.decode(), _why_fixed(graph)
    except UnicodeDecodeError:
        text, why_fixed = found.data.decode(errors="replace"), NOT_TEXT
    return GraphText(text, _version(found.data), why_fixed)


def save(graph: AgentGraph, data: bytes, version: str) -> str:
    """Let its file say this, in one step and with the permissions that it has; gives the new version. Not for an event
    loop.

    Raises:
        GraphChanged: the file is not of that version.
        GraphFixed: it cannot be written.
        GraphTooLarge: the text is.
        ConfigError: it cannot be read.
    """
    from trunkline.tools.atomic import replace_file, writing
    from trunkline.tools.files import FileProblem

    if len(data) > MAX_BYTES:
        raise GraphTooLarge(_too_large("The text"))
    path = _real_path(graph)

    def check() -> None:
        found = read(graph)
        if found.why_fixed:
            raise GraphFixed(f"`{graph.name}` cannot be saved. {found.why_fixed}")
        if found.version != version:
            raise GraphChanged(f"`{graph.name}` was changed by somebody else since it was read.")

    try:
        with writing(path):
            check()
            replace_file(path, data, check)
    except FileProblem as problem:
        raise GraphFixed(f"`{graph.name}` cannot be saved: {problem}.") from None
    except OSError as error:
        raise GraphFixed(f"`{graph.name}` cannot be saved: {os.strerror(error.errno or 0)}.") from None
    return _version(data)


def _real_path(graph: AgentGraph) -> str:
    """Where it is, links followed.

    Raises:
        ConfigError: that is outside of the folder in which the configuration has it, or no file of YAML.
    """
    path, folder = os.path.realpath(graph.path), os.path.realpath(graph.folder)
    if os.path.commonpath((path, folder)) != folder:
        raise ConfigError(LINKED_AWAY)
    if not path.endswith(SUFFIXES):
        raise ConfigError(NOT_YAML)
    return path


def _too_large(what: str) -> str:
    return f"{what} has more than {MAX_BYTES} bytes. Put long lists into files beside the graph."


def _why_fixed(graph: AgentGraph) -> str:
    if graph.is_bundled:
        return COMES_ALONG
    if not os.path.isdir(graph.folder):
        return "Its folder does not exist."
    looked_at = graph.path if os.path.exists(graph.path) else graph.folder
    return "" if os.access(looked_at, os.W_OK) else "The user who runs the exchange may not write it."


def _version(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
