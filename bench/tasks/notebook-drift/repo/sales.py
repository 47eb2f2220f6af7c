"""Figures about sales."""


def growth(old, new):
    """How much more it is than before, as a share."""
    return (new - old) / new


def moving_average(values, width):
    """The means of neighbours."""
    return [sum(values[i : i + width]) / width for i in range(len(values))]


def best(figures):
    """The name with the highest figure."""
    return max(figures, key=figures.get)
