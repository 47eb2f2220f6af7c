"""What a prompt says: blocks of content as a message for an agent, with files where it takes files.

Text and embedded text stand in the message in their order. Pictures and other data become files of the session. A
link to a file is attached if the client works on this machine; else it is told.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from trunkline.wires.acp.codec import JsonRpcError
from trunkline.wires.acp.messages_content import (
    AudioBlock,
    ContentBlock,
    ImageBlock,
    ResourceBlock,
    ResourceContents,
    ResourceLinkBlock,
    TextBlock,
)
from trunkline.wires.jsonrpc import INVALID_PARAMS

#: Blocks of one prompt: more than an editor makes of everything that is open in it.
MAX_BLOCKS = 1000
#: Files that the pictures and resources of one prompt become.
MAX_FILES = 100

#: Keeps some data as a file of that name, of which the ending counts; gives its path.
KeepFile = Callable[[str, bytes], Awaitable[str]]

_ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


async def message_of(blocks: Sequence[ContentBlock], keep: KeepFile, *, is_local: bool) -> tuple[str, tuple[str, ...]]:
    """The text and the files of a prompt. `is_local`: the client may name files of this machine.

    Raises:
        JsonRpcError: it says nothing, or what agents cannot take.
        ConfigError: its files cannot be kept.
    """
    if len(blocks) > MAX_BLOCKS:
        raise _bad(f"more than {MAX_BLOCKS} blocks")
    words: list[str] = []
    attached: list[str] = []
    for block in blocks:
        match block:
            case TextBlock(text=text):
                words.append(text)
            case ImageBlock(data=data, mime_type=mime_type):
                attached.append(await keep(f"picture{_ENDINGS.get(mime_type, '')}", data))
            case AudioBlock():
                raise _bad("sound, which this agent does not take: it says so in its `promptCapabilities`")
            case ResourceLinkBlock():
                words.append(_link(block))
                if is_local and (path := _path_of(block.uri)) is not None:
                    attached.append(path)
            case ResourceBlock(resource=resource):
                await _embed(resource, words, attached, keep)
        if len(attached) > MAX_FILES:
            raise _bad(f"more than {MAX_FILES} files")
    text = "".join(words)
    if not text.strip() and not attached:
        raise _bad("no text")
    return text, tuple(attached)


async def _embed(resource: ResourceContents, words: list[str], attached: list[str], keep: KeepFile) -> None:
    if resource.text is not None:
        words.append(f'\n<resource uri="{_quoted(resource.uri)}">\n{resource.text}\n</resource>\n')
    elif resource.blob is not None:
        attached.append(await keep(resource.uri.rpartition("/")[2] or "resource", resource.blob))
        words.append(f"[{_quoted(resource.uri)}]")
    else:
        raise _bad("a resource with neither `text` nor `blob`")


def _link(block: ResourceLinkBlock) -> str:
    """The link in the text, as people write one."""
    shown = block.title or block.name or block.uri
    return f"[{_quoted(shown)}]({_path_of(block.uri) or block.uri})"


def _path_of(uri: str) -> str | None:
    """The path of a file of this machine."""
    if not uri.startswith("file://"):
        return None
    from urllib.parse import unquote

    host, slash, rest = uri.removeprefix("file://").partition("#")[0].partition("/")
    path = unquote(slash + rest)
    return path if host in ("", "localhost") and slash and "\0" not in path else None


def _quoted(text: str) -> str:
    return text.replace('"', "'").replace("\n", " ")


def _bad(what: str) -> JsonRpcError:
    return JsonRpcError(INVALID_PARAMS, f"Invalid `session/prompt`: `prompt` has {what}")
