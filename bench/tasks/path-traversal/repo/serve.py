"""Finds the files that a web server gives away."""

import os
from urllib.parse import unquote

INDEX = "index.html"


class Folder:
    """A folder of files for everybody."""

    def __init__(self, root):
        self.root = os.path.abspath(root)

    def find(self, url_path):
        """The file for the path of a URL, or None."""
        if ".." in url_path:
            return None
        path = os.path.join(self.root, unquote(url_path).lstrip("/"))
        if os.path.isdir(path):
            path = os.path.join(path, INDEX)
        if not os.path.abspath(path).startswith(self.root):
            return None
        return path if os.path.isfile(path) else None

    def read(self, url_path):
        """What is in it, or None."""
        path = self.find(url_path)
        if path is None:
            return None
        with open(path, "rb") as file:
            return file.read()
