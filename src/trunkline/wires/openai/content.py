"""What messages are made of: text, pictures and files, as both formats spell them. No IO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trunkline.wires.openai.codec import Params, missing, wrong_type
from trunkline.wires.openai.errors import bad, unsupported
from trunkline.wires.openai.messages import MAX_PARTS, EarlierMessage, FilePart

_TEXTS = ("text", "input_text", "output_text", "refusal", "reasoning_text", "summary_text")
#: What makes two paragraphs of two parts or two messages.
APART = "\n\n"


def read_content(content: Any, path: str) -> tuple[str, tuple[FilePart, ...]]:
    """The text of a message, and what comes with it. Content is a string, or a list of parts.

    Raises:
        OpenAIRefused: it is neither, or has a part that no agent here takes.
    """
    if content is None:
        return "", ()
    if isinstance(content, str):
        return content, ()
    if not isinstance(content, list):
        raise wrong_type(path, "a string or a list of parts")
    if len(content) > MAX_PARTS:
        raise bad(path, f"`{path}` may have {MAX_PARTS} parts at most.", "array_above_max_length")
    texts: list[str] = []
    files: list[FilePart] = []
    for index, part in enumerate(content):
        found = _part(part, f"{path}[{index}]")
        if isinstance(found, FilePart):
            files.append(found)
        else:
            texts.append(found)
    return APART.join(text for text in texts if text), tuple(files)


def _part(part: Any, path: str) -> str | FilePart:
    if not isinstance(part, dict):
        raise wrong_type(path, "an object")
    params = Params(part, f"{path}.")
    kind = params.required_text("type")
    if kind in _TEXTS:
        return params.text("refusal" if kind == "refusal" else "text") or ""
    if kind == "image_url":
        # An object in Chat Completions; some clients leave it out.
        url = params.any("image_url")
        return _image(url if isinstance(url, str) else (params.object("image_url") or params).text("url"), path)
    if kind == "input_image":
        if params.text("file_id"):
            raise unsupported(path, f"`{path}.file_id`: no files are kept here. Send the picture as a `data:` URL.")
        return _image(params.text("image_url"), path)
    if kind in ("file", "input_file"):
        return _file(params.object("file") or params, path)
    if kind == "input_audio":
        raise unsupported(
            path, f"`{path}`: agents cannot hear. Send what was said as text (`/v1/audio/transcriptions`)."
        )
    raise bad(f"{path}.type", f"`{path}.type` must be one of `text`, `image_url`, `file` or their `input_...` forms.")


def _image(url: str | None, path: str) -> FilePart:
    if not url:
        raise missing(f"{path}.image_url")
    _check_url(url, path)
    return FilePart("", url, is_image=True, param=path)


def _file(params: Params, path: str) -> FilePart:
    if params.text("file_id"):
        raise unsupported(path, f"`{path}.file_id`: no files are kept here. Send the file itself as `file_data`.")
    name = params.text("filename") or ""
    url = params.text("file_url") or ""
    data = params.text("file_data") or ""
    if data.startswith("data:"):
        url, data = data, ""
    if url:
        _check_url(url, path)
    elif not data:
        raise missing(f"{path}.file_data")
    return FilePart(name, url, data, param=path)


def _check_url(url: str, path: str) -> None:
    if not url.lower().startswith(("data:", "http://", "https://")):
        raise bad(path, f"`{path}`: the address must begin with `data:`, `https:` or `http:`.")


def transcript(instructions: str, before: Sequence[EarlierMessage]) -> str:
    """What an agent is told of the time before its first message."""
    who = {"user": "User", "assistant": "Assistant", "tool": "Result of a tool"}
    said = [f"{who[message.role]}: {message.text}" for message in before if message.text]
    parts = []
    if instructions:
        parts.append(f"Instructions for this conversation:\n{instructions}")
    if said:
        parts.append("\n\n".join(["What was said before:", *said]) if instructions else APART.join(said))
    return APART.join(parts)
