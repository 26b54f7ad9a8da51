"""The key-value cache: its tensorflow part, for what comes after it.

Built and explained in the chapter *The key-value cache* of the book.
Written by `make package`: change it in the chapter.
"""

import inspect

import keras
import tensorflow as tf

from cellbycell.tensorflow.attention import attend_tf
from cellbycell.tensorflow.decoder import append_ids_tf, evaluating_tf
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
    slots = tf.range(start + x.shape[1])  # (S,)
    positions = slots[start:]  # (T,)
    query, key = rotary_tf(query, positions), rotary_tf(key, positions)
    if cache is not None:
        key = tf.concat([cache[0], key], axis=2)  # (B, H, S, K)
        value = tf.concat([cache[1], value], axis=2)  # (B, H, S, K)
    # Each token may attend to itself and to everything before it.
    output, _ = attend_tf(query, key, value, slots <= positions[:, None])
    return merge_heads_tf(output), (key, value)


def _next_logits_tf(model, written, cache, key_mask):
    """Return the logits of the next ids, (B, N), and the cache.

    written (B, T); key_mask (B, T) or None; cache: [] at the start.
    """
    call = model.call if isinstance(model, keras.layers.Layer) else model
    given = {} if key_mask is None else {"key_mask": key_mask}
    if "cache" not in inspect.signature(call).parameters:
        return model(written, **given)[:, -1], cache
    new_ids = written[:, -1:] if cache else written
    logits, cache = model(new_ids, cache=cache, **given)
    return logits[:, -1], cache


def greedy_tf(logits):
    """Return the ids (B,) of the largest logits (B, N)."""
    return tf.argmax(logits, -1)


def generate_tf(
    model, token_ids, max_len, end_id=None, key_mask=None, choose=greedy_tf
):
    """Return token_ids (B, T) and the ids that a model writes after them.

    max_len at most, zeros after end_id. model: ids (B, T) to logits (B, T, N);
    if its signature names a cache, it reads each id once; a wrapper that hides
    the name makes it reread all. key_mask (B, T), True = a token; pads are on
    the left. choose: logits (B, N) to ids (B,).
    """
    written, cache = tf.cast(token_ids, tf.int64), []
    has_ended = tf.zeros_like(written[:, 0], tf.bool)  # (B,)
    with evaluating_tf(model):
        for _ in range(max_len):
            logits, cache = _next_logits_tf(model, written, cache, key_mask)
            next_ids = tf.cast(choose(logits), written.dtype)  # (B,)
            # Zeros, the padding id of this book, after an end.
            next_ids = tf.where(has_ended, tf.zeros_like(next_ids), next_ids)
            written = append_ids_tf(written, next_ids)
            if key_mask is not None:
                key_mask = append_ids_tf(key_mask, tf.ones_like(has_ended))
            has_ended = has_ended | (next_ids == end_id)  # None: never
            if tf.reduce_all(has_ended):
                break
    return tf.cast(written, token_ids.dtype)


def attend_grouped_tf(query, key, value, mask=None):
    """Attention whose key heads serve several heads each.

    query (B, H, T, K); key and value (B, C, S, K), H a multiple of C;
    mask (T, S), True = may attend; output (B, H, T, K).
    """
    shape = (query.shape[0], key.shape[1], -1, *query.shape[2:])
    groups = tf.reshape(query, shape)  # (B, C, H // C, T, K)
    key = key[:, :, None]  # (B, C, 1, S, K)
    value = value[:, :, None]  # (B, C, 1, S, K)
    output, _ = attend_tf(groups, key, value, mask)
    return tf.reshape(output, query.shape)  # (B, H, T, K)
