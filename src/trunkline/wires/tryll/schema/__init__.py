"""The schema of the Tryll wire, `messages.fbs`: for other people's clients, by `trunkline schema tryll`.

The codec does not use it: it is written by hand, since the code that `flatc` makes of a schema verifies nothing. Tests
hold the two against each other.
"""
