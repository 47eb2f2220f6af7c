"""A small Ethereum chain in this process, for demonstrations and tests. It needs the `chain` extra."""
