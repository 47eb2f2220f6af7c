"""Tryll: a server that runs graphs of local models, over TCP with FlatBuffers."""
