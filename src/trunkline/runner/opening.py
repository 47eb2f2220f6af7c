"""Puts a runner together."""

from __future__ import annotations

import os
from collections.abc import Mapping

from trunkline.runner import commlog, secrets
from trunkline.runner.actions import ActionPerformer
from trunkline.runner.brains import WithAgent
from trunkline.runner.commlog import CommunicationLog, Stamp
from trunkline.runner.config import RunnerConfig
from trunkline.runner.cycle import Runner, RunnerParts
from trunkline.runner.github import Issues
from trunkline.runner.inbox import Inbox
from trunkline.runner.reading import NetworkReader
from trunkline.runner.reconciling import Writes
from trunkline.runner.state import AgentState
from trunkline.wires.sns.drive import Sns


def open_runner(
    config: RunnerConfig,
    *,
    home: str,
    port: int | None = None,
    with_agent: WithAgent | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Runner:
    """The runner of one agent; nothing is asked of anybody yet. Close it when done.

    Args:
        home: the state directory.
        port: the launcher's, for the log; None if there is none.
        with_agent: makes brains of agents; see `brains.make`.
        environ: what is secret in it is not posted.

    Raises:
        ConfigError: it cannot work as configured.
    """
    sns = Sns(config.sns_base_url, config.agent_id, config.runner_token, timeout=config.timeout_seconds)
    known = secrets.known(config.secrets(), environ)
    state = AgentState(home, config.agent_id)
    stamp = Stamp.of_this_process(config.agent_id, port)
    path = config.log or commlog.default_path(home, config.agent_id)
    log = CommunicationLog(path, stamp, redact=known.text)
    inbox = Inbox(state, log, known.data)
    writes = Writes(state, sns, inbox)
    issues = Issues(config.github, sns, state, seconds=config.timeout_seconds)
    performer = None
    if config.execution is not None:
        from trunkline.runner.chain.performer import TxPerformer

        performer = TxPerformer(config.execution, home, known, agent_id=config.agent_id)
    actions = ActionPerformer(sns, writes, inbox, issues, NetworkReader(sns, config.comment_limit), known, performer)
    return Runner(
        RunnerParts(config, home, known, state, log, sns, inbox, writes, issues, actions, performer, with_agent)
    )
