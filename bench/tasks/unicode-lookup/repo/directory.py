"""A directory of people, by name."""


def key(name):
    """What two spellings of one name have in common."""
    return name.strip().lower()


class Directory:
    """Finds the telephone number of a person."""

    def __init__(self):
        self._numbers = {}

    def add(self, name, number):
        self._numbers[key(name)] = number

    def find(self, name):
        """The number, or None."""
        return self._numbers.get(name.strip().lower())

    def __len__(self):
        return len(self._numbers)


def load(path):
    """The directory in a file: a name, a semicolon and a number in each line."""
    directory = Directory()
    with open(path, encoding="latin-1") as file:
        for line in file:
            name, _, number = line.rstrip("\n").partition(";")
            if number:
                directory.add(name, number)
    return directory
