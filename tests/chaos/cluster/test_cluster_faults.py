"""A real cluster whose nodes and servers are killed and suspended under load, and its nodes cut off, ended and drained,
keeps what it promised; and nodes that lack what keeps it are found out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.cluster.broken import BREAKAGES
from tests.chaos.cluster.hearing import Heard, Hearing, word
from tests.chaos.cluster.history import History, StreamMessage, broken_promises
from tests.chaos.cluster.load import WIRES
from tests.chaos.cluster.run import run
from trunkline.core.events import Envelope, TextDelta, ToolAnswered, TurnEnded, TurnStarted, UserMessage


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(900)
async def test_every_promise_is_kept_whatever_happens_to_nodes(tmp_path: Path) -> None:
    found = await run(tmp_path, sessions=24, seconds=75, pause=3, seed=1)
    # How soon an end comes is for a quiet machine: `make faults`.
    assert [told for told in found.broken if not told.startswith("late")] == []
    assert {hearing.wire for hearing in found.history.hearings if hearing.is_taken} == set(WIRES)
    assert {"kill -9 of NATS", "stop of NATS"} <= {told.rpartition(" ")[0] for told in found.faults}


#: How often a build that lacks something may get away with it.
TRIES = 3


@pytest.mark.parametrize(
    ("breakage", "promise"), [("fencing", "two owners"), ("leases", "moved"), ("retries", "run twice")]
)
@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(900)
async def test_a_cluster_that_lacks_something_is_found_out(tmp_path: Path, breakage: str, promise: str) -> None:
    assert breakage in BREAKAGES
    # What happens when is chance, and on a slow machine less happens: then it is tried once more.
    for seed in range(5, 5 + TRIES):
        found = await run(tmp_path / str(seed), sessions=12, seconds=60, pause=3, seed=seed, broken=breakage)
        if any(promise in told for told in found.broken):
            return
    pytest.fail(f"the lack of {breakage} was not seen in {TRIES} runs")


def started(id: str) -> TurnStarted:
    return TurnStarted(UserMessage("hello", id=id))


def history(*messages: StreamMessage) -> History:
    return History(list(messages))


def owner(number: int) -> StreamMessage:
    return StreamMessage(number, "s", {"node": "a", "run": "1"}, "", ())


def events(number: int, fence: int, *found: Envelope) -> StreamMessage:
    return StreamMessage(number, "s", None, f"{fence}-1 1 1", found)


def envelope(seq: int, event: object, turn: int = 1) -> Envelope:
    return Envelope("s", seq, turn, 0.0, event)  # type: ignore[arg-type]


def test_a_history_as_it_should_be_breaks_nothing() -> None:
    whole = events(2, 1, envelope(1, started("m")), envelope(2, TurnEnded("success")))
    found = history(owner(1), whole)
    found.clients["s"].accepted = {"m"}
    found.clients["s"].seen = {1: ("TurnStarted", "m"), 2: ("TurnEnded", None)}
    found.done = [("turn", "s", "m")]
    assert broken_promises(found) == []


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (history(owner(1), owner(2), events(3, 1, envelope(1, TurnEnded("success")))), "two owners"),
        (history(owner(1), events(2, 1, envelope(2, TurnEnded("success")))), "lost event"),
        (history(owner(1), events(2, 1, envelope(1, started("m")), envelope(1, started("n")))), "doubled event"),
        (history(owner(1), events(2, 1, envelope(1, started("m")))), "no end"),
        (
            history(owner(1), events(2, 1, envelope(1, started("m")), envelope(2, started("m"), turn=2))),
            "turn run twice",
        ),
        (
            history(owner(1), events(2, 1, *(envelope(seq, ToolAnswered("c", True, "ana")) for seq in (1, 2)))),
            "answered twice",
        ),
        (History(done=[("tool", "s", "c"), ("tool", "s", "c")]), "tool run twice"),
    ],
)
def test_each_broken_promise_is_told(broken: History, told: str) -> None:
    assert any(told in each for each in broken_promises(broken))


ID = "0123456789abcdef"


def spoken(*numbers: int) -> History:
    """A turn in which these words were said."""
    said = [TextDelta(word(ID, number)) for number in numbers]
    happened = [TurnStarted(UserMessage(f"say {word(ID, 0)}", id="of-its-wire")), *said, TurnEnded("success")]
    return history(owner(1), events(2, 1, *(envelope(seq, each) for seq, each in enumerate(happened, 1))))


def heard(*numbers: int, ends: int = 1, is_whole: bool = True) -> Hearing:
    """What a client heard of it."""
    text = "\n\n".join(word(ID, number) for number in numbers)
    return Hearing("chat", "s", ID, "", heard=[Heard("a", text, ["success"] * ends, is_whole)])


@pytest.mark.parametrize(
    "hearing",
    [
        heard(0, 1, 2),
        heard(1, 2, is_whole=False),
        heard(0, 1, ends=0, is_whole=False),
        heard(ends=0, is_whole=False),
    ],
)
def test_a_client_may_hear_a_part_of_an_answer_and_has_one_end_at_most(hearing: Hearing) -> None:
    found = spoken(0, 1, 2)
    found.hearings = [hearing]
    found.clients["s"].accepted = {hearing.mark}
    assert broken_promises(found) == []


@pytest.mark.parametrize(
    ("hearing", "told"),
    [
        (heard(0, 1), "lost words"),
        (heard(0, 2, is_whole=False), "lost words"),
        (heard(0, 1, 1, 2), "lost words"),
        (heard(0, 1, 2, 9), "lost words"),
        (heard(0, 1, 2, ends=2), "ended twice"),
        (Hearing("chat", "s", ID, "", heard=[Heard("a", word("f" * 12, 0))]), "wrong words"),
        (Hearing("agentproc", "s", ID, "", heard=[Heard("a", wrong=["the result is another"])]), "wrong words"),
        (Hearing("tryll", "", ID, "", hanging="has none"), "no end"),
        (Hearing("tryll", "", ID, "", slowest=60.0), "late"),
    ],
)
def test_what_a_client_of_any_wire_should_not_have_heard_is_told(hearing: Hearing, told: str) -> None:
    found = spoken(0, 1, 2)
    found.hearings = [hearing]
    assert any(each.startswith(told) for each in broken_promises(found))


def test_a_message_without_an_id_of_its_clients_is_known_by_its_words() -> None:
    twice = spoken(0, 1, 2)
    more = spoken(0, 1, 2).messages[1].events
    again = [Envelope("s", each.seq + len(more), 2, 0.0, each.event) for each in more]
    twice.messages.append(events(3, 1, *again))
    assert any(told.startswith(f"turn run twice: message {ID[:12]}") for told in broken_promises(twice))
    unheard = spoken(0)
    unheard.clients["s"].accepted = {"f" * 12}
    assert any("lost message" in told for told in broken_promises(unheard))


def test_words_that_a_watcher_saw_are_those_of_the_stream() -> None:
    found = spoken(0, 1)
    found.clients["s"].saw(2, "TextDelta", word(ID, 0))
    assert broken_promises(found) == []
    found.clients["s"].saw(3, "TextDelta", word(ID, 0))
    assert any("lost event" in told for told in broken_promises(found))
    found.clients["s"].saw(2, "TextDelta", word(ID, 1))
    assert any("shown twice" in told for told in broken_promises(found))


def test_what_a_client_saw_must_be_in_the_stream() -> None:
    found = history(owner(1), events(2, 1, envelope(1, started("m")), envelope(2, TurnEnded("success"))))
    found.clients["s"].seen = {3: ("TurnEnded", None)}
    found.clients["s"].accepted = {"m", "n"}
    told = broken_promises(found)
    assert any("lost event" in each for each in told)
    assert any("lost message: n" in each for each in told)
