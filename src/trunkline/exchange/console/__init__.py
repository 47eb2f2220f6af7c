"""The console: pages on which people see and steer every agent of an exchange in a browser."""
