"""The key-value cache: its tensorflow part, for what comes after it.

Built and explained in the chapter *The key-value cache* of the book.
Written by `make package`: change it in the chapter.
"""

import tensorflow as tf

from cellbycell.tensorflow.attention import attend_tf
from cellbycell.tensorflow.multi_head_attention import (
    merge_heads_tf,
    split_heads_tf,
)
from cellbycell.tensorflow.rotary import rotary_tf


def attend_cached_tf(x, layer, num_heads, cache=None):
    """Causal attention of new tokens: return the output and the new cache.

    x (B, T, D): the new tokens; layer: three matrices (D, D), for queries,
    keys and values; cache: keys and values (B, H, S, K) of the tokens before.
    """
    query, key, value = (split_heads_tf(x @ w, num_heads) for w in layer)
    start = 0 if cache is None else cache[0].shape[2]
    positions = tf.range(start, start + x.shape[1])  # (T,)
    query, key = rotary_tf(query, positions), rotary_tf(key, positions)
    if cache is not None:
        key = tf.concat([cache[0], key], axis=2)  # (B, H, S, K)
        value = tf.concat([cache[1], value], axis=2)  # (B, H, S, K)
    mask = tf.range(key.shape[2]) <= positions[:, None]  # (T, S)
    output, _ = attend_tf(query, key, value, mask)
    return merge_heads_tf(output), (key, value)


def attend_grouped_tf(query, key, value, mask=None):
    """Attention whose key heads serve several heads each, without copies.

    query (B, H, T, K); key and value (B, C, S, K), H a multiple of C;
    mask (T, S), True = may attend; output (B, H, T, K).
    """
    shape = (query.shape[0], key.shape[1], -1, *query.shape[2:])
    groups = tf.reshape(query, shape)  # (B, C, H // C, T, K)
    output, _ = attend_tf(groups, key[:, :, None], value[:, :, None], mask)
    return tf.reshape(output, query.shape)  # (B, H, T, K)
