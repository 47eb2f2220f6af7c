"""What the servers of the exchange's benchmark and its clients agree on."""

from __future__ import annotations

#: Agents that play the script. Several: a Tryll server lets one have 256 conversations at a time.
NAMES = ("a", "b", "c", "d")
#: The agent that says the time.
CLOCK = "clock"
#: Words in an answer of the script.
WORDS = 200
#: Of somebody who may do everything.
TOKEN = "a token for the benchmark"
