"""In which letters a page is written."""

from __future__ import annotations

import pytest

from trunkline.tools.charsets import decoded


@pytest.mark.parametrize(
    ("data", "content_type", "expected"),
    [
        ("é".encode(), "text/html", "é"),
        ("é".encode("latin-1"), "text/html", "é"),
        ("é".encode("latin-1"), "text/html; charset=ISO-8859-1", "é"),
        (b"\x93x\x94", "text/html; charset=iso-8859-1", "“x”"),
        ("日本".encode("shift_jis"), 'text/html; charset="Shift_JIS"', "日本"),
        ("日本".encode("euc_jp"), "text/html;charset=euc-jp", "日本"),
        ("中文".encode("gbk"), "text/html; charset=gb2312", "中文"),
        ("текст".encode("cp1251"), "text/plain; charset=windows-1251", "текст"),
        (b'<meta charset="koi8-r">' + "да".encode("koi8-r"), "text/html", '<meta charset="koi8-r">да'),
        (
            b"<?xml version='1.0' encoding='iso-8859-2'?>" + "ł".encode("iso-8859-2"),
            "text/xml",
            "<?xml version='1.0' encoding='iso-8859-2'?>ł",
        ),
        (b"\xef\xbb\xbfx", "text/html; charset=latin-1", "x"),
        ("x".encode("utf-16"), "text/plain", "x"),
        ("é".encode(), "text/html; charset=zlib", "é"),
        ("é".encode(), "text/html; charset=unicode_escape", "é"),
        ("é".encode(), "text/html; charset=no-such", "é"),
        (b"<META CHARSET=KOI8-R>" + "да".encode("koi8-r"), "text/html", "<META CHARSET=KOI8-R>да"),
        (b'<meta charset="utf-16">x', "text/html", '<meta charset="utf-16">x'),
        (b"\xff", "text/html; charset=utf-8", "\ufffd"),
    ],
)
def test_a_page_is_read_in_its_own_letters(data: bytes, content_type: str, expected: str) -> None:
    assert decoded(data, content_type) == expected


def test_what_was_cut_in_the_middle_of_a_letter_is_still_what_it_is() -> None:
    assert decoded("éé".encode()[:-1], "text/html", cut=True) == "é\ufffd"
