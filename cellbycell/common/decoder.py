"""The decoder: its common part, for what comes after it.

Built and explained in the chapter *The decoder* of the book.
Written by `make package`: change it in the chapter.
"""


def decoder_layer_parameters(d_model, d_ff):
    """Return how many numbers a decoder layer learns."""
    attentions = 8 * d_model**2 + 8 * d_model
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    return attentions + feed_forward + 6 * d_model
