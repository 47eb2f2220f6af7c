"""The agents that launchers of this home know, on disk, without secrets: who is to run again after a restart.

One file for all launchers, changed under a lock and replaced in one step. Who runs an agent holds its lock, so that
two launchers of one home never run the same one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from trunkline.base import jsontext, paths
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.runner.parting import Path
from trunkline.store import durable, locks, names

_VERSION = 1
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


class KnownAgent(Value):
    """An agent as it was configured, without its secrets."""

    agent_id: str
    config: Mapping[str, Any]
    secrets: tuple[Path, ...]
    """Where its secrets belong."""
    wanted: bool
    """Whether it was running, and is to run again."""


class KnownAgents:
    """The file. Methods wait for the disk."""

    def __init__(self, home: str) -> None:
        self._directory = os.path.join(home, "runner")
        self._path = os.path.join(self._directory, "agents.json")
        self._held: dict[str, int] = {}

    def all(self) -> list[KnownAgent]:
        """All of them, in the order in which they became known.

        Raises:
            ConfigError: the file cannot be read.
        """
        return list(self._read().values())

    def keep(self, agent: KnownAgent) -> None:
        """Add one, or change it."""
        with self._changing() as agents:
            agents[agent.agent_id] = agent

    def want(self, agent_id: str, wanted: bool) -> None:
        """Say whether it is to run again. One that is not known stays so."""
        with self._changing() as agents:
            if agent_id in agents:
                agents[agent_id] = agents[agent_id].replace(wanted=wanted)

    def hold(self, agent_id: str) -> bool:
        """Take the right to run an agent, if nobody else has it."""
        if agent_id in self._held:
            return True
        paths.ensure_dir(self._directory)
        fd = os.open(os.path.join(self._directory, f"{names.file_name(agent_id)}.runs"), _LOCK_FLAGS, 0o600)
        if not locks.lock(fd):
            os.close(fd)
            return False
        self._held[agent_id] = fd
        return True

    def let_go(self, agent_id: str) -> None:
        """Give that right back. May be called again."""
        fd = self._held.pop(agent_id, None)
        if fd is not None:
            os.close(fd)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, KnownAgent]]:
        paths.ensure_dir(self._directory)
        fd = os.open(f"{self._path}.lock", _LOCK_FLAGS, 0o600)
        try:
            locks.wait(fd)
            agents = self._read()
            yield agents
            self._write(agents)
        finally:
            os.close(fd)

    def _read(self) -> dict[str, KnownAgent]:
        try:
            with open(self._path, "rb") as file:
                data = jsontext.loads(file.read())
            if data["version"] != _VERSION:
                raise ValueError(f"it has version {data['version']}")
            return {
                agent_id: KnownAgent(
                    agent_id, dict(entry["config"]), tuple(map(tuple, entry["secrets"])), entry["wanted"] is True
                )
                for agent_id, entry in data["agents"].items()
            }
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ConfigError(
                f"The list of agents `{self._path}` cannot be read: {reason}.", hint="Fix it, or move it away."
            ) from None

    def _write(self, agents: Mapping[str, KnownAgent]) -> None:
        entries = {
            agent.agent_id: {"config": agent.config, "secrets": agent.secrets, "wanted": agent.wanted}
            for agent in agents.values()
        }
        temporary = f"{self._path}.new"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with open(fd, "wb", closefd=False) as file:
                file.write(jsontext.dumps({"version": _VERSION, "agents": entries}))
            durable.sync_data(fd)
        finally:
            os.close(fd)
        os.replace(temporary, self._path)
        durable.sync_directory(self._directory)
