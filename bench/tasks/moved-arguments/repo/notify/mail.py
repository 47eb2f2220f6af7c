"""Sends mail."""

from dataclasses import dataclass

outbox = []


@dataclass(frozen=True)
class Message:
    """What is sent. `urgent` messages go first."""

    to: str
    subject: str
    text: str
    urgent: bool = False


def send(message):
    """Put a message into the outbox, before all that are less urgent."""
    if not isinstance(message, Message):
        raise TypeError("send takes a Message")
    place = len(outbox)
    while message.urgent and place and not outbox[place - 1].urgent:
        place -= 1
    outbox.insert(place, message)
