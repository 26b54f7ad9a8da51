"""The encoder: its common part, for what comes after it.

Built and explained in the chapter *The encoder* of the book.
Written by `make package`: change it in the chapter.
"""


def layer_parameters(d_model, d_ff):
    """Return how many numbers an encoder layer learns."""
    attention = 4 * d_model**2 + 4 * d_model
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    return attention + feed_forward + 4 * d_model
