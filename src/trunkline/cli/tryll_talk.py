"""`trunkline tryll talk`: talk to an agent on a Tryll server, by microphone and speakers or by files.

Exit codes: 0 when the answer is complete, or the conversation was ended by a key; 1 when nothing was understood, an
answer failed, or there is no server; 2 for wrong usage; 130 after Ctrl-C, 143 after SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

import click

from trunkline.agents.external.tryll import TryllAgent
from trunkline.agents.external.tryll_talk import TryllTalk
from trunkline.agents.external.tryll_talk_agent import TalkAgent
from trunkline.agents.external.tryll_talk_events import Answered, Hushed, Spoken
from trunkline.agents.external.tryll_talk_options import INSTRUCTIONS, TalkOptions
from trunkline.base.printable import printable_line
from trunkline.base.signals import handled
from trunkline.base.values import Value
from trunkline.cli import chat, chat_options, talk_audio, talk_files, talk_keys
from trunkline.cli.chat_session import ChatOptions, Opening, resume_command
from trunkline.cli.chat_session import TerminalSession as ChatSession
from trunkline.cli.talk_audio import PIECE_MS, Microphone, Speakers
from trunkline.cli.talk_screen import JsonScreen, Lines, ProgressNotes, TalkScreen
from trunkline.cli.terminal.keys import Key
from trunkline.cli.terminal.talk import TalkCommands, TalkView
from trunkline.cli.tryll import DEFAULT_LISTEN
from trunkline.cli.tryll_chat import TOKEN_VARIABLE, load_graph, tls_context, tls_option
from trunkline.core.faults import ConfigError, Fault
from trunkline.wires.tryll.errors import TryllError

EXIT_FAILED = 1
_SIGNAL_EXIT = 128
_NO_SERVER = 1001
#: The shortest and the longest pause that ends what somebody says.
_PAUSES = (100, 5000)


class _Wanted(Value):
    """What was asked for."""

    address: str
    options: TalkOptions
    text: str | None
    source: str | None
    target: str | None
    fast: bool
    push_to_talk: bool
    as_json: bool
    quiet: bool
    tls_ca: str | None
    keeping: ChatOptions
    """How it is kept."""

    @property
    def live(self) -> bool:
        """Whether somebody talks, and not a file or a text."""
        return self.source is None and self.text is None


@click.command("talk")
@click.argument("address", default=DEFAULT_LISTEN, metavar="[HOST:PORT]")
@click.option("-p", "--print", "text", metavar="TEXT", help="Ask this as if it had been said, and end.")
@click.option("--in", "source", metavar="FILE.wav", help="Say what is in this file, instead of using a microphone.")
@click.option(
    "--out", "--sound", "target", metavar="FILE.wav", help="Write the answer's sound there, instead of playing it."
)
@click.option("--fast", is_flag=True, help="With `--in`: do not wait until the file would have been played.")
@click.option("--push-to-talk", is_flag=True, help="Listen from one press of the space bar to the next.")
@click.option("--graph", "file", metavar="FILE", help="Talk to this graph (YAML), or to a bundled one: `npc`, `smith`.")
@click.option("--model", default="", metavar="NAME", help="The model that answers.")
@click.option("--stt", default="", metavar="NAME", help="The model that hears, such as whisper-base.")
@click.option("--tts", default="", metavar="NAME", help="The model that speaks, such as piper-joe.")
@click.option("--system-prompt", default=INSTRUCTIONS, metavar="TEXT", help="Instructions, where no graph has them.")
@click.option(
    "--pause",
    type=click.IntRange(*_PAUSES),
    default=500,
    show_default=True,
    metavar="MS",
    help="A pause of this length ends what you say.",
)
@click.option("--no-barge-in", is_flag=True, help="Do not let speech interrupt the answer.")
@click.option("--json", "as_json", is_flag=True, help="Print what happens as JSON lines.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but the answer, and what went wrong.")
@tls_option
@chat_options.keeping
def command(
    address: str,
    text: str | None,
    source: str | None,
    target: str | None,
    fast: bool,
    push_to_talk: bool,
    file: str | None,
    model: str,
    stt: str,
    tts: str,
    system_prompt: str,
    pause: int,
    no_barge_in: bool,
    as_json: bool,
    quiet: bool,
    tls_ca: str | None,
    **keeping: Any,
) -> None:
    """Talk to the Tryll server at HOST:PORT: what you say is written down and answered, aloud.

    Hands-free: a pause ends what you say, and to speak interrupts the answer. Models that the server has not got yet
    are fetched first; a name that begins with `mock` needs none. A server with a token wants it in
    TRUNKLINE_TRYLL_TOKEN.

    A graph whose nodes do not speak is given a voice: all that it answers is said. One that speaks does so as it likes.

    \b
    Examples:
      trunkline tryll talk
      trunkline tryll talk --graph npc
      trunkline tryll talk --push-to-talk --tts espeak
      trunkline tryll talk --in question.wav --out answer.wav
    """
    if text is not None and source is not None:
        raise click.UsageError("Cannot use `-p` and `--in` together")
    if fast and source is None:
        raise click.UsageError("`--fast` goes with `--in`.")
    try:
        options = TalkOptions(
            model, stt, tts, system_prompt, pause_ms=pause, barge_in=not no_barge_in, graph=load_graph(file)
        )
        wanted = _Wanted(
            address,
            options,
            text,
            source,
            target,
            fast,
            push_to_talk,
            as_json,
            quiet,
            tls_ca,
            chat.resumed(
                ChatOptions(
                    command=("trunkline", "tryll", "talk", address, *(["--graph", file] if file else [])), **keeping
                )
            ),
        )
        sys.exit(_run(lambda: _talk(wanted)))
    except (Fault, TryllError) as error:
        hint = " `trunkline tryll serve` starts one." if getattr(error, "code", 0) == _NO_SERVER else ""
        raise click.ClickException(printable_line(str(error)) + hint) from error


def _run(main: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run to the end, or until a signal; everything is let go of in both cases."""
    received: list[int] = []

    async def until_signal() -> int:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def on_signal(number: int) -> None:
            received.append(number)
            if task is not None:
                task.cancel()

        # Only there they can be heard.
        if threading.current_thread() is threading.main_thread():
            for number in handled():
                loop.add_signal_handler(number, on_signal, number)
        try:
            return await main()
        except asyncio.CancelledError:
            if not received:
                raise
            click.echo(err=True)
            return _SIGNAL_EXIT + received[0]

    return asyncio.run(until_signal())


async def _talk(wanted: _Wanted) -> int:
    screen = _screen(wanted)
    found = TryllAgent.parse(wanted.address)
    recording = None
    options = wanted.options
    if wanted.source is not None:
        recording = await asyncio.to_thread(talk_files.read_wav, wanted.source)
        options = options.replace(sample_rate=recording.sample_rate, channels=recording.channels)
        if wanted.target is not None and talk_files.is_same(wanted.source, wanted.target):
            raise ConfigError("`--in` and `--out` are the same file.")
    async with AsyncExitStack() as kept:
        # Devices and files first: whoever has none need not wait for models.
        microphone = await kept.enter_async_context(_microphone()) if wanted.live else None
        voice = await kept.enter_async_context(_voice(wanted.target, screen, live=wanted.live))
        if isinstance(screen, TalkView):
            kept.enter_context(screen)
            await kept.enter_async_context(_moving(screen))
        opening = TryllTalk.open(
            found.host,
            found.port,
            options,
            token=os.environ.get(TOKEN_VARIABLE, ""),
            ssl=tls_context(wanted.tls_ca),
            progress=ProgressNotes(screen.note),
            notice=screen.note,
            on_node_event=screen.told,
        )
        talk = await kept.enter_async_context(await opening)
        session = await kept.enter_async_context(_kept(talk, found.name, wanted, screen))
        if isinstance(screen, TalkView) and not wanted.quiet:
            screen.welcome(found.name, *filter(None, (talk.options.model, talk.options.stt, talk.options.tts)))
        if recording is not None:
            return await _tell(session, _feed(talk, recording, wanted), screen, voice)
        if wanted.text is not None:
            return await _tell(session, _say(talk, wanted.text), screen, voice)
        if microphone is None:
            raise AssertionError("there is a microphone where there is no file")
        return await _converse(session, microphone, wanted, screen, voice)


def _screen(wanted: _Wanted) -> TalkScreen:
    if wanted.as_json:
        return JsonScreen()
    if not sys.stdout.isatty():
        return Lines(quiet=wanted.quiet)
    from trunkline.cli.terminal.conversation import on_terminal

    return TalkView(*on_terminal())


class _Kept(NamedTuple):
    """A conversation, and the session in which it is kept."""

    talk: TryllTalk
    agent: TalkAgent
    session: ChatSession


@asynccontextmanager
async def _kept(talk: TryllTalk, name: str, wanted: _Wanted, screen: TalkScreen) -> AsyncIterator[_Kept]:
    agent = TalkAgent(talk, name)
    options = wanted.keeping
    session = await ChatSession.open(
        options, Opening(agent, {}), interactive=False, on_judged=lambda _: None, tell=screen.note
    )
    if agent.forgotten is not None:
        screen.note(f"The server did not take back what was said before: {agent.forgotten}")
    try:
        yield _Kept(talk, agent, session)
    finally:
        await session.close()
    if session.resumable and not wanted.quiet:
        screen.note(f"Go on with: {resume_command(options, session.session.id)}")


@asynccontextmanager
async def _moving(screen: TalkView) -> AsyncIterator[None]:
    task = asyncio.create_task(screen.animate(), name="frames")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _say(talk: TryllTalk, text: str) -> None:
    """A text in place of sound."""
    await talk.say(text)
    await talk.finish()


async def _tell(kept: _Kept, saying: Coroutine[Any, Any, None], screen: TalkScreen, voice: Speakers | None) -> int:
    """Say what is in a file or a text, and wait for the answer."""
    feeding = asyncio.create_task(saying, name="input")
    showing = asyncio.create_task(_show(kept, screen, voice), name="screen")
    try:
        # The one that fails tells why; the other would wait for ever.
        await asyncio.gather(feeding, showing)
    finally:
        feeding.cancel()
        showing.cancel()
        await asyncio.wait({feeding, showing})
    outcome = showing.result()
    if outcome is None:
        screen.note("Nothing was understood.")
    return 0 if outcome == "success" else EXIT_FAILED


async def _feed(talk: TryllTalk, recording: talk_files.Recording, wanted: _Wanted) -> None:
    """Send the file, at the speed at which it would be played, unless it is to be fast."""
    loop = asyncio.get_running_loop()
    # Faster than it is understood, a pause would be found too late: then it is one utterance.
    if wanted.fast or wanted.push_to_talk:
        await talk.press()
    else:
        await talk.listen()
    step = recording.second * PIECE_MS // 1000 // 4 * 4
    due = loop.time()
    for begin in range(0, len(recording.pcm), step):
        if not wanted.fast:
            due += PIECE_MS / 1000
            await asyncio.sleep(due - loop.time())
            while not talk.options.barge_in and talk.answering:
                # Whoever may not interrupt waits for the end.
                await talk.answered()
                due = loop.time()
        await talk.hear(recording.pcm[begin : begin + step])
    await talk.finish()


async def _converse(
    kept: _Kept, microphone: Microphone, wanted: _Wanted, screen: TalkScreen, voice: Speakers | None
) -> int:
    """Talk until somebody ends it."""
    talk, commands = kept.talk, None
    if isinstance(screen, TalkView):
        commands = TalkCommands(screen, kept.session.session, wanted.keeping.directory, talk.options.model)
    keys: asyncio.Queue[Key] = asyncio.Queue()
    with talk_keys.heard(keys):
        if not wanted.push_to_talk:
            await talk.listen()
        if not wanted.quiet:
            begin = (
                "Press the space bar to talk, and again when you are done."
                if wanted.push_to_talk
                else ("Speak: the agent listens. The space bar stops an answer.")
            )
            screen.note(f"{begin} q ends, and what you type is said, too: /help lists more.")
        work = {
            asyncio.create_task(_show(kept, screen, voice), name="screen"),
            asyncio.create_task(_listen(talk, microphone, voice), name="microphone"),
            asyncio.create_task(
                talk_keys.obey(talk, keys, voice, screen, commands, push_to_talk=wanted.push_to_talk), name="keys"
            ),
        }
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in work:
                task.cancel()
            await asyncio.wait(work)
        for task in done:
            task.result()
    return 0


async def _listen(talk: TryllTalk, microphone: Microphone, voice: Speakers | None) -> None:
    while pcm := await microphone.read():
        # Who may not interrupt is not heard meanwhile: neither is the answer itself, from the speakers.
        if talk.options.barge_in or not (talk.answering or (voice is not None and voice.playing)):
            await talk.hear(pcm)


async def _show(kept: _Kept, screen: TalkScreen, voice: Speakers | None) -> str | None:
    """Show everything; gives how the last answer ended, None without any."""
    outcome = None
    while (event := await kept.talk.next_event()) is not None:
        kept.agent.take(event, kept.session.session)
        screen.show(event)
        if isinstance(event, Spoken) and voice is not None:
            voice.play(event.sound)
        elif isinstance(event, Hushed) and voice is not None:
            voice.stop()
        elif isinstance(event, Answered):
            outcome = event.outcome
    return outcome


@asynccontextmanager
async def _microphone() -> AsyncIterator[Microphone]:
    found = await talk_audio.open_microphone()
    try:
        yield found
    finally:
        await found.close()


@asynccontextmanager
async def _voice(target: str | None, screen: TalkScreen, *, live: bool) -> AsyncIterator[Speakers | None]:
    """Where the answer's sound goes: a file, the speakers, or nowhere."""
    if target is not None:
        with talk_files.WavWriter(target) as file:
            yield _FileVoice(file)
        if file.empty:
            screen.note(f"Nothing was said aloud: `{target}` was not written.")
        return
    if not live:
        yield None
        return
    found = await talk_audio.open_speakers()
    try:
        yield found
    finally:
        await found.close()


class _FileVoice:
    """A file in the place of speakers: what was said stays said."""

    playing = False

    def __init__(self, file: talk_files.WavWriter) -> None:
        self.play = file.write

    def stop(self) -> None:
        """There is nothing to be stopped."""

    async def close(self) -> None:
        """The file is its owner's."""
