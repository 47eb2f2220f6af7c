"""Figures about lists of numbers."""


class NoData(ValueError):
    """There is nothing to tell about."""


def mean(values):
    """The arithmetic mean."""
    if not values:
        raise NoData("the mean of nothing")
    return sum(values) / len(values)


def median(values):
    """The value in the middle; between two of them, their mean."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def spread(values):
    """The distance from the smallest to the largest."""
    if not values:
        raise NoData("the spread of nothing")
    return max(values) - min(values)
