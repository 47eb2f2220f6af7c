"""`trunkline tryll talk`: talk to an agent on a Tryll server, by microphone and speakers or by files.

Exit codes: 0 when the answer is complete, or the conversation was ended by a key; 1 when nothing was understood, an
answer failed, or there is no server; 2 for wrong usage; 130 after Ctrl-C, 143 after SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import click

from trunkline.agents.external.tryll import TryllAgent
from trunkline.agents.external.tryll_talk import Talk
from trunkline.agents.external.tryll_talk_events import Answered, Hushed, Spoken
from trunkline.agents.external.tryll_talk_options import INSTRUCTIONS, TalkOptions
from trunkline.base.printable import printable_line
from trunkline.base.signals import handled
from trunkline.base.values import Value
from trunkline.cli import talk_audio, talk_files, talking
from trunkline.cli.talk_audio import PIECE_MS, Microphone, Speakers
from trunkline.cli.talk_screen import JsonLines, Lines, Screen
from trunkline.cli.tryll import DEFAULT_LISTEN
from trunkline.cli.tryll_chat import TOKEN_VARIABLE, tls_context, tls_option
from trunkline.core.faults import ConfigError, Fault
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import DownloadProgress

if TYPE_CHECKING:
    from trunkline.agents.graph.yaml_graph import GraphFile

EXIT_FAILED = 1
_SIGNAL_EXIT = 128
_NO_SERVER = 1001
#: The shortest and the longest pause that ends what somebody says.
_PAUSES = (100, 5000)
_SPACE, _ENDING_KEYS = b" ", (b"q", b"Q", b"\x04")


class _Wanted(Value):
    """What was asked for."""

    address: str
    options: TalkOptions
    source: str | None
    target: str | None
    fast: bool
    push_to_talk: bool
    as_json: bool
    tls_ca: str | None


@click.command("talk")
@click.argument("address", default=DEFAULT_LISTEN, metavar="[HOST:PORT]")
@click.option("--in", "source", metavar="FILE.wav", help="Say what is in this file, instead of using a microphone.")
@click.option("--out", "target", metavar="FILE.wav", help="Write the answer's sound there, instead of playing it.")
@click.option("--fast", is_flag=True, help="With `--in`: do not wait until the file would have been played.")
@click.option("--push-to-talk", is_flag=True, help="Listen from one press of the space bar to the next.")
@click.option(
    "--graph", "file", metavar="FILE", help="Talk to this graph (YAML), or to one that comes along: `npc`, a character."
)
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
@tls_option
def command(
    address: str,
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
    tls_ca: str | None,
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
    if fast and source is None:
        raise click.UsageError("`--fast` goes with `--in`.")
    try:
        options = TalkOptions(
            model, stt, tts, system_prompt, pause_ms=pause, barge_in=not no_barge_in, graph=_character(file)
        )
        wanted = _Wanted(address, options, source, target, fast, push_to_talk, as_json, tls_ca)
        sys.exit(_run(lambda: _talk(wanted)))
    except (Fault, TryllError) as error:
        hint = " `trunkline tryll serve` starts one." if getattr(error, "code", 0) == _NO_SERVER else ""
        raise click.ClickException(printable_line(str(error)) + hint) from error


def _character(file: str | None) -> GraphFile | None:
    """The graph to talk to.

    Raises:
        ConfigError: it cannot be read, or is wrong.
    """
    if file is None:
        return None
    from trunkline.agents.graph import yaml_graph

    return yaml_graph.load(file)


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
    screen: Screen = JsonLines() if wanted.as_json else Lines(live=sys.stdout.isatty())
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
        microphone = await kept.enter_async_context(_microphone()) if recording is None else None
        voice = await kept.enter_async_context(_voice(wanted.target, screen, live=recording is None))
        opening = Talk.open(
            found.host,
            found.port,
            options,
            token=os.environ.get(TOKEN_VARIABLE, ""),
            ssl=tls_context(wanted.tls_ca),
            progress=_Progress(),
            notice=screen.note,
            on_node_event=screen.told,
        )
        talk = await kept.enter_async_context(await opening)
        if recording is not None:
            return await _tell(talk, recording, wanted, screen, voice)
        if microphone is None:
            raise AssertionError("there is a microphone where there is no file")
        return await _converse(talk, microphone, wanted, screen, voice)


async def _tell(
    talk: Talk, recording: talk_files.Recording, wanted: _Wanted, screen: Screen, voice: Speakers | None
) -> int:
    """Say what is in a file, and wait for the answer."""
    feeding = asyncio.create_task(_feed(talk, recording, wanted), name="file")
    showing = asyncio.create_task(_show(talk, screen, voice), name="screen")
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


async def _feed(talk: Talk, recording: talk_files.Recording, wanted: _Wanted) -> None:
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


async def _converse(talk: Talk, microphone: Microphone, wanted: _Wanted, screen: Screen, voice: Speakers | None) -> int:
    """Talk until somebody ends it."""
    keys: asyncio.Queue[bytes] = asyncio.Queue()
    with _keys(keys):
        if wanted.push_to_talk:
            screen.note("Press the space bar to talk, and again when you are done. q ends.")
        else:
            await talk.listen()
            screen.note("Speak: the agent listens. The space bar stops an answer, q ends.")
        work = {
            asyncio.create_task(_show(talk, screen, voice), name="screen"),
            asyncio.create_task(_listen(talk, microphone, voice), name="microphone"),
            asyncio.create_task(_press(talk, keys, voice, push_to_talk=wanted.push_to_talk), name="keys"),
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


async def _listen(talk: Talk, microphone: Microphone, voice: Speakers | None) -> None:
    while pcm := await microphone.read():
        # Who may not interrupt is not heard meanwhile: neither is the answer itself, from the speakers.
        if talk.options.barge_in or not (talk.answering or (voice is not None and voice.playing)):
            await talk.hear(pcm)


async def _press(talk: Talk, keys: asyncio.Queue[bytes], voice: Speakers | None, *, push_to_talk: bool) -> None:
    pressed = False
    while (key := await keys.get()) not in _ENDING_KEYS:
        if key != _SPACE:
            continue
        if not push_to_talk:
            talk.hush()
        elif pressed:
            pressed = False
            await talk.release()
        else:
            if voice is not None:
                voice.stop()
            pressed = True
            await talk.press()


async def _show(talk: Talk, screen: Screen, voice: Speakers | None) -> str | None:
    """Show everything; gives how the last answer ended, None without any."""
    outcome = None
    while (event := await talk.next_event()) is not None:
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
async def _voice(target: str | None, screen: Screen, *, live: bool) -> AsyncIterator[Speakers | None]:
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


@contextmanager
def _keys(pressed: asyncio.Queue[bytes]) -> Iterator[None]:
    """Hear each key as it is pressed, where there is a terminal."""
    if not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    loop = asyncio.get_running_loop()

    def take() -> None:
        data = os.read(fd, 64)
        for key in data or b"\x04":
            pressed.put_nowait(bytes([key]))

    tty.setcbreak(fd)
    loop.add_reader(fd, take)
    try:
        yield
    finally:
        loop.remove_reader(fd)
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


class _Progress(talking.ProgressLines):
    """Progress of a download."""

    def __call__(self, progress: DownloadProgress) -> None:
        self.show(progress.model_name, progress.percent)
