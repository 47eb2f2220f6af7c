import unittest

from shop.customers import Customers


class Store:
    def __init__(self):
        self.rows, self.reads = {}, 0

    def read(self, shop, customer_id):
        self.reads += 1
        row = self.rows.get((shop, customer_id))
        return None if row is None else dict(row)

    def write(self, shop, customer):
        self.rows[shop, customer["id"]] = dict(customer)

    def delete(self, shop, customer_id):
        self.rows.pop((shop, customer_id), None)


class Caching(unittest.TestCase):
    def setUp(self):
        self.store = Store()
        self.customers = Customers(self.store, size=2)
        for shop in ("north", "south"):
            for number in (1, 2, 3):
                self.customers.save(shop, {"id": number, "city": f"{shop} {number}"})
        self.store.reads = 0

    def test_a_second_look_needs_no_reading(self):
        for _ in range(3):
            self.assertEqual(self.customers.find("north", 1)["city"], "north 1")
        self.assertEqual(self.store.reads, 1)

    def test_shops_do_not_mix(self):
        self.assertEqual(self.customers.find("north", 1)["city"], "north 1")
        self.assertEqual(self.customers.find("south", 1)["city"], "south 1")

    def test_a_change_is_seen_at_once(self):
        self.customers.find("north", 1)
        self.customers.save("north", {"id": 1, "city": "Oslo"})
        self.assertEqual(self.customers.find("north", 1)["city"], "Oslo")

    def test_one_who_was_not_there_is_found_after_being_saved(self):
        self.assertIsNone(self.customers.find("north", 9))
        self.customers.save("north", {"id": 9, "city": "Rome"})
        self.assertEqual(self.customers.find("north", 9)["city"], "Rome")

    def test_a_removed_one_is_gone(self):
        self.customers.find("north", 1)
        self.customers.remove("north", 1)
        self.assertIsNone(self.customers.find("north", 1))

    def test_what_a_caller_changes_is_the_callers(self):
        self.customers.find("north", 1)["city"] = "nowhere"
        self.assertEqual(self.customers.find("north", 1)["city"], "north 1")

    def test_the_one_used_longest_ago_goes_first(self):
        self.customers.find("north", 1)
        self.customers.find("north", 2)
        self.customers.find("north", 1)
        self.customers.find("north", 3)
        self.store.reads = 0
        self.customers.find("north", 1)
        self.assertEqual(self.store.reads, 0)
        self.customers.find("north", 2)
        self.assertEqual(self.store.reads, 1)


if __name__ == "__main__":
    unittest.main()
