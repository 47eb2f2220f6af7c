"""Where a provider is asked, from the address that people and hosts write down."""

from __future__ import annotations

from trunkline.core.faults import ConfigError

#: How much of somebody's words is repeated in an error.
SHOWN_CHARS = 200


def endpoint(base: str, path: str, *, api_path: str | None = None, deep: bool = False) -> str:
    """The address to post to.

    | base                          | path                 | gives                              |
    |-------------------------------|----------------------|------------------------------------|
    | `https://h`                   | `/chat/completions`  | `https://h/v1/chat/completions`    |
    | `https://h/v1`                | `/chat/completions`  | `https://h/v1/chat/completions`    |
    | `https://h/api/v4`            | `/chat/completions`  | `https://h/api/v4/chat/completions`|
    | `https://h/v1/messages`       | `/messages`          | `https://h/v1/messages`            |

    Args:
        path: what is asked for, without a version.
        api_path: what a profile says instead; put behind the base, whose version it may repeat.
        deep: a version anywhere in the base counts, as in `https://h/v1beta/openai`; else only at its end.

    Raises:
        ConfigError: it is not the address of a web server.
    """
    address, mark, query = base.strip().partition("?")
    scheme, separator, rest = address.partition("://")
    if scheme.lower() not in ("http", "https") or not separator or not _is_authority(rest.partition("/")[0]):
        hint = "Write `https://HOST` or `http://HOST:PORT`."
        raise ConfigError(
            f"The base URL `{without_secrets(base.strip())[:SHOWN_CHARS]}` is not a valid URL.", hint=hint
        )
    host, *segments = [segment for segment in rest.split("/") if segment]
    if api_path is not None:
        wanted = [segment for segment in api_path.split("/") if segment]
        if segments and wanted and segments[-1] == wanted[0] and _is_version(wanted[0]):
            segments.pop()
        segments += wanted
    elif not f"/{'/'.join(segments)}".endswith(path):
        versioned = any(map(_is_version, segments)) if deep else bool(segments) and _is_version(segments[-1])
        segments += [*([] if versioned else ["v1"]), *path.strip("/").split("/")]
    return f"{scheme}://{'/'.join((host, *segments))}{mark}{query}"


def health_endpoint(base: str) -> str:
    """Where a model server says whether it works: `/health`, beside the version that `base` may end with.

    Raises:
        ConfigError: as `endpoint`.
    """
    address, mark, query = endpoint(base, "", api_path="").partition("?")
    scheme, separator, rest = address.partition("://")
    host, *segments = rest.split("/")
    if segments and _is_version(segments[-1]):
        segments.pop()
    return f"{scheme}{separator}{'/'.join((host, *segments, 'health'))}{mark}{query}"


def host_of(url: str) -> str:
    """The host's name in an address, in lower case, without port and credentials."""
    authority = url.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2].lower()
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority.partition(":")[0]


def without_secrets(url: str) -> str:
    """An address to show: without a user's name and password, and without its query."""
    address = url.partition("?")[0]
    if "@" not in address:
        return address
    scheme, separator, rest = address.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}" if separator else address.rpartition("@")[2]


def is_own_machine(url: str) -> bool:
    """Whether an address is on this machine, where services want no key."""
    host = host_of(url)
    return host in ("localhost", "::1") or host.startswith("127.") or host.endswith(".localhost")


def _is_authority(text: str) -> bool:
    """Whether it names a host, and maybe a port."""
    host, colon, port = text.rpartition("@")[2].rpartition(":")
    if not colon or port.endswith("]"):
        return bool(text) and text.count("[") == text.count("]")
    return bool(host) and port.isdecimal() and int(port) < 2**16 and (":" not in host or host.endswith("]"))


def _is_version(segment: str) -> bool:
    """`v1`, `v4`, `v1beta`, `v1alpha2`."""
    number = segment[1:].rstrip("0123456789")
    return (
        segment[:1] == "v"
        and segment[1:2].isdecimal()
        and (not number or number.lstrip("0123456789") in ("alpha", "beta"))
    )
