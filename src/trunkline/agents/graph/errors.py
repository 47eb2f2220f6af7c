"""What is wrong with a text in a graph: the small languages of fields, filters, templates and patterns share one root.

Whoever knows the node, or the storage, makes a `Fault` of it that names the place.
"""

from __future__ import annotations


class GraphTextError(ValueError):
    """The text cannot be used; `str()` says why."""
