"""Carries out what people tell the bridge: `/stop`, `/new` and the others of `chat.commands`. Each gives an answer."""

from __future__ import annotations

from collections.abc import Callable

from trunkline.chat.approvals import Mistaken
from trunkline.chat.commands import HELP, ChatCommand, choice, is_number, number
from trunkline.chat.conversation import ChatConversation
from trunkline.chat.plain import excerpt, inline, shown_name
from trunkline.chat.platform import Inbound
from trunkline.chat.retry import CannotRetry
from trunkline.chat.senders import Senders

NOT_AN_APPROVER = "Only people named by the bridge's owner may answer this."


class Control:
    """The commands of one bridge."""

    def __init__(self, platform: str, senders: Senders) -> None:
        self._platform = platform
        self._senders = senders
        self._commands: dict[str, Callable[[ChatConversation, ChatCommand, Inbound], str]] = {
            "stop": self._stop,
            "new": self._new,
            "status": self._status,
            "agent": self._agent,
            "approve": self._answer,
            "deny": self._answer,
            "show": self._show,
            "grants": self._grants,
            "retry": self._retry,
            "help": lambda conversation, command, inbound: HELP,
        }

    def perform(self, conversation: ChatConversation, command: ChatCommand, inbound: Inbound) -> str:
        """Carry a command out; gives what to say, which may be nothing."""
        return self._commands[command.name](conversation, command, inbound)

    def _stop(self, conversation: ChatConversation, command: ChatCommand, inbound: Inbound) -> str:
        stopped, dropped = conversation.stop(inbound)
        # The answer itself says that it was stopped.
        return _told(dropped) if stopped or dropped else "Nothing is being answered."

    def _new(self, conversation: ChatConversation, command: ChatCommand, inbound: Inbound) -> str:
        _, dropped = conversation.stop(inbound)
        conversation.renew()
        return f"{_told(dropped)} A new session begins with your next message.".strip()

    def _status(self, conversation: ChatConversation, command: ChatCommand, inbound: Inbound) -> str:
        kept = conversation.chat_session.going_on
        lines = [
            f"agent: `{inline(conversation.chat_session.agent)}`",
            f"session: `{kept.session_id}`" if kept.session_id else "session: none yet",
            f"state: {conversation.state}",
            f"waiting messages: {conversation.queue.behind}",
        ]
        if kept.agent_session:
            lines.insert(2, f"the agent calls it: `{inline(kept.agent_session)}`")
        asked = ", ".join(f"`{each.number}` ({inline(each.request.name)})" for each in conversation.prompts.waiting)
        if asked:
            lines.append(f"waiting approvals: {asked}")
        if undelivered := conversation.channel.undelivered:
            lines.append(f"undelivered messages: {undelivered}; the owner sees them with `trunkline bridge outbox`")
        return "\n".join(f"- {line}" for line in lines)

    def _agent(self, conversation: ChatConversation, command: ChatCommand, inbound: Inbound) -> str:
        agents, current = conversation.settings.agents, conversation.chat_session.agent
        if not command.argument:
            names = "\n".join(f"- `{inline(name)}`{' (answers here)' if name == current else ''}" for name in agents)
            return f"{names}\n\n`/agent NAME` changes to another."
        if command.argument not in agents:
            return f"There is no agent `{inline(command.argument)}`. `/agent` lists them."
        if command.argument == current:
            return f"`{inline(current)}` answers here already."
        if conversation.in_progress:
            return "An answer is in progress. Wait for it, or `/stop` it."
        conversation.renew(command.argument)
        return f"`{inline(command.argument)}` answers from now on, in a new session."

    def _answer(self, conversation: ChatConversation, command: ChatCommand, inbound: Inbound) -> str:
        sender = f"{self._platform}:{inbound.sender}"
        if not self._senders.may_approve(sender):
            return NOT_AN_APPROVER
        chosen = choice(command)
        if chosen is None:
            return "That was not understood, and nothing was approved. Write `/approve ID` or `/approve ID always`."
        try:
            who, by = shown_name(inbound.sender, inbound.sender_name), conversation.person(inbound)
            conversation.prompts.typed(chosen, yes=command.name == "approve", who=who, by=by, written=inbound.at)
        except Mistaken as mistake:
            return str(mistake)
        return ""

    def _show(self, conversation: ChatConversation, command: ChatCommand, inbound: Inbound) -> str:
        which = number(command)
        if command.argument and which is None:
            return "That was not understood. Write `/show`, or `/show ID` with the number of a question."
        try:
            conversation.prompts.show(which)
        except Mistaken as mistake:
            return str(mistake)
        return ""

    def _grants(self, conversation: ChatConversation, command: ChatCommand, inbound: Inbound) -> str:
        session = conversation.session
        if session is None:
            return "No session is open; what was granted in the last one is known again with your next message."
        verb, _, which = command.argument.partition(" ")
        if command.argument and (verb != "revoke" or not (which == "all" or is_number(which))):
            return "That was not understood. Write `/grants revoke NUMBER`; `/grants` lists them."
        numbered = list(enumerate(session.grants, 1))
        if not numbered:
            return "Nothing was granted in this session."
        if not command.argument:
            lines = [f"{number}. {grant}" for number, grant in numbered]
            hint = "`/grants revoke NUMBER` takes one back, `/grants revoke all` takes back all."
            return "\n".join([*lines, "", hint])
        chosen = [grant for number, grant in numbered if which == "all" or number == int(which)]
        if not chosen:
            return f"There is no grant {which}. `/grants` lists them."
        for grant in chosen:
            session.revoke(grant)
        return f"Taken back: {'; '.join(map(str, chosen))}."

    def _retry(self, conversation: ChatConversation, command: ChatCommand, inbound: Inbound) -> str:
        which = number(command)
        if command.argument and which is None:
            return "That was not understood. Write `/retry`, or `/retry ID` with the number of a message."
        try:
            old = conversation.retry(which)
        except CannotRetry as refusal:
            return str(refusal)
        return f"Asked again: {excerpt(old.inbound.text)}."


def _told(dropped: int) -> str:
    if not dropped:
        return ""
    return "1 waiting message was dropped." if dropped == 1 else f"{dropped} waiting messages were dropped."
