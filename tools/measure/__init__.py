"""What measures the book, the net and the site."""
