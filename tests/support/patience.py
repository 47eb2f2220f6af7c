"""How long a test waits for what must happen."""

#: A net for a test that would hang, and never a measure: what is waited for comes at once, or a few seconds later on a
#: machine that has others to serve. Shorter than a test's own limit (`timeout` in pyproject.toml), so that a test which
#: waits in vain says for what.
PATIENCE_SECONDS = 60.0
