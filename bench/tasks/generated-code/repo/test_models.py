import unittest

from models import Item, Order


class Models(unittest.TestCase):
    def test_an_order_of_ours(self):
        self.assertEqual(Order(id=1, customer="Ada", note="blue").note, "blue")

    def test_an_order_of_the_partners(self):
        order = Order(**{"id": 2, "customer": "Bob"})
        self.assertEqual((order.id, order.note), (2, ""))

    def test_an_item(self):
        self.assertEqual(Item("pen").count, 1)


if __name__ == "__main__":
    unittest.main()
