"""The regression check, the tests, and the tools behind the commands."""
