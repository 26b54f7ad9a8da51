"""The net: what a chapter claims, compared with what it gives."""
