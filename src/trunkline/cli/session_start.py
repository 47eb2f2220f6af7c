"""A session about to begin as options say: with whom, where, what may be done unasked, and how it is kept."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from trunkline.cli import agent_options, opening
from trunkline.core.redaction import Redaction

if TYPE_CHECKING:
    from trunkline.cli.opening import OpenedLog
    from trunkline.core.agent import Agent
    from trunkline.core.session import Session


class SessionStart:
    """Everything that may be wrong with it has been looked at by now, or is by `log` and `open`."""

    def __init__(self, options: argparse.Namespace, agent: Agent | None = None) -> None:
        """`agent`: the one that answers; if left out, it is made as the options say.

        Raises:
            ConfigError: it cannot begin like this.
        """
        self.options = options
        self.workspace = opening.directory(options.workspace)
        opening.check_session(self.workspace, session_id=options.session_id, resume=options.resume)
        self.model_options = agent_options.model_options(options)
        self.agent = agent or opening.make_agent(options.agent, options.script, self.workspace, self.model_options)
        self.policy = opening.policy(options.allow, agent=self.agent, more_tools=True)
        self.mode = opening.first_mode(options.mode, auto_approve=options.auto_approve)
        self.named = not options.no_session and opening.keeps_sessions(self.agent, self.workspace)
        """Whether the session is kept, and so has a name for the host."""

    def log(self) -> OpenedLog:
        """The log to write, held by this process from here on.

        Raises:
            SessionHeld: another process holds it.
            ConfigError: there is none, or the id is taken.
        """
        options = self.options
        return opening.session_log(
            self.workspace,
            session_id=options.session_id,
            resume=options.resume,
            kept=self.named,
            agent=self.agent.name,
            given=opening.said_again(options),
            anyway=options.anyway,
        )

    async def open(self, kept: OpenedLog) -> Session:
        """Let the agent begin.

        Raises:
            Fault: it cannot.
        """
        from trunkline.core.session import Session

        session = await Session.open(
            self.agent,
            kept.log,
            self.policy,
            resume=kept.resumed,
            mode=kept.mode(self.mode, self.policy),
            workspace=self.workspace,
            instructions=self.options.system_prompt,
            said=[name for name, value in self.model_options.items() if value is not None],
            options=agent_options.with_variables(self.model_options),
            redact=Redaction(opening.redactor(self.agent)),
        )
        await opening.settle(session, kept)
        return session
