"""Checks of turns: the text, its end, and what may happen in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from trunkline.base import jsontext
from trunkline.conform.expect import expect, same
from trunkline.conform.kit import Broken
from trunkline.conform.tryll.link import Link, shown
from trunkline.conform.tryll.session import LONG_CHARS, REQUEST_IDS
from trunkline.conform.tryll.stage import Stage
from trunkline.conform.tryll.suite import LINE, canned, check, diagnosed, ended_well, guard
from trunkline.wires.tryll import messages as m

#: How long nothing must come from an agent that was destroyed.
QUIET_SECONDS = 0.25
#: How many times the words a turn has, each time that it is played, if it has to be longer than what is done meanwhile.
LONGER = (1, 4, 16)


@check("tryll.turn.canned", "MUST", "Streaming answers")
async def line(stage: Stage) -> None:
    """A turn consists of `AnswerText` frames, the last one final, then `TurnComplete`; both name the agent."""
    link = await stage.session()
    agent = await link.agent(canned("say", LINE))
    turn = ended_well(await link.say(agent, "hello"))
    same("the answer", turn.text, LINE)
    same("the tokens of a turn without a model", turn.complete.tokens_generated, 0)


@check("tryll.turn.request-id", "SHOULD", "Details")
async def request_id(stage: Stage) -> None:
    """`AnswerText` and `TurnComplete` repeat the request id of their `SendMessageRequest`."""
    link = await stage.session()
    agent = await link.agent(canned("say", LINE))
    for number in REQUEST_IDS:
        await link.send(m.SendMessageRequest(number, agent, "hello"))
        turn = ended_well(await link.turn(agent))
        same("the request ids of a turn", turn.request_ids, {number})


@check("tryll.turn.no-text", "MUST", "Streaming answers")
async def no_text(stage: Stage) -> None:
    """A turn without text still has one final, empty `AnswerText`."""
    link = await stage.session()
    agent = await link.agent(guard("guard", "no such thing"))
    turn = ended_well(await link.say(agent, "hello"))
    same("the texts", [answer.text for answer in turn.answers], [""])


@check("tryll.turn.empty-message", "MUST", "Streaming answers")
async def empty_message(stage: Stage) -> None:
    """An empty message is a message: its turn ends like any other."""
    link = await stage.session()
    agent = await link.agent(canned("say", LINE))
    same("the answer", ended_well(await link.say(agent, "")).text, LINE)


@check("tryll.turn.long", "MUST", "Framing")
async def long(stage: Stage) -> None:
    """A message and an answer of a million characters arrive complete, in frames that are not too large."""
    link = await stage.session()
    agent = await link.agent(canned("say", "y" * LONG_CHARS))
    turn = ended_well(await link.say(agent, "x" * LONG_CHARS))
    expect(turn.text == "y" * LONG_CHARS, f"of {LONG_CHARS} characters {len(turn.text)} arrived, or different ones")


@check("tryll.turn.unicode", "MUST", "Streaming answers")
async def letters(stage: Stage) -> None:
    """Text in any script, combining marks and line ends are returned as they were sent."""
    text = "Grüße, \N{GRINNING FACE} e\N{COMBINING ACUTE ACCENT} \u05d0\u0628\u4e2d \x7f\x01\t\r\n\u2028{{x}} & <b>"
    link = await stage.session()
    agent = await link.agent(canned("say", text))
    same("the answer", ended_well(await link.say(agent, text)).text, text)


@check("tryll.turn.several", "MUST", "Streaming answers")
async def several(stage: Stage) -> None:
    """Two nodes that answer in one turn make one final `AnswerText`, not two."""
    link = await stage.session()
    agent = await link.agent(canned("first", "One.", exit="second"), canned("second", "Two."))
    turn = ended_well(await link.say(agent, "hello"))
    said = "".join(answer.text for answer in turn.answers)
    expect("One." in said and "Two." in said, f"the texts were {said!a}")


@check("tryll.turn.so-far", "MUST", "Streaming answers")
async def so_far(stage: Stage) -> None:
    """A frame that is not a delta holds everything the turn has answered so far, from whichever nodes."""
    link = await stage.session()
    nodes = (canned("first", "One.", exit="second"), canned("second", "Two.", exit="third"), canned("third", "Three."))
    turn = ended_well(await link.say(await link.agent(*nodes), "hello"))
    before = ""
    for answer in turn.answers:
        if not answer.is_delta:
            expect(answer.text.startswith(before), f"after {before!a} the answer so far was {answer.text!a}")
        before = before + answer.text if answer.is_delta else answer.text
    places = [turn.text.find(line) for line in ("One.", "Two.", "Three.")]
    expect(-1 not in places and places == sorted(places), f"the answer of the turn was {turn.text!a}")


@check("tryll.turn.quiet", "MUST", "Streaming answers")
async def no_diagnostics(stage: Stage) -> None:
    """Without `enable_diagnostics` there is no `debug_info`."""
    link = await stage.session()
    agent = await link.agent(canned("say", LINE))
    same("`debug_info`", ended_well(await link.say(agent, "hello")).complete.debug_info, "")


@check("tryll.turn.diagnostics", "MUST", "Streaming answers")
async def diagnostics(stage: Stage) -> None:
    """With `enable_diagnostics`, `debug_info` is a JSON object that names the nodes that ran."""
    link = await stage.session()
    nodes = (guard("gate-keeper", "nothing", passed="speaker"), canned("speaker", LINE), canned("never-run", LINE))
    turn = ended_well(await link.say(await link.agent(*nodes, enable_diagnostics=True), "hello"))
    told = jsontext.dumps(diagnosed(turn)).decode()
    expect("gate-keeper" in told and "speaker" in told, f"it does not name the nodes: {told[:160]!a}")


@check("tryll.turn.failed", "MUST", "Error responses")
async def failed(stage: Stage) -> None:
    """A failure within a turn ends it with status Error, without an `ErrorResponse`."""
    link = await stage.session()
    ring = (_instruction("one", "two"), _instruction("two", "one"))
    agent = await link.agent(*ring, enable_diagnostics=True)
    for _ in range(2):
        ended_well(await link.say(agent, "hello"), m.TurnStatus.ERROR)
    stray = [shown(each) for each in await link.quiet(0.05)]
    expect(not stray, f"besides the turn there was {stray}")


@check("tryll.turn.why", "SHOULD", "Error responses")
async def why(stage: Stage) -> None:
    """With `enable_diagnostics`, `debug_info` of a failed turn contains the error code."""
    link = await stage.session()
    agent = await link.agent(_instruction("one", "one"), enable_diagnostics=True)
    turn = ended_well(await link.say(agent, "hello"), m.TurnStatus.ERROR)
    told = jsontext.dumps(diagnosed(turn)).decode()
    expect("4003" in told, f"an endless turn does not report 4003, but {told[:160]!a}")


@check("tryll.turn.steps", "SHOULD", "Details")
async def steps(stage: Stage) -> None:
    """A turn can run at most `max_steps_per_turn` nodes, by default 64."""
    link = await stage.session()
    for most, given in ((64, 0), (5, 5)):
        chain = [_instruction(f"n{number}", f"n{number + 1}") for number in range(most - 1)]
        right = await link.agent(*chain, canned(f"n{most - 1}", LINE), max_steps_per_turn=given)
        same("the answer of the last node", ended_well(await link.say(right, "hello")).text, LINE)
        chain.append(_instruction(f"n{most - 1}", f"n{most}"))
        wrong = await link.agent(*chain, canned(f"n{most}", LINE), max_steps_per_turn=given)
        ended_well(await link.say(wrong, "hello"), m.TurnStatus.ERROR)


@check("tryll.turn.stream", "SHOULD", "Streaming answers", "model")
async def stream(stage: Stage) -> None:
    """A streaming node sends its answer in several deltas; the turn counts its tokens."""
    link = await stage.model_session()
    turn = ended_well(await link.say(await stage.slow(link), stage.chatter(8)))
    expect(len(turn.answers) > 1, "the answer came in one frame")
    expect(all(answer.is_delta for answer in turn.answers), "not all frames are deltas")
    expect(bool(turn.text.strip()), "the answer is empty")
    expect(turn.complete.tokens_generated > 0, f"{turn.complete.tokens_generated} tokens were generated")


@check("tryll.turn.whole", "SHOULD", "Streaming answers", "model")
async def whole(stage: Stage) -> None:
    """A node that does not stream sends its answer in one frame, which is not a delta."""
    link = await stage.model_session()
    turn = ended_well(await link.say(await stage.slow(link, stream=False), stage.chatter(8)))
    texts = [answer for answer in turn.answers if answer.text]
    same("the frames with text, and which are deltas", [answer.is_delta for answer in texts], [False])
    expect(turn.complete.tokens_generated > 0, f"{turn.complete.tokens_generated} tokens were generated")


@check("tryll.turn.busy", "MUST", "Session lifecycle", "model")
async def busy(stage: Stage) -> None:
    """A second message during a turn is refused with 3004, and the running turn is not affected."""

    async def sample(link: Link, words: int) -> None:
        agent = await stage.slow(link)
        first = await _begin(stage, link, agent, words)
        for _ in range(2):
            await link.refused(m.SendMessageRequest(0, agent, "and this?"), 3004, why="during a turn")
        turn = ended_well(await link.turn(agent, first))
        same("the request ids of the turn", turn.request_ids, {first})
        ended_well(await link.say(agent, stage.chatter(2)))

    await _outlasting(stage, 40, sample)


@check("tryll.turn.change", "SHOULD", "Details", "model")
async def change(stage: Stage) -> None:
    """Parameters cannot be changed during a turn: 3004."""

    async def sample(link: Link, words: int) -> None:
        agent = await stage.slow(link)
        first = await _begin(stage, link, agent, words)
        params = m.GenerateParams(model_name="another")
        await link.refused(m.ChangeAgentParamRequest(0, agent, "say", params), 3004, why="during a turn")
        ended_well(await link.turn(agent, first))

    await _outlasting(stage, 40, sample)


@check("tryll.turn.parallel", "MUST", "Session lifecycle", "model")
async def parallel(stage: Stage) -> None:
    """Turns of different agents run concurrently: a quick one ends while a slow one in the same session continues."""

    async def sample(link: Link, words: int) -> None:
        slow, quick = await stage.slow(link), await link.agent(canned("say", LINE))
        first = await _begin(stage, link, slow, words)
        for _ in range(3):
            same("the quick answer", ended_well(await link.say(quick, "hello")).text, LINE)
        over = [message for message in await link.waiting() if isinstance(message, m.TurnComplete)]
        expect(not over, "the quick turns waited for the slow one to end")
        same("the request id of the slow one", (await link.turn(slow, first)).complete.request_id, first)

    await _outlasting(stage, 60, sample)


@check("tryll.turn.destroyed", "SHOULD", "Details", "model")
async def destroyed(stage: Stage) -> None:
    """`DestroyAgent` during a turn: final text, `TurnComplete` as cancelled, `Ack`; then nothing more from it."""
    link = await stage.model_session()
    agent = await stage.slow(link)
    await _begin(stage, link, agent, 400)
    await link.send(m.DestroyAgentRequest(7, agent))
    frames: list[m.Message] = []
    while not frames or not isinstance(frames[-1], m.Ack):
        frames.append(await link.first("Ack"))
    kinds = [type(each).__name__ for each in frames[-3:]]
    same("what came last", kinds, ["AnswerText", "TurnComplete", "Ack"])
    text, complete = frames[-3:-1]
    expect(isinstance(text, m.AnswerText) and text.is_final, f"before `TurnComplete` came {shown(text)}")
    same("the status", getattr(complete, "status", None), m.TurnStatus.CANCELLED)
    await link.refused(m.SendMessageRequest(0, agent, "hello"), 3002, why="for a destroyed agent")
    late = [each for each in await link.quiet(QUIET_SECONDS) if getattr(each, "agent_id", 0) == agent]
    expect(not late, f"after `Ack` came {shown(late[0]) if late else ''}")


def _instruction(name: str, then: str) -> m.NodeDescription:
    return m.NodeDescription(name, m.InstructionParams("note", "Be kind.", then))


async def _outlasting(stage: Stage, words: int, sample: Callable[[Link, int], Awaitable[None]]) -> None:
    """Play something during a turn of so many words; if that was over when a problem showed, again in a longer one.

    A busy machine may be later than the end of a turn. A server that is wrong is so in the longest one, too.
    """
    for times in LONGER:
        link = await stage.model_session()
        try:
            await sample(link, words * times)
        except Broken:
            is_over = any(isinstance(message, m.TurnComplete) for message in await link.waiting())
            if not is_over or times == LONGER[-1]:
                raise
        else:
            return
        # With it goes whatever was begun there.
        await link.close()


async def _begin(stage: Stage, link: Link, agent: int, words: int) -> int:
    """Begin a turn that takes a while, and wait until it speaks; gives its request id."""
    request_id = link.next_id()
    await link.send(m.SendMessageRequest(request_id, agent, stage.chatter(words)))
    found = await link.take(
        lambda message: isinstance(message, m.AnswerText | m.ErrorResponse | m.TurnComplete), "text of the answer"
    )
    expect(isinstance(found, m.AnswerText), f"a long turn started with {shown(found)}")
    return request_id
