"""What kind of picture some bytes are, and how large it is, without decoding it.

A provider refuses a whole conversation because of one picture that it cannot take, so what is clearly broken or too
large is found here.
"""

from __future__ import annotations

from collections.abc import Iterator

from trunkline.base.values import Value

#: The strictest of the providers takes 5 MiB of base64, which is three quarters of that in bytes.
LARGEST_PICTURE = 5 * 1024 * 1024 * 3 // 4
#: And no side longer than this.
LONGEST_SIDE = 8000

_PNG = b"\x89PNG\r\n\x1a\n"
#: Segments of a JPEG that tell its size: all the kinds of "start of frame", which share a range with three others.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class Picture(Value):
    """A picture's media type and its size in pixels; a size of 0 means that it could not be found out."""

    media_type: str
    width: int
    height: int


def media_type(start: bytes) -> str | None:
    """The type of a picture that begins like this; `None` for anything else."""
    if start.startswith(_PNG):
        return "image/png"
    if start.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return None


def inspect(data: bytes) -> Picture | None:
    """What picture this is; `None` if it is none that providers take."""
    kind = media_type(data)
    if kind is None:
        return None
    width, height = _SIZES[kind](data)
    return Picture(kind, width, height)


def problem(picture: Picture, size: int) -> str | None:
    """Why no provider would take it, and what to do; `None` if they would."""
    if not picture.width or not picture.height:
        return "it is broken: its size in pixels cannot be found"
    if size > LARGEST_PICTURE:
        return f"the picture has {size} bytes; models take {LARGEST_PICTURE}. Make a smaller copy"
    if max(picture.width, picture.height) > LONGEST_SIDE:
        return (
            f"the picture is {picture.width} x {picture.height} pixels; models take {LONGEST_SIDE} on a side. "
            "Make a smaller copy"
        )
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _png(data: bytes) -> tuple[int, int]:
    return _big(data[16:20]), _big(data[20:24])


def _gif(data: bytes) -> tuple[int, int]:
    return _little(data[6:8]), _little(data[8:10])


def _jpeg(data: bytes) -> tuple[int, int]:
    for marker, body in _jpeg_segments(data):
        if marker in _JPEG_FRAMES:
            return _big(data[body + 3 : body + 5]), _big(data[body + 1 : body + 3])
    return 0, 0


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Each segment's marker, and where its body begins."""
    position = 2
    while position + 4 <= len(data) and data[position] == 0xFF:
        marker = data[position + 1]
        if marker == 0xFF:  # padding
            position += 1
            continue
        yield marker, position + 4
        position += 2 + _big(data[position + 2 : position + 4])


def _webp(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        return _little(data[24:27]) + 1, _little(data[27:30]) + 1
    if kind == b"VP8L":
        bits = _little(data[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
    return 0, 0


_SIZES = {"image/png": _png, "image/gif": _gif, "image/jpeg": _jpeg, "image/webp": _webp}
