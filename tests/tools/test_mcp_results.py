"""What a server's tool gave: pictures that a provider would refuse never reach it."""

from __future__ import annotations

from base64 import b64decode, b64encode, encodebytes
from pathlib import Path

import pytest

from tests.support.mcp_client import small, watched
from tests.support.mcp_server import PICTURE
from trunkline.tools.mcp import results
from trunkline.tools.pictures import LARGEST_PICTURE, LONGEST_SIDE
from trunkline.tools.tool import ToolOutput

pytestmark = pytest.mark.process

PNG = b64decode(PICTURE)
GIF = b"GIF89a\x03\0\x02\0" + b"\0" * 20


async def pictures(place: Path, *given: tuple[str, bytes | str], failed: bool = False) -> ToolOutput:
    """What the model gets of a tool that gives these."""
    sent = [(kind, data if isinstance(data, str) else b64encode(data).decode()) for kind, data in given]
    async with watched(place) as client:
        await client.connect(small())
        return await client.call("pictures", pictures=sent, failed=failed)


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("image/svg+xml", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "models take PNG, JPEG, GIF and WebP only"),
        ("image/png", b"no picture at all", "models take PNG, JPEG, GIF and WebP only"),
        ("image/png", b"", "models take PNG, JPEG, GIF and WebP only"),
        ("image/png", PNG[:20], "it is broken: its size in pixels cannot be found"),
        ("image/png", "not base64!", "it is not base64"),
        ("image/png", PICTURE[:-3], "it is not base64"),
        ("image/png", PNG.ljust(LARGEST_PICTURE + 1, b"x"), f"the picture has {LARGEST_PICTURE + 1} bytes"),
        ("image/png", PNG[:16] + (LONGEST_SIDE + 1).to_bytes(4, "big") + PNG[20:], "the picture is 8001 x 1 pixels"),
    ],
)
async def test_what_providers_refuse_is_told_in_words(
    tmp_path: Path, kind: str, data: bytes | str, reason: str
) -> None:
    output = await pictures(tmp_path, (kind, data), ("image/png", PNG))
    refused, shown = output.text.splitlines()
    assert refused.startswith(f"[image: {kind}, not shown: {reason}")
    assert refused.endswith("]")
    # One bad picture does not take the good ones with it.
    assert shown == "[image: image/png]"
    assert output.images == (("image/png", PICTURE),)
    assert output.status == "success"


async def test_the_content_tells_what_it_is_and_not_the_server(tmp_path: Path) -> None:
    output = await pictures(tmp_path, ("image/jpg", GIF), ("application/octet-stream", PNG))
    assert output.text == "[image: image/gif]\n[image: image/png]"
    assert [kind for kind, _ in output.images] == ["image/gif", "image/png"]


async def test_base64_in_lines_is_put_right(tmp_path: Path) -> None:
    output = await pictures(tmp_path, ("image/png", encodebytes(PNG).decode()))
    assert output.images == (("image/png", PICTURE),)


async def test_a_tool_that_failed_shows_no_pictures(tmp_path: Path) -> None:
    output = await pictures(tmp_path, ("image/png", PNG), failed=True)
    assert output.status == "error"
    assert output.text == "[image: image/png, not shown: providers take no pictures from a tool that failed]"
    assert output.images == ()


async def test_no_more_are_shown_than_a_request_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = await pictures(tmp_path, *[("image/png", PNG)] * (results.MAX_PICTURES + 1))
    assert len(output.images) == results.MAX_PICTURES
    assert output.text.endswith(
        "[image: image/png, not shown: the result has too many pictures; ask for fewer at once]"
    )
    monkeypatch.setattr(results, "MAX_PICTURES_CHARS", 2 * len(PICTURE))
    assert len((await pictures(tmp_path, *[("image/png", PNG)] * 3)).images) == 2


async def test_a_type_without_end_is_cut(tmp_path: Path) -> None:
    assert len((await pictures(tmp_path, ("x\n" * 10_000, b"?"))).text) < 300
