"""The commands of the Makefile that change or show the book."""
