"""Forms with files."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.base.multipart import MAX_FIELDS, FormField, parse


def encoded(data: dict[str, str], files: dict[str, tuple[str, bytes, str]]) -> tuple[bytes, str]:
    request = httpx.Request("POST", "http://x", data=data, files=files)
    return request.read(), request.headers["content-type"]


def test_a_clients_form_has_its_fields_and_files() -> None:
    form = parse(
        *encoded({"model": "whisper-1", "prompt": "Grüße; ok"}, {"file": ('a "b";.wav', b"\0\r\n--x", "audio/wav")})
    )
    assert form["model"] == FormField("model", b"whisper-1")
    assert form["prompt"].text == "Grüße; ok"
    assert form["file"].data == b"\0\r\n--x"
    assert form["file"].media_type == "audio/wav"
    assert form["file"].filename is not None
    assert form["file"].filename.endswith(".wav")


@given(st.binary(max_size=200))
def test_whatever_is_in_a_file_comes_out_of_it(data: bytes) -> None:
    assert parse(*encoded({}, {"file": ("x", data, "a/b")}))["file"].data == data


@pytest.mark.parametrize(
    ("body", "content_type", "told"),
    [
        (b"x", "application/json", "must be multipart/form-data"),
        (b"x", "multipart/form-data", "with a boundary"),
        (b"x", f"multipart/form-data; boundary={'b' * 71}", "with a boundary"),
        (b"x", "multipart/form-data; boundary=b", "does not occur"),
        (b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx", "multipart/form-data; boundary=b", "does not end"),
        (b"--b\r\nx\r\n--b--", "multipart/form-data; boundary=b", "no head"),
        (b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--", "multipart/form-data; boundary=b", "no name"),
        (b"--b\r\n\r\n\r\n\r\nx\r\n--b--", "multipart/form-data; boundary=b", "no name"),
    ],
)
def test_what_is_no_form_is_refused(body: bytes, content_type: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse(body, content_type)


def test_a_form_has_so_many_fields_and_no_more() -> None:
    def form(count: int) -> bytes:
        field = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n'
        return field * count + b"--b--\r\n"

    parse(form(MAX_FIELDS), "multipart/form-data; boundary=b")
    with pytest.raises(ValueError, match="more than"):
        parse(form(MAX_FIELDS + 1), "multipart/form-data; boundary=b")


@given(st.binary(max_size=300), st.text(max_size=60))
def test_nothing_but_a_refusal_comes_of_nonsense(body: bytes, content_type: str) -> None:
    for kind in (content_type, "multipart/form-data; boundary=b"):
        try:
            parse(b"--b\r\n" + body, kind)
        except ValueError:
            pass
