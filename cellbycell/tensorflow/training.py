"""Training a Transformer: its tensorflow part, for what comes after it.

Built and explained in the chapter *Training a Transformer* of the book.
Written by `make package`: change it in the chapter.
"""

import tensorflow as tf


def smooth_targets_tf(target_ids, vocab_size, smoothing=0.1, dtype=tf.float32):
    """Return the probabilities to predict, (B, T, N).

    target_ids (B, T); the framework raises its own error unless all of them
    are at least 0 and less than vocab_size. Code compiled by XLA checks
    nothing, and TensorFlow's ids have to fit into int32.
    """
    target_ids = tf.cast(target_ids, tf.int32)
    tf.debugging.assert_non_negative(target_ids)
    tf.debugging.assert_less(target_ids, vocab_size)
    right = tf.one_hot(target_ids, vocab_size, dtype=dtype)  # (B, T, N)
    return (1 - smoothing) * right + smoothing / vocab_size


def smoothed_loss_tf(logits, target_ids, smoothing=0.1):
    """Return the smoothed cross-entropy, the mean over the tokens, ().

    logits (B, T, N), computed in float32 or float64; target_ids (B, T),
    zeros are pads. The loss of a batch without tokens is zero.
    """
    dtype = tf.float64 if logits.dtype == tf.float64 else tf.float32
    targets = smooth_targets_tf(target_ids, logits.shape[-1], smoothing, dtype)
    logs = tf.nn.log_softmax(tf.cast(logits, dtype))  # (B, T, N)
    # With smoothing 0, a target of 0 times the log of 0 would be NaN.
    logs = tf.where(targets == 0, tf.zeros_like(logs), logs)
    losses = -tf.reduce_sum(targets * logs, -1)  # (B, T)
    kept = losses[target_ids != 0]
    return tf.reduce_sum(kept) / tf.cast(tf.maximum(tf.size(kept), 1), dtype)
