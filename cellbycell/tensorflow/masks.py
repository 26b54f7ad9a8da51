"""Masks: its tensorflow part, for what comes after it.

Built and explained in the chapter *Masks* of the book.
Written by `make package`: change it in the chapter.
"""

import tensorflow as tf


def make_causal_mask_tf(seq_len):
    """Return the mask that lets a position see itself and the past, (T, T)."""
    positions = tf.range(seq_len)  # (T,)
    return positions <= positions[:, None]  # (T, T)
