import unittest

from stats import NoData, mean, median, spread


class Stats(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(mean([1, 2, 6]), 3)

    def test_median_of_an_odd_number_of_values(self):
        self.assertEqual(median([9, 1, 5]), 5)

    def test_median_of_an_even_number_of_values(self):
        self.assertEqual(median([4, 1, 3, 2]), 2.5)

    def test_the_list_stays_as_it_was(self):
        values = [3, 1, 2]
        median(values)
        self.assertEqual(values, [3, 1, 2])

    def test_nothing_has_no_figures(self):
        for figure in (mean, median, spread):
            with self.assertRaises(NoData):
                figure([])


if __name__ == "__main__":
    unittest.main()
