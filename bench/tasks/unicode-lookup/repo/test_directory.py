import unittest
from pathlib import Path

from directory import Directory, load

FILE = Path(__file__).with_name("people.csv")


class Lookup(unittest.TestCase):
    def test_letters_of_any_case(self):
        directory = Directory()
        directory.add("Ada Lovelace", "1")
        self.assertEqual(directory.find("ADA lovelace "), "1")

    def test_composed_and_decomposed_letters_are_the_same(self):
        directory = Directory()
        directory.add("Zo\u00eb", "1")
        self.assertEqual(directory.find("Zoe\u0308"), "1")
        directory.add("ZOE\u0308", "2")
        self.assertEqual(len(directory), 1)

    def test_a_sharp_s_is_found_in_capitals(self):
        directory = Directory()
        directory.add("Stra\u00dfer", "1")
        self.assertEqual(directory.find("STRASSER"), "1")

    def test_a_ligature_and_full_width_letters(self):
        directory = Directory()
        directory.add("O\ufb03cer", "1")
        self.assertEqual(directory.find("\uff2fFFICER"), "1")

    def test_spaces_within(self):
        directory = Directory()
        directory.add("Ada\u00a0 Lovelace", "1")
        self.assertEqual(directory.find("Ada Lovelace"), "1")


class Files(unittest.TestCase):
    def test_a_file_from_windows(self):
        directory = load(FILE)
        self.assertEqual(directory.find("Jos\u00e9 \u00c1lvarez"), "100")
        self.assertEqual(directory.find("St\u00e9phanie Roux"), "200")
        self.assertEqual(directory.find("J\u00dcRGEN GROSS"), "300")


if __name__ == "__main__":
    unittest.main()
