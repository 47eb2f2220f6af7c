"""When invoices are due."""

from billing.months import add_months


def due_dates(subscribed, count, every=1):
    """The days of the first `count` invoices: the first one when the customer subscribes."""
    days = []
    day = subscribed
    for _ in range(count):
        days.append(day)
        day = add_months(day, every)
    return days


def is_due(subscribed, today, every=1):
    """Whether an invoice is due today."""
    months = (today.year - subscribed.year) * 12 + today.month - subscribed.month
    return months >= 0 and months % every == 0 and add_months(subscribed, months) == today
