import os
import tempfile
import unittest

from serve import Folder


class Serving(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.base = place.name
        self.put("www/index.html", b"home")
        self.put("www/docs/index.html", b"docs")
        self.put("www/a..b.txt", b"dots")
        self.put("www-private/key", b"secret")
        self.put("key", b"secret")
        self.folder = Folder(os.path.join(self.base, "www"))

    def put(self, name, data):
        path = os.path.join(self.base, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)

    def test_what_is_there(self):
        self.assertEqual(self.folder.read("/"), b"home")
        self.assertEqual(self.folder.read("/docs/"), b"docs")
        self.assertEqual(self.folder.read("/docs/../index.html"), b"home")
        self.assertEqual(self.folder.read("/a..b.txt"), b"dots")
        self.assertIsNone(self.folder.read("/nothing"))

    def test_the_folder_above(self):
        self.assertIsNone(self.folder.read("/../key"))
        self.assertIsNone(self.folder.read("/%2e%2e/key"))
        self.assertIsNone(self.folder.read("/docs/..%2f..%2fkey"))

    def test_a_folder_whose_name_begins_alike(self):
        self.assertIsNone(self.folder.read("/%2e%2e/www-private/key"))

    def test_a_link_that_leads_outside(self):
        os.symlink(os.path.join(self.base, "key"), os.path.join(self.base, "www", "link"))
        os.symlink(os.path.join(self.base, "www-private"), os.path.join(self.base, "www", "dir"))
        self.assertIsNone(self.folder.read("/link"))
        self.assertIsNone(self.folder.read("/dir/key"))

    def test_a_link_within(self):
        os.symlink("index.html", os.path.join(self.base, "www", "start"))
        self.assertEqual(self.folder.read("/start"), b"home")

    def test_a_zero_byte(self):
        self.assertIsNone(self.folder.read("/index.html%00.png"))

    def test_a_folder_that_is_a_link_itself(self):
        os.symlink(os.path.join(self.base, "www"), os.path.join(self.base, "current"))
        self.assertEqual(Folder(os.path.join(self.base, "current")).read("/"), b"home")


if __name__ == "__main__":
    unittest.main()
