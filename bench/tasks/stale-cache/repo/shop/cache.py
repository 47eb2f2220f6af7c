"""A cache of limited size: the entry that was used longest ago goes first."""

from collections import OrderedDict

MISSING = object()


class Cache:
    def __init__(self, size):
        self._size = size
        self._entries = OrderedDict()

    def get(self, key):
        value = self._entries.get(key, MISSING)
        if value is not MISSING:
            self._entries.move_to_end(key)
        return value

    def put(self, key, value):
        self._entries[key] = value
        if len(self._entries) > self._size:
            self._entries.popitem()

    def drop(self, key):
        self._entries.pop(key, None)
