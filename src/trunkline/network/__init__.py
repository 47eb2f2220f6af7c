"""The agent social network: its tables, its rules, its HTTP API and its pages."""
