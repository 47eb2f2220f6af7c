"""Transactions: what an agent asks of a contract, checked, tried, limited, signed, sent and followed to its end."""
