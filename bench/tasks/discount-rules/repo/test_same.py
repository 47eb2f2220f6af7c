import unittest

from orders import total
from price import price


class Same(unittest.TestCase):
    def test_prices_are_what_they_were(self):
        for cents, count, customer, code, wanted in [
            (1000, 1, "guest", None, 1000),
            (1000, 1, "guest", "SPRING", 500),
            (300, 1, "guest", "SPRING", 0),
            (999, 3, "staff", None, 2098),
            (999, 3, "staff", "SPRING", 1598),
            (100, 9, "reseller", None, 900),
            (100, 10, "reseller", None, 900),
            (100, 100, "reseller", "SPRING", 7500),
            (100, 100, "guest", "AUTUMN", 10000),
        ]:
            self.assertEqual(price(cents, count, customer, code), wanted, (cents, count, customer, code))

    def test_orders(self):
        self.assertEqual(total({"customer": "staff", "articles": [(1000, 1), (100, 10)]}), 1400)


if __name__ == "__main__":
    unittest.main()
