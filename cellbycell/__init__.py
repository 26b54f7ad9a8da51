"""The code of the book "Transformers, Cell by Cell" as a package."""
