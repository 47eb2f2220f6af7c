"""The client's end of the Tryll wire. The front door; `client` says how to use it; `sync` is for code that waits."""

from __future__ import annotations

from trunkline.wires.tryll.drive.agent import TURN_SECONDS, RemoteAgent
from trunkline.wires.tryll.drive.client import CONNECT_SECONDS, Tryll
from trunkline.wires.tryll.drive.connection import Progress
from trunkline.wires.tryll.drive.events import IntentClassified, ToolCall
from trunkline.wires.tryll.drive.replay import MODEL_SECONDS, REQUEST_SECONDS, Reconnect
from trunkline.wires.tryll.drive.turn import Replacement, Reply, Sound, SpeechTiming, Turn, TurnFailed, appended
from trunkline.wires.tryll.drive.voice import RemoteVoice

__all__ = [
    "CONNECT_SECONDS", "MODEL_SECONDS", "REQUEST_SECONDS", "TURN_SECONDS", "IntentClassified", "Progress", "Reconnect",
    "RemoteAgent", "RemoteVoice", "Replacement", "Reply", "Sound", "SpeechTiming", "ToolCall", "Tryll", "Turn",
    "TurnFailed", "appended",
]  # fmt: skip
