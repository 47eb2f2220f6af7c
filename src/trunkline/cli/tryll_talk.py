"""`trunkline tryll talk`: `trunkline chat` with a Tryll server, with sound: by microphone and speakers or by files.

Exit codes are those of `trunkline chat`; 1 also when nothing was understood.
"""

from __future__ import annotations

import os
from typing import Any

import click

from trunkline.agents.external.tryll import TryllAgent
from trunkline.agents.external.tryll_talk_agent import TalkAgent
from trunkline.agents.external.tryll_talk_options import INSTRUCTIONS, TalkOptions
from trunkline.base.printable import printable_line
from trunkline.cli import chat, chat_options, talk_files
from trunkline.cli.chat_session import ChatOptions
from trunkline.cli.talk_voice import ProgressNotes, TerminalVoice
from trunkline.cli.trace import refuse_to_replace
from trunkline.cli.tryll import DEFAULT_LISTEN
from trunkline.cli.tryll_chat import ENGINES, TOKEN_VARIABLE, load_graph, server_options, tls_context
from trunkline.cli.value_completion import models
from trunkline.core.faults import Fault
from trunkline.models.catalog_entry import HEARS, SPEAKS

#: The shortest and the longest pause that ends what somebody says.
_PAUSES = (100, 5000)


@click.command("talk")
@click.argument("address", default=DEFAULT_LISTEN, metavar="[HOST:PORT]")
@chat_options.asking
@server_options
@click.option("--in", "source", metavar="FILE.wav", help="Say what is in this file, instead of using a microphone.")
@click.option("--fast", is_flag=True, help="With `--in`: do not wait until the file would have been played.")
@click.option("--push-to-talk", is_flag=True, help="Listen from one press of the space bar to the next.")
@click.option(
    "--stt",
    default="",
    metavar="NAME",
    help="The speech recognition model, such as whisper-base.",
    shell_complete=models(HEARS, "mock"),
)
@click.option(
    "--tts",
    default="",
    metavar="NAME",
    help="The model that speaks, such as piper-joe.",
    shell_complete=models(SPEAKS, "mock"),
)
@click.option(
    "--pause",
    type=click.IntRange(*_PAUSES),
    default=500,
    show_default=True,
    metavar="MS",
    help="A pause of this length ends what you say.",
)
@click.option("--no-barge-in", is_flag=True, help="Do not let speech interrupt the answer.")
@chat_options.keeping
@chat_options.tracing_as("--sound", "--out")
def command(
    address: str,
    texts: tuple[str, ...],
    as_json: bool,
    as_jsonl: bool,
    file: str | None,
    system_prompt: str | None,
    engine: str | None,
    tls_ca: str | None,
    source: str | None,
    fast: bool,
    push_to_talk: bool,
    stt: str,
    tts: str,
    pause: int,
    no_barge_in: bool,
    **given: Any,
) -> None:
    """Talk to the Tryll server at HOST:PORT or ws://HOST:PORT: what you say is written down and answered, aloud.

    Hands-free: a pause ends what you say, and to speak interrupts the answer. The space bar lets the agent fall silent.
    Otherwise keys and commands are those of `trunkline chat`, and you can type, too. Models that the server has not got
    yet are fetched first; a name that begins with `mock` needs none. A server with a token wants it in
    TRUNKLINE_TRYLL_TOKEN.

    With -p, with `--in`, or with something piped into it, it needs no terminal. Answers go to standard output; what was
    understood goes to standard error.

    A graph whose nodes do not speak is given a voice: all that it answers is said. One that speaks does so as it likes.

    \b
    Examples:
      trunkline tryll talk
      trunkline tryll talk --graph npc
      trunkline tryll talk --push-to-talk --tts espeak
      trunkline tryll talk wss://127.0.0.1:9101 --tls-ca server.pem
      trunkline tryll talk --in question.wav --sound answer.wav
    """
    if texts and source is not None:
        raise click.UsageError("Cannot use `-p` and `--in` together")
    if fast and source is None:
        raise click.UsageError("`--fast` goes with `--in`.")
    refuse_to_replace(given["sound"], source, file)
    try:
        recording = talk_files.read_wav(source) if source is not None else None
        alone = bool(texts) or recording is not None
        voice = TerminalVoice(
            recording=recording, fast=fast, push_to_talk=push_to_talk, aloud=not alone and given["sound"] is None
        )
        talk = TalkOptions(
            stt=stt,
            tts=tts,
            hears=recording is not None or not (texts or chat.is_piped()),
            instructions=INSTRUCTIONS,
            pause_ms=pause,
            barge_in=not no_barge_in,
            engine=ENGINES[engine] if engine is not None else None,
            graph=load_graph(file),
        )
        if recording is not None:
            talk = talk.replace(sample_rate=recording.sample_rate, channels=recording.channels)
        found = TryllAgent.parse(address)
        voice.agent = TalkAgent(
            found.host,
            found.port,
            talk.replace(model=found.model),
            voice,
            token=os.environ.get(TOKEN_VARIABLE, ""),
            ssl=tls_context(tls_ca),
            progress=ProgressNotes(_note),
            notice=_note,
        )
    except Fault as error:
        raise click.ClickException(printable_line(str(error))) from error
    words = [address, *(["--graph", file] if file else []), *(["--engine", engine] if engine else [])]
    words += [
        *(["--stt", stt] if stt else []),
        *(["--tts", tts] if tts else []),
        *(["--tls-ca", tls_ca] if tls_ca else []),
    ]
    options = ChatOptions(
        given=voice.agent,
        voice=voice,
        command=("trunkline", "tryll", "talk", *words),
        system_prompt=system_prompt,
        **given,
    )
    chat.start(options, texts, as_json=as_json, as_jsonl=as_jsonl)


def _note(text: str) -> None:
    """Before there is a screen."""
    click.echo(printable_line(text), err=True)
