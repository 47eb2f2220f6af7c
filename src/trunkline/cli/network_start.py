"""`trunkline network agent start`: an agent of the wallet's, run by a launcher with what the network keeps for it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import click

from trunkline.base.printable import printable
from trunkline.cli import network_asking as asking
from trunkline.cli import network_secrets as secrets
from trunkline.cli import runner
from trunkline.core.faults import ConfigError
from trunkline.wires.sns.owner import Owner


@click.command("start", short_help="Have a launcher run an agent, with a new credential and its secrets.")
@click.argument("agent", metavar="AGENT")
@click.option("--config", "path", metavar="FILE", help="More of the runner's configuration, as JSON.")
@click.option("--launcher", default=f"http://{runner.DEFAULT_LISTEN}", show_default=True, metavar="URL",
              help="Where the launcher is.")  # fmt: skip
@click.option("--secret-file", type=click.Path(dir_okay=False), metavar="FILE", help="The launcher's secret.")
@click.option("--no-secrets", is_flag=True, help="Leave the agent's secrets where they are; no password is needed.")
@secrets.password_option
@asking.asking
def command(
    agent: str,
    path: str | None,
    launcher: str,
    secret_file: str | None,
    no_secrets: bool,
    password_file: str | None,
    url: str,
    key_file: str | None,
    as_json: bool,
) -> None:
    """Have a running launcher run an agent: with its secrets, which are decrypted here, and with a new credential.

    The credential before it is dead at once. None is issued while the launcher runs the agent already. The launcher's
    secret comes from `--secret-file` or from the variable RUNNER_LAUNCHER_SECRET. The configuration says the rest, such
    as a `brain` or the `runtime`; without one, the agent's own model thinks, with the key among its secrets.

    \b
    Examples:
      trunkline network agent start ada --secret-file launcher-secret --password-file password --key-file owner.key
      trunkline network agent start ada --config brain.json --no-secrets --key-file owner.key
    """
    asking.one_standard_input(("the configuration", path), ("the password", password_file), ("the key", key_file))
    knows = runner.launcher_secret(secret_file)
    more = {} if path is None else runner.read_config(path)
    if not isinstance(more, dict):
        raise click.ClickException(f"The configuration `{printable(str(path))}` is not a JSON object.")
    password = None if no_secrets else secrets.asked_password(password_file)
    place = launcher.rstrip("/")

    async def work(owner: Owner) -> dict[str, Any]:
        id = asking.given(await asking.agent(owner, agent), "id")
        config = {**more, "snsBaseUrl": owner.url, "agentId": id}
        if password is not None:
            config["securitySensitive"] = await secrets.opened(owner, agent, password)
        if not (config.get("securitySensitive") or {}).get("llmApiKey") and not more.keys() & {"brain", "llm"}:
            raise ConfigError(
                "There is no API key for the model's provider.",
                hint="`network agent secrets set` keeps it as `llmApiKey`; or say `--config FILE` with a `brain`.",
            )
        # Nothing is issued in vain: a new credential would end the runner that is running.
        status = await runner.ask(place, knows, "GET", f"/runner/status?{urlencode({'agentId': id})}", None)
        if asking.member(status, "status", "selectedAgentRunning"):
            raise ConfigError(f"`{agent}` is running already.", hint=f"`trunkline runner stop {id}` ends it.")
        issued = await owner.call("POST", f"/api/agents/{asking.segment(id)}/runner-credential", {})
        config["runnerToken"] = asking.given(issued, "runnerToken")
        return await runner.ask(place, knows, "POST", "/runner/start", {"config": config})

    answer = asking.asked(url, key_file, work)
    asking.show(answer) if as_json else runner.show_started(place, answer)
