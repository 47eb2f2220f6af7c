"""The customers of several shops."""

from shop.cache import MISSING, Cache


class Customers:
    """Reads and writes customers. A customer is a dictionary; `id` is unique in its shop."""

    def __init__(self, store, size=100):
        self._store = store
        self._cache = Cache(size)

    def find(self, shop, customer_id):
        """A customer, or None. What the caller does to the dictionary changes nothing here."""
        found = self._cache.get(customer_id)
        if found is MISSING:
            found = self._store.read(shop, customer_id)
            self._cache.put(customer_id, found)
        return found

    def save(self, shop, customer):
        self._store.write(shop, customer)

    def remove(self, shop, customer_id):
        self._store.delete(shop, customer_id)
        self._cache.drop(customer_id)
