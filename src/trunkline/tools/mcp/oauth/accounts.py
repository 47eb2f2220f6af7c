"""Logging in to servers and out again: what comes of it is kept, or forgotten, for all agents of this user."""

from __future__ import annotations

from trunkline.base.paths import unusable
from trunkline.base.redact import Redactor
from trunkline.core.agent import AddMcpServer
from trunkline.core.faults import ConfigError, ToolError
from trunkline.tools.mcp import sdk
from trunkline.tools.mcp.http import has_credentials
from trunkline.tools.mcp.oauth.flow import LOGIN_SECONDS, LoginUser, log_in, revoke
from trunkline.tools.mcp.oauth.requests import LoginFailed
from trunkline.tools.mcp.oauth.store import KeptLogin, KeyringSilent, LoginStore
from trunkline.tools.threads import in_thread


def check_login(spec: AddMcpServer) -> None:
    """See whether somebody can log in to a server at all.

    Raises:
        ConfigError: nobody can.
    """
    if not spec.url:
        raise ConfigError(
            f"MCP server `{spec.name}` is a program: nobody logs in to it.",
            hint="What it needs to know, give it in its `env`.",
        )
    if has_credentials(spec):
        raise ConfigError(
            f"MCP server `{spec.name}` is given credentials in its `headers` or its `url`: nobody logs in to it.",
            hint="Take them out of the configuration, to log in with a browser.",
        )


async def log_in_and_keep(
    spec: AddMcpServer, person: LoginUser, store: LoginStore, redactor: Redactor, *, seconds: float = LOGIN_SECONDS
) -> KeptLogin:
    """Let somebody log in to a server, and keep what comes of it.

    Raises:
        ConfigError: nobody can log in to it, or nobody can listen where the browser comes back to.
        ToolError: it did not work.
    """
    check_login(spec)
    await sdk.load(spec.name)
    try:
        login = await log_in(spec, person, seconds=seconds)
    except LoginFailed as failed:
        raise ToolError(redactor.text(f"MCP server `{spec.name}` {failed}.")) from None
    redactor.learn(login.secrets)
    try:
        return await in_thread(lambda _: store.save(login))
    except OSError as error:
        raise ToolError(f"The login to MCP server `{spec.name}` cannot be kept. {unusable(error)}") from None


async def log_out(store: LoginStore, kept: KeptLogin) -> bool:
    """Forget a login, and say whether the authorization server has taken it back.

    Raises:
        ToolError: the keyring that has it does not answer.
        OSError: its file cannot be removed.
    """
    try:
        login = await in_thread(lambda _: store.read(kept.key))
        await in_thread(lambda _: store.remove(kept.key))
    except KeyringSilent:
        raise ToolError(
            f"The login to MCP server `{kept.server}` is in the keyring, which does not answer.",
            hint="Unlock it, and try again.",
        ) from None
    if login is None:
        return False
    await sdk.load(kept.server)
    return await revoke(login)
