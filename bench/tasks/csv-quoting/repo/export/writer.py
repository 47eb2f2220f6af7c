"""Writes records as CSV."""

from export.fields import as_text

SEPARATOR = ","
END = "\r\n"


def write_record(record):
    """One line of the file, with its end."""
    return SEPARATOR.join(as_text(value) for value in record) + END


def write_file(header, records):
    """The whole file."""
    return write_record(header) + "".join(write_record(record) for record in records)
