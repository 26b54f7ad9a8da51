"""What the commands run; CONTRIBUTING.md has a picture of the layers."""
