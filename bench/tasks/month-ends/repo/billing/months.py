"""Arithmetic with months."""

import calendar


def days_in(year, month):
    """How many days a month has."""
    return calendar.monthrange(year, month)[1]


def add_months(day, count):
    """The same day `count` months later, or the last day of that month if it is shorter."""
    month = day.month + count
    year = day.year + month // 12
    month = month % 12
    return day.replace(year=year, month=month, day=min(day.day, days_in(year, month)))
