"""Commands for a session, as programs and other nodes send them, carried out."""

from __future__ import annotations

from typing import Any

from trunkline.base import shapes
from trunkline.base.attach_chat import AttachedCommand
from trunkline.base.vocabulary import MODES
from trunkline.core.agent import AddHistory, Approve, Change, Deny, SetOptions
from trunkline.core.events import UserMessage
from trunkline.core.faults import RemoteProtocolError
from trunkline.core.grants import Grant
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.switchboard import Switchboard


async def carry_out(board: Switchboard, live: LiveSession, command: AttachedCommand, by: str) -> int | None:
    """Do what is asked for, in somebody's name; gives the turn of a message.

    Raises:
        Fault: it was not done.
    """
    session = live.session
    match command.do:
        case "submit":
            return await board.submit(live, _message(command, by))
        case "steer":
            return await board.submit(live, _message(command, by), "steer")
        case "answer":
            answer = Approve(command.scope, command.narrow) if command.approve else Deny(command.reason)
            session.answer(command.call_id, answer, by)
        case "stop":
            session.stop(by, command.turn)
        case "mode":
            mode = next((each for each in MODES if each == command.mode), None)
            if mode is None:
                raise RemoteProtocolError(f"There is no mode `{command.mode[:80]}`.")
            session.set_mode(mode)
        case "revoke":
            session.revoke(_decoded(Grant, command.grant))
        case "configure":
            await session.configure(_change(command))
    return None


def _decoded(kind: type[Any], data: Any) -> Any:
    try:
        return shapes.decode(kind, data)
    except ValueError as error:
        raise RemoteProtocolError(f"The command cannot be understood: {error}.") from None


def _message(command: AttachedCommand, by: str) -> UserMessage:
    message: UserMessage = _decoded(UserMessage, command.message)
    return message.replace(sender=message.sender or by)


def _change(command: AttachedCommand) -> Change:
    return SetOptions(dict(command.options or {})) if command.history is None else AddHistory(command.history)
