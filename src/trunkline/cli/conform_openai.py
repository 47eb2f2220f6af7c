"""`trunkline conform openai URL ...`: put a server that speaks OpenAI's HTTP API to the test, as clients meet it."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import click

from trunkline.base import config_addresses
from trunkline.base.hosts import is_loopback
from trunkline.cli import conform_run
from trunkline.cli.finite import FiniteRange

#: Patience with a model that answers.
DEFAULT_TIMEOUT = 60.0
#: OpenAI's documentation names no version but that of the path.
PROTOCOL = "v1"

KEY_VARIABLE = "OPENAI_API_KEY"

_EXAMPLE = "trunkline conform openai http://127.0.0.1:8000/v1 --model NAME"
_TOLD = (
    "The kit sends about 250 requests to `{host}`, some of them broken or hostile. Somebody may have to pay for them."
)


@click.command("openai", short_help="Test a server that speaks OpenAI's HTTP API.")
@click.argument("url", required=False, metavar="URL")
@click.option("--model", default="", metavar="NAME", help="Ask this model. The default is the first of the list.")
@click.option("--embeddings-model", default="", metavar="NAME", help="Ask this one for embeddings.")
@click.option("--show-prompts", is_flag=True, help="Print what the kit says to the model, as TOML; run nothing.")
@click.option("--prompts", type=click.Path(path_type=Path), metavar="FILE.toml", help="Say it in other words.")
@click.option("--prompt", "words", multiple=True, metavar="NAME=TEXT", help="Say one thing in other words.")
@conform_run.options("openai.stream.*")
@click.option("--timeout", type=FiniteRange(min=0.1), default=DEFAULT_TIMEOUT, show_default=True,
              metavar="SECONDS", help="How long the server may take for one answer.")  # fmt: skip
def command(
    url: str | None,
    model: str,
    embeddings_model: str,
    show_prompts: bool,
    prompts: Path | None,
    words: tuple[str, ...],
    how: conform_run.How,
    timeout: float,
) -> None:
    """Test a server that speaks OpenAI's HTTP API, as its clients would use it.

    URL is what clients call the base URL, with its `/v1`. A server that needs a key wants it in OPENAI_API_KEY. What
    the server does not offer, or its model cannot be made to do, is "not applicable".

    \b
    trunkline conform openai http://127.0.0.1:8000/v1 --model coder
    trunkline conform openai http://127.0.0.1:8000/v1 --model coder --only 'openai.stream.*' --report stream.md
    """
    from trunkline.conform.openai.asking import ServerMemory, Target
    from trunkline.conform.openai.prompts import WORDING
    from trunkline.conform.openai.stage import Stage
    from trunkline.conform.openai.suite import SUITE

    said = conform_run.prompts(WORDING, prompts, words)
    if show_prompts:
        conform_run.show_prompts(said)
        return

    def trial() -> conform_run.Trial[Stage]:
        base_url, key = _address(url), _key()
        target = Target(base_url, model, key, embeddings_model, timeout, said)
        memory = ServerMemory()
        return conform_run.Trial(
            lambda name: Stage(target, memory, name),
            (base_url,),
            secrets=lambda: (key,) if key else (),
            announce=lambda: _announce(base_url),
        )

    conform_run.conduct(SUITE, "openai", PROTOCOL, how, trial)


def _address(url: str | None) -> str:
    """The base URL; where only a host is named, that of its `/v1`."""
    if not url:
        raise click.UsageError(f"Name the base URL of the server: {_EXAMPLE}")
    found = config_addresses.base_address(url)
    if found is None:
        raise click.UsageError(f"The base URL of a server is `http://HOST:PORT/v1` or `https://HOST/v1`: {_EXAMPLE}")
    return found if urlsplit(found).path else f"{found}/v1"


def _key() -> str:
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise click.UsageError(f"`{KEY_VARIABLE}` does not hold a key: it has characters that no header can carry.")
    return key


def _announce(base_url: str) -> None:
    host = urlsplit(base_url).hostname or ""
    if not is_loopback(host):
        click.echo(_TOLD.format(host=host), err=True)
