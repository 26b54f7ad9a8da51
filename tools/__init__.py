"""What the commands run, and what the tests compare with."""
