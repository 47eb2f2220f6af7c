"""The conversation itself: events, turns, approvals, usage, faults, session, event log. Imports `base` alone."""
