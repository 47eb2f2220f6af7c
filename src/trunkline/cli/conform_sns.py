"""`trunkline conform sns BASE_URL ...`: put anybody's network of agents to the test, as a runner meets it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from trunkline.base import config_addresses
from trunkline.base.hosts import is_loopback
from trunkline.base.values import Value
from trunkline.cli import conform_run
from trunkline.cli.finite import FiniteRange
from trunkline.core.faults import ConfigError

if TYPE_CHECKING:
    from trunkline.conform.sns.cast import Cast, CastAgent

#: How long a network may take for one answer. It asks nobody else.
DEFAULT_TIMEOUT = 10.0
#: The protocol document has no versions yet.
PROTOCOL = "1"

_EXAMPLE = "trunkline conform sns http://127.0.0.1:4317"
_LACKING = (
    "another agent (`--peer-agent-id`, `--other-agent-id`), a wallet (without `--agent-id`), or time (`--patient`)"
)

_OWN = (
    "The kit registers up to 3 communities and 10 agents at {url} with a throw-away wallet, and writes about 120 "
    "threads and comments there; in the end it closes the communities again. What was written stays as long as the "
    "network keeps closed communities."
)
_KEYED = (
    "The kit signs in with the wallet of `--owner-key` at {url}, registers up to 3 communities for it and 10 agents, "
    "and writes about 120 threads and comments there; in the end it closes those communities again."
)
_GIVEN = "The kit writes about 100 threads and comments at {url} in the name of `{agent}`. They stay there."


@click.command("sns", short_help="Test an agent network.")
@click.argument("base_url", required=False)
@click.option("--agent-id", metavar="ID", help="Play with this agent instead of agents of the kit's own.")
@click.option("--runner-token", metavar="TOKEN", help="The token of its runner.")
@click.option("--peer-agent-id", metavar="ID", help="Another agent of the same community.")
@click.option("--peer-token", metavar="TOKEN", help="The token of its runner.")
@click.option("--other-agent-id", metavar="ID", help="An agent of another community.")
@click.option("--other-token", metavar="TOKEN", help="The token of its runner.")
@click.option("--owner-key", metavar="HEX", help="The private key of a wallet that may register communities.")
@click.option("--no-owner", is_flag=True, help="Register nothing: only the agents that are given are used.")
@click.option("--patient", is_flag=True, help="Also wait for a nonce to end, which takes two minutes.")
@click.option("--yes", is_flag=True, help="Write to a network that is not on this machine.")
@conform_run.options("sns.nonce.*")
@click.option("--timeout", type=FiniteRange(min=0.1), default=DEFAULT_TIMEOUT, show_default=True,
              metavar="SECONDS", help="How long the network may take for one answer.")  # fmt: skip
def command(
    base_url: str | None,
    agent_id: str | None,
    runner_token: str | None,
    peer_agent_id: str | None,
    peer_token: str | None,
    other_agent_id: str | None,
    other_token: str | None,
    owner_key: str | None,
    no_owner: bool,
    patient: bool,
    yes: bool,
    how: conform_run.How,
    timeout: float,
) -> None:
    """Test a network of agents, as a runner would use it.

    The kit registers a community and agents of its own with a throw-away wallet. A network that does not let it needs
    --owner-key with a wallet that may, or --agent-id and --runner-token of an agent that is there; then the checks that
    need a wallet are left out. The kit says what it will write; for a network that is not on this machine it needs
    --yes.

    \b
    trunkline conform sns http://127.0.0.1:4317
    trunkline conform sns https://sns.example --agent-id c1... --runner-token rnr_... --yes
    """
    from trunkline.conform.sns.exchange import Target
    from trunkline.conform.sns.stage import Stage
    from trunkline.conform.sns.suite import SUITE

    def trial() -> conform_run.Trial[Stage]:
        url = _address(base_url)
        pairs = _Pairs(
            _pair("agent-id", agent_id, "runner-token", runner_token),
            _pair("peer-agent-id", peer_agent_id, "peer-token", peer_token),
            _pair("other-agent-id", other_agent_id, "other-token", other_token),
        )
        cast = _cast(pairs, owner_key, no_owner)
        target = Target(url, timeout)
        return conform_run.Trial(
            lambda name: Stage(target, cast, name),
            (url,),
            has=cast.has | ({"patience"} if patient else set()),
            lacking=_LACKING,
            secrets=lambda: cast.memory.secrets,
            announce=lambda: _announce(url, pairs.agent, owner_key, yes),
        )

    conform_run.conduct(SUITE, "sns", PROTOCOL, how, trial)


class _Pairs(Value):
    """The agents that were given."""

    agent: CastAgent | None
    peer: CastAgent | None
    other: CastAgent | None


def _address(base_url: str | None) -> str:
    if not base_url:
        raise click.UsageError(f"Name the address of the network: {_EXAMPLE}")
    found = config_addresses.base_address(base_url)
    if found is None:
        raise click.UsageError("The address of a network is `http://HOST:PORT` or `https://HOST`.")
    return found


def _pair(id_option: str, id: str | None, token_option: str, token: str | None) -> CastAgent | None:
    from trunkline.conform.sns.cast import CastAgent

    if not id and not token:
        return None
    for option, value in ((id_option, id), (token_option, token)):
        if not value or not value.isascii() or not value.isprintable() or " " in value:
            raise click.UsageError(f"`--{id_option}` and `--{token_option}` belong together; `--{option}` is missing.")
    return CastAgent(id or "", token or "")


def _cast(pairs: _Pairs, owner_key: str | None, no_owner: bool) -> Cast:
    from trunkline.conform.sns.cast import Given, Own
    from trunkline.wires.sns.wallet import Wallet

    if pairs.agent is not None:
        if owner_key:
            raise click.UsageError("`--owner-key` registers its own agents; leave out `--agent-id`, or the key.")
        return Given(pairs.agent, pairs.peer, pairs.other)
    if no_owner or pairs.peer or pairs.other:
        raise click.UsageError("Give an agent to play with: `--agent-id` and `--runner-token`.")
    try:
        return Own(Wallet(owner_key))
    except ConfigError as error:
        raise click.UsageError(f"{error.message} {error.hint or ''}".strip()) from None


def _announce(url: str, agent: CastAgent | None, owner_key: str | None, yes: bool) -> None:
    """Say what will be written, and ask for leave where it is somebody else's machine."""
    text = _GIVEN if agent else _KEYED if owner_key else _OWN
    told = text.format(url=url, agent=agent.id if agent else "")
    if not yes and not is_loopback(urlsplit(url).hostname or ""):
        raise click.UsageError(f"{told} Add `--yes` if that is all right there.")
    click.echo(told, err=True)
