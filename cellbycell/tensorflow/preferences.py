"""Learn from your own text: its tensorflow part, for what comes after it.

Built and explained in the chapter *Learn from your own text* of the book.
Written by `make package`: change it in the chapter.
"""

import tensorflow as tf

from cellbycell.common.preferences import written
from cellbycell.tensorflow.cache import generate_tf


def finish_names_tf(model, begun, choose, max_len=20):
    """Return rows of names (B, T) that begin with ids (B, C)."""
    ids = tf.constant(begun)
    return generate_tf(model, ids, max_len, 0, choose=choose).numpy()


def token_logs_tf(model, rows, first=1):
    """Return log q of each written token of rows, 0 elsewhere, (B, T)."""
    ids, kept = tf.constant(rows), written(rows, first)
    logs = tf.nn.log_softmax(model(ids[:, :-1]))  # (B, T, N)
    logs = tf.gather(logs, ids[:, 1:], batch_dims=2)  # (B, T)
    return tf.where(kept, logs, tf.zeros_like(logs))


def preference_loss_tf(won, lost, won_before, lost_before, beta=0.1):
    """Return equation (5), the mean of pairs, from texts' log q and log p."""
    margin = (won - won_before) - (lost - lost_before)  # (B,)
    return -tf.reduce_mean(tf.math.log_sigmoid(beta * margin))


def row_kl_tf(student, teacher, rows, reverse):
    """Return the mean KL of two models at the written places of rows, ()."""
    ids, kept = tf.constant(rows[:, :-1]), written(rows)
    q, p = (tf.nn.log_softmax(m(ids)) for m in (student, teacher))
    one, other = (q, p) if reverse else (p, q)
    each = tf.reduce_sum(tf.exp(one) * (one - other), -1)  # (B, T)
    return tf.reduce_mean(each[kept])
