"""Pictures are known by their first bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.tools.pictures import LARGEST_PICTURE, LONGEST_SIDE, Picture, inspect, media_type, problem

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0\0\0\0\x02"
JPEG = b"\xff\xd8\xff\xe0\0\x06ab\0\0\xff\xff\xff\xc2\0\x0b\x08\0\x02\x01\0\x01\x11\0"
WEBP = b"RIFF\0\0\0\0WEBP"
VP8 = WEBP + b"VP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x00\x41\x02\x40"
VP8L = WEBP + b"VP8L\0\0\0\0\x2f" + (255 | 1 << 14).to_bytes(4, "little")
VP8X = WEBP + b"VP8X\0\0\0\0\0\0\0\0\xff\0\0\x01\0\0"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "png"),
        (b"GIF87a\0\x01\x02\0", "gif"),
        (b"GIF89a\0\x01\x02\0", "gif"),
        (JPEG, "jpeg"),
        (VP8, "webp"),
        (VP8L, "webp"),
        (VP8X, "webp"),
    ],
)
def test_type_and_size_are_found(data: bytes, kind: str) -> None:
    assert inspect(data) == Picture(f"image/{kind}", 256, 2)


@pytest.mark.parametrize("data", [b"", b"hello", b"RIFF\0\0\0\0WAVE", b"BM", b"%PDF-", b"\x89PNG"])
def test_other_files_are_no_pictures(data: bytes) -> None:
    assert media_type(data) is None
    assert inspect(data) is None


@given(
    st.sampled_from([PNG[:8], b"GIF89a", b"\xff\xd8\xff", WEBP, WEBP + b"VP8 ", WEBP + b"VP8L"]), st.binary(max_size=60)
)
def test_no_bytes_do_any_harm(start: bytes, rest: bytes) -> None:
    picture = inspect(start + rest)
    assert picture is not None
    problem(picture, len(rest))


def test_what_providers_refuse_is_told_beforehand() -> None:
    assert problem(Picture("image/png", 10, 10), LARGEST_PICTURE) is None
    assert problem(Picture("image/png", LONGEST_SIDE, 1), 5) is None
    assert "bytes" in (problem(Picture("image/png", 10, 10), LARGEST_PICTURE + 1) or "")
    assert "pixels" in (problem(Picture("image/png", 1, LONGEST_SIDE + 1), 5) or "")
    assert "broken" in (problem(Picture("image/png", 0, 10), 5) or "")
