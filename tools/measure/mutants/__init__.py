"""Put mistakes into the book's code, and count which are noticed."""
