"""Puts a runner together."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from trunkline.core.faults import AgentBusy
from trunkline.runner import commlog, secrets
from trunkline.runner.actions import ActionPerformer
from trunkline.runner.brains import WithAgent
from trunkline.runner.commlog import CommunicationLog, Stamp
from trunkline.runner.config import RunnerConfig
from trunkline.runner.cycle import Runner, RunnerParts
from trunkline.runner.github import Issues
from trunkline.runner.holding import FileHold, Hold
from trunkline.runner.inbox import Inbox
from trunkline.runner.reading import NetworkReader
from trunkline.runner.reconciling import Writes
from trunkline.wires.sns.drive import Sns


def open_runner(
    config: RunnerConfig,
    *,
    home: str,
    port: int | None = None,
    with_agent: WithAgent | None = None,
    environ: Mapping[str, str] = os.environ,
    hold: Hold | None = None,
) -> Runner:
    """The runner of one agent; nothing is asked of anybody yet. Close it when done.

    Args:
        home: the state directory.
        port: the launcher's, for the log; None if there is none.
        with_agent: makes brains of agents; see `brains.make`.
        environ: what is secret in it is not posted.
        hold: the right to run the agent, where launchers share it.

    Raises:
        ConfigError: it cannot work as configured.
    """
    hold = hold or FileHold(home, config.agent_id)
    sns = Sns(
        config.sns_base_url, config.agent_id, config.runner_token, timeout=config.timeout_seconds, check=hold.check
    )
    known = secrets.known(config.secrets(), environ)
    state = hold.memory()
    stamp = Stamp.of_this_process(config.agent_id, port)
    path = config.log or commlog.default_path(home, config.agent_id)
    log = CommunicationLog(path, stamp, redact=known.text)
    inbox = Inbox(state, log, known.data)
    writes = Writes(state, sns, inbox)
    issues = Issues(config.github, sns, state, seconds=config.timeout_seconds, check=hold.check)
    performer = None
    if config.execution is not None:
        from trunkline.runner.chain.performer import TxPerformer

        performer = TxPerformer(config.execution, hold.books(), known, agent_id=config.agent_id, check=hold.check)
    actions = ActionPerformer(sns, writes, inbox, issues, NetworkReader(sns, config.comment_limit), known, performer)
    return Runner(
        RunnerParts(
            config, home, known, state, log, sns, inbox, writes, issues, actions, performer, with_agent, hold.check
        )
    )


@asynccontextmanager
async def holding(agent_id: str, *, home: str, db: str | None) -> AsyncIterator[Hold]:
    """The right to run one cycle of an agent.

    Args:
        db: the database that launchers share their agents in, if they do.

    Raises:
        AgentBusy: one of them runs the agent.
        ConfigError: the database cannot be used.
    """
    if not db:
        yield FileHold(home, agent_id)
        return
    from trunkline.runner.shared.roster import open_roster

    roster = await open_roster(db)
    try:
        hold = await roster.hold(agent_id)
        if hold is None:
            hint = "Stop it there, or have that one run a cycle (`POST /runner/run-once`)."
            raise AgentBusy("A launcher that shares this agent runs it.", hint=hint)
        yield hold
    finally:
        await roster.let_go(agent_id)
        await roster.close()
