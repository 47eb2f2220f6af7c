import unittest

from price import RULES, Order, discounted


class Rules(unittest.TestCase):
    def test_the_rules_have_names_and_an_order(self):
        self.assertEqual([rule.name for rule in RULES], ["staff", "bulk", "code"])

    def test_each_rule_says_what_it_takes_off(self):
        staff, bulk, code = RULES
        order = Order(cents=1000, count=10, customer="reseller", code="SPRING")
        self.assertEqual(staff.off(order, 10_000), 0)
        self.assertEqual(bulk.off(order, 10_000), 1000)
        self.assertEqual(code.off(order, 9_000), 500)

    def test_no_rule_takes_off_more_than_there_is(self):
        order = Order(cents=300, count=1, customer="guest", code="SPRING")
        self.assertEqual(RULES[2].off(order, 300), 300)

    def test_some_rules_only(self):
        order = Order(cents=1000, count=1, customer="staff", code="SPRING")
        self.assertEqual(discounted(order, RULES[:1]), 700)
        self.assertEqual(discounted(order, []), 1000)
        self.assertEqual(discounted(order), 200)


if __name__ == "__main__":
    unittest.main()
