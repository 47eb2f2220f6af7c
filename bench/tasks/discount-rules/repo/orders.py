"""Orders of several articles."""

from price import price


def total(order):
    """What a whole order costs."""
    return sum(price(cents, count, order["customer"], order.get("code")) for cents, count in order["articles"])
