import csv
import io
import unittest
from datetime import date

from export.writer import write_file, write_record


class Export(unittest.TestCase):
    def test_plain_values(self):
        self.assertEqual(write_record(["a", 1, None, True, date(2024, 2, 29)]), "a,1,,yes,2024-02-29\r\n")

    def test_what_needs_no_quotes_has_none(self):
        self.assertEqual(write_record(["two words"]), "two words\r\n")

    def test_a_separator_within_a_field(self):
        self.assertEqual(write_record(["Doe, Jane"]), '"Doe, Jane"\r\n')

    def test_quotes_are_doubled(self):
        self.assertEqual(write_record(['5" disk', "x"]), '"5"" disk",x\r\n')

    def test_any_text_comes_back(self):
        rows = [["a,b", 'say "no"', "two\nlines", "dos\r\nlines", "cr\ronly", "", " x "]]
        text = write_file(["c"] * 7, rows)
        self.assertEqual(list(csv.reader(io.StringIO(text, newline="")))[1:], rows)


if __name__ == "__main__":
    unittest.main()
