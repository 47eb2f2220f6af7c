import unittest
from datetime import date

from billing.invoices import due_dates, is_due
from billing.months import add_months


class Months(unittest.TestCase):
    def test_within_a_year(self):
        self.assertEqual(add_months(date(2023, 3, 15), 2), date(2023, 5, 15))

    def test_over_the_turn_of_the_year(self):
        self.assertEqual(add_months(date(2023, 11, 30), 3), date(2024, 2, 29))
        self.assertEqual(add_months(date(2023, 12, 5), 12), date(2024, 12, 5))

    def test_to_december(self):
        self.assertEqual(add_months(date(2023, 10, 31), 2), date(2023, 12, 31))

    def test_backwards(self):
        self.assertEqual(add_months(date(2024, 3, 31), -1), date(2024, 2, 29))
        self.assertEqual(add_months(date(2024, 1, 10), -1), date(2023, 12, 10))


class Invoices(unittest.TestCase):
    def test_the_end_of_the_month_stays_the_end(self):
        days = due_dates(date(2024, 1, 31), 4)
        self.assertEqual(days, [date(2024, 1, 31), date(2024, 2, 29), date(2024, 3, 31), date(2024, 4, 30)])

    def test_every_quarter(self):
        self.assertEqual(due_dates(date(2023, 11, 30), 2, every=3), [date(2023, 11, 30), date(2024, 2, 29)])

    def test_what_is_due_is_in_the_list(self):
        for day in due_dates(date(2024, 1, 31), 14):
            self.assertTrue(is_due(date(2024, 1, 31), day), day)
        self.assertFalse(is_due(date(2024, 1, 31), date(2024, 3, 29)))


if __name__ == "__main__":
    unittest.main()
