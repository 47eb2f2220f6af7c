"""How single values are written."""

from datetime import date


def as_text(value):
    """A value as it stands in a file."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, date):
        return value.isoformat()
    text = str(value)
    if " " in text:
        return '"' + text + '"'
    return text
