"""Events without secrets, also without those that are learned on the way."""

from __future__ import annotations

from trunkline.base.redact import MASK, Redactor
from trunkline.core.events import Notice, TextDelta
from trunkline.core.redaction import Redaction


def test_while_no_secret_is_known_events_pass_untouched_and_one_that_is_learned_is_taken_out() -> None:
    redactor = Redactor()
    redact = Redaction(redactor)
    event = TextDelta("hunter22-and-more")
    assert redact(event)[0] is event
    redactor.learn(["hunter22-and-more"])
    assert redact(Notice("it is hunter22-and-more")) == (Notice(f"it is {MASK}"),)
    assert redact.text("hunter22-and-more") == MASK


def test_what_is_held_back_of_a_text_is_given_before_the_next_event() -> None:
    redact = Redaction(Redactor(["hunter22-and-more"]))
    shown = [*redact(TextDelta("say hunter22")), *redact(TextDelta("-and-more now")), *redact(Notice("end"))]
    assert "".join(event.text for event in shown if isinstance(event, TextDelta)) == f"say {MASK} now"
    assert shown[-1] == Notice("end")
