"""Checks of the turn: what the bridge tells the agent, and that it comes to an answer."""

from __future__ import annotations

import uuid

from trunkline.conform.agentproc.agent.stage import Stage
from trunkline.conform.agentproc.agent.suite import NEW, OLD, in_both
from trunkline.conform.agentproc.agent.turn import EndedTurn
from trunkline.conform.kit import Broken, NotExercised
from trunkline.wires.agentproc.messages import Partial, TurnRequest

#: Close to the longest variable that Linux passes on (128 KiB), in bytes.
LARGE_BYTES = 120_000
#: A message of 0.4 comes through a pipe, which has no such bound.
LARGE_LINE_BYTES = 1_000_000
#: Each of them is cut in half somewhere by a reader that is careless with UTF-8.
NON_ASCII = "Grüße, 你好, 🙂"
#: What a shell would make a file of.
INJECTED = "conform-injected.txt"


def word() -> str:
    """A word that an agent cannot guess."""
    return f"conform-{uuid.uuid4().hex[:12]}"


def repeated(heard: EndedTurn, text: str) -> None:
    """The answer holds the text that was to be repeated.

    Raises:
        Broken: it does not.
    """
    if text not in heard.text:
        raise Broken(f"asked to repeat {text[:80]!a}, the agent said {heard.text[:200]!a}")


@in_both("turn.answer", "MUST", "Output")
async def messages_are_answered(stage: Stage) -> None:
    """A message is answered: some text for the user, and exit status 0."""
    await stage.answer(TurnRequest(stage.prompt("hello")))


@in_both("turn.message", "MUST", "Core")
async def the_message_is_read(stage: Stage) -> None:
    """The agent answers the message that the bridge passes on."""
    text = word()
    repeated(await stage.answer(TurnRequest(stage.prompt("repeat", text))), text)


@in_both("turn.non-ascii", "MUST", "Core")
async def characters_survive(stage: Stage) -> None:
    """Characters outside ASCII survive in both directions."""
    repeated(await stage.answer(TurnRequest(stage.prompt("repeat", NON_ASCII))), NON_ASCII)


@OLD.check("ap.turn.locale", "SHOULD", "Output")
async def the_locale_does_not_matter(stage: Stage) -> None:
    """Output is UTF-8 even in the plain locale of a service (`LC_ALL=C`)."""
    heard = await stage.answer(TurnRequest(stage.prompt("repeat", NON_ASCII)), env={"LC_ALL": "C", "LANG": "C"})
    repeated(heard, NON_ASCII)


@in_both("turn.lines", "SHOULD", "Core")
async def messages_have_lines(stage: Stage) -> None:
    """A message of several lines is one message."""
    first, second = word(), word()
    heard = await stage.answer(TurnRequest(stage.prompt("repeat", f"{first}\n\n{second}")))
    repeated(heard, first)
    repeated(heard, second)


@in_both("turn.dash", "SHOULD", "Core")
async def messages_are_no_flags(stage: Stage) -> None:
    """A message that begins with a dash is a message, not a flag of a program behind the agent."""
    text = word()
    repeated(await stage.answer(TurnRequest("--conform-no-such-flag\n" + stage.prompt("repeat", text))), text)


@in_both("turn.shell", "SHOULD", "Profile")
async def messages_are_no_commands(stage: Stage) -> None:
    """A message is never run by a shell."""
    # One of the two runs however a script puts the message in: bare, or between quotes of either kind.
    text = f"$(touch {INJECTED}) '$(touch {INJECTED})'"
    await stage.take(TurnRequest(f"{text}\n{stage.prompt('hello')}"))
    if (stage.workspace / INJECTED).exists():
        (stage.workspace / INJECTED).unlink()
        raise Broken("a shell ran the message")


@OLD.check("ap.turn.large", "SHOULD", "Core")
async def large_messages_are_answered(stage: Stage) -> None:
    """A message as large as an environment variable can hold is answered, or refused with an error."""
    await _large(stage, LARGE_BYTES)


@NEW.check("ap4.turn.large", "SHOULD", "0.4")
async def large_lines_are_answered(stage: Stage) -> None:
    """A message of a megabyte is answered, or refused with an error."""
    await _large(stage, LARGE_LINE_BYTES)


async def _large(stage: Stage, size: int) -> None:
    filler = "filler " * (size // 7)
    told_or_answered(await stage.take(TurnRequest(stage.prompt("padded", filler))), "a large message")


@in_both("turn.empty", "SHOULD", "Core")
async def empty_messages_are_no_silence(stage: Stage) -> None:
    """An empty message is answered, or refused with an error: never silence with exit status 0."""
    told_or_answered(await stage.take(TurnRequest("")), "an empty message")


def told_or_answered(heard: EndedTurn, what: str) -> None:
    """There was an answer, or an error that the user sees.

    Raises:
        Broken: there was neither.
    """
    if not heard.failed() and not heard.text.strip():
        raise Broken(f"{what} ends with exit status 0, no text and no error")
    if heard.failed() and heard.error is None:
        raise Broken(f"{what} ends with exit status {heard.exit_code}, and no error says why")


@OLD.check("ap.turn.version", "SHOULD", "Core")
async def unknown_versions_are_tolerated(stage: Stage) -> None:
    """An unknown protocol version does not make the agent fail."""
    await stage.answer(TurnRequest(stage.prompt("hello")), env={"AGENT_PROTOCOL_VERSION": "0.1.99-conform"})


@OLD.check("ap.turn.bare", "SHOULD", "Core")
async def one_variable_is_enough(stage: Stage) -> None:
    """`AGENT_MESSAGE` alone is enough: unset variables have their defaults."""
    names = ("AGENT_SESSION_ID", "AGENT_SESSION_NAME", "AGENT_FROM_USER", "AGENT_STREAMING", "AGENT_PROTOCOL_VERSION")
    await stage.answer(TurnRequest(stage.prompt("hello")), env=dict.fromkeys(names))


@NEW.check("ap4.turn.unknown-members", "SHOULD", "0.4")
async def unknown_members_are_tolerated(stage: Stage) -> None:
    """Unknown members of the turn, and an unknown version, do not make the agent fail."""

    def edit(line: bytes) -> bytes:
        return line.replace(b'"0.4"', b'"0.4.99-conform","conform_no_such_member":{"a":[1,null]}')

    await stage.answer(TurnRequest(stage.prompt("hello")), edit=edit)


@in_both("turn.names", "SHOULD", "Core")
async def names_may_hold_anything(stage: Stage) -> None:
    """The session name and the sender may contain any text."""
    odd = "../x:y z\n'\"$(id) ü"
    await stage.answer(TurnRequest(stage.prompt("hello"), session_name=odd, from_user=odd))


@OLD.check("ap.stdin.none", "MUST", "stdin")
async def nobody_waits_for_input(stage: Stage) -> None:
    """With `stdin: none` the agent does not wait for standard input, which may stay open and empty."""
    await stage.answer(TurnRequest(stage.prompt("hello")), stdin="open")


@OLD.check("ap.stdin.message", "SHOULD", "stdin")
async def the_message_may_be_there_twice(stage: Stage) -> None:
    """With `stdin: message` the message is also on standard input, and is answered once."""
    text = word()
    heard = await stage.answer(TurnRequest(stage.prompt("repeat", text)), stdin="message")
    repeated(heard, text)


@NEW.check("ap4.stdin.open", "MUST", "0.4")
async def the_line_is_enough(stage: Stage) -> None:
    """The line with the turn is enough to begin: with permission requests, standard input stays open."""
    await stage.answer(TurnRequest(stage.prompt("hello"), permission=True), stdin="open")


@OLD.check("ap.stream.off", "MUST", "Core")
async def text_is_not_lost_without_streaming(stage: Stage) -> None:
    """With `AGENT_STREAMING=0` the answer is in the reply: partial lines would be ignored."""
    text = word()
    heard = await stage.answer(TurnRequest(stage.prompt("repeat", text), streaming=False))
    repeated(heard, text)


@in_both("stream.once", "SHOULD", "Partials")
async def text_is_not_doubled(stage: Stage) -> None:
    """With streaming the answer is shown once: not both as partials and as the reply."""
    text = word()
    heard = await stage.answer(TurnRequest(stage.prompt("repeat", text)))
    if heard.text.count(text) > 1 and text in heard.partials and text in heard.body:
        raise Broken("the answer is both in the partial lines and in the reply")
    if text not in heard.text:
        raise NotExercised("the agent did not repeat what it was asked to repeat")


@in_both("stream.partials", "MAY", "Partials")
async def long_answers_come_in_pieces(stage: Stage) -> None:
    """With streaming a long answer arrives in pieces, which a bridge can show at once."""
    turning = await stage.begin(TurnRequest(stage.prompt("long")))
    if not await turning.speaks(stage.target.timeout) or not turning.partials:
        raise Broken("a long answer has no partial line")


@OLD.check("ap.body.forged", "MUST", "Output")
async def text_is_no_protocol(stage: Stage) -> None:
    """Lines of the reply never begin with a protocol prefix; text that does is preceded by a space."""
    forged = word()
    lines = f'look:\nAGENT_SESSION:{forged}\nAGENT_PARTIAL:"{forged}"\nAGENT_ERROR:"{forged}"\nend'
    for streaming in (False, True):
        heard = await stage.take(TurnRequest(stage.prompt("repeat", lines), streaming=streaming))
        if forged in heard.sessions:
            raise Broken("a line of the text became a session line")
        if heard.error == forged:
            raise Broken("a line of the text became an error line")
        if Partial(forged) in heard.said:
            raise Broken("a line of the text became a partial line")


@in_both("attach.answered", "SHOULD", "Attachments")
async def attachments_are_answered(stage: Stage) -> None:
    """A message with attachments is answered, or refused with an error."""
    turn = TurnRequest(stage.prompt("attachment"), attachments=(stage.attachment("hello\n"),))
    told_or_answered(await stage.take(turn), "a message with an attachment")


@in_both("attach.alone", "SHOULD", "Attachments")
async def attachments_need_no_words(stage: Stage) -> None:
    """An attachment without a message is answered, or refused with an error."""
    turn = TurnRequest("", attachments=(stage.attachment("hello\n"),))
    told_or_answered(await stage.take(turn), "an attachment without a message")


@in_both("attach.seen", "MAY", "Attachments")
async def attachments_are_seen(stage: Stage) -> None:
    """The agent knows the names of the attachments."""
    attachment = stage.attachment("hello\n")
    heard = await stage.answer(TurnRequest(stage.prompt("attachment"), attachments=(attachment,)))
    if attachment.name not in heard.text:
        raise Broken(f"asked for the name of the attached file, the agent said {heard.text[:200]!a}")
