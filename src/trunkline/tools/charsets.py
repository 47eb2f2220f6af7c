"""In which letters a page of the web is written: what its server says, what it says itself, what it looks like."""

from __future__ import annotations

import codecs
import re

#: Where a page has to say it, if it does.
_PROBE = 4096
_NAME = rb"""[\s"']*([A-Za-z0-9_:.+-]{1,40})"""
_IN_PAGE = re.compile(
    rb"<meta[^>]{0,500}?charset\s*=" + _NAME + rb"|<\?xml[^>]{0,200}?encoding\s*=" + _NAME, re.IGNORECASE
)
_IN_HEADER = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9_:.+-]{1,40})""", re.IGNORECASE)
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
#: Those that pages are written in. Python knows others that are none, or that take very long.
_KNOWN = re.compile(
    r"utf-8|utf-16(-[lb]e)?|cp(125\d|866|874|932|936|949|950)|iso8859-\d+|koi8-[ru]|gb2312|gbk|gb18030|big5(hkscs)?"
    r"|shift_jis(_2004|x0213)?|euc_(jp|kr)|iso2022_jp|ascii|mac-(roman|cyrillic)|tis-620"
)
#: What is said and what is meant: browsers read the smaller ones as the larger.
_MEANT = {"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "gb2312": "gb18030", "gbk": "gb18030"}
#: Where nobody says anything, and it is not UTF-8: what the oldest pages have.
_OLD = "cp1252"


def decoded(data: bytes, content_type: str = "", *, cut: bool = False) -> str:
    """The text of a page; `cut`: this is its beginning, which may end in the middle of a letter."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data.decode(name, "replace")
    said = _IN_HEADER.search(content_type)
    found = _codec(said[1]) if said else None
    if found is None and (inside := _IN_PAGE.search(data[:_PROBE])):
        found = _codec((inside[1] or inside[2]).decode("ascii"))
        # It could not have been read if it were so.
        found = "utf-8" if found is not None and found.startswith("utf-16") else found
    if found is not None:
        return data.decode(found, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        is_half = cut and len(data) - error.start < 4
        return data.decode("utf-8" if is_half else _OLD, "replace")


def _codec(label: str) -> str | None:
    """Python's name for it, if pages are written in it."""
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return None
    return _MEANT.get(name, name) if _KNOWN.fullmatch(name) else None
