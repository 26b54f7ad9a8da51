"""A thousand requests: its tensorflow part, for what comes after it.

Built and explained in the chapter *A thousand requests* of the book.
Written by `make package`: change it in the chapter.
"""

import tensorflow as tf

from cellbycell.tensorflow.cache import attend_grouped_tf
from cellbycell.tensorflow.multi_head_attention import (
    merge_heads_tf,
    split_heads_tf,
)
from cellbycell.tensorflow.rotary import rotary_halves_tf


def make_memory_tf(config, slots):
    """Return room for keys and values of tokens, (P, C, K) for each layer."""
    zeros = tf.zeros((slots, config.key_heads, config.d_head))
    layers = range(config.num_layers)
    return [[tf.Variable(zeros) for _ in layers] for _ in ("keys", "values")]


def rotated_tf(part, x, positions):
    """Return query, key and value of tokens (B, T, D), (B, H, T, K) each."""
    query = split_heads_tf(part.query_proj(x), part.num_heads)
    key = split_heads_tf(part.key_proj(x), part.key_heads)
    value = split_heads_tf(part.value_proj(x), part.key_heads)
    query = rotary_halves_tf(query, positions, part.base)
    return query, rotary_halves_tf(key, positions, part.base), value


def read_together_tf(model, memory, spans):
    """Read new tokens of several texts; return their next logits, (B, N).

    spans: for each text its new ids, the position of the first, and its slots,
    those of the new ids included; what lies beyond is masked. memory: keys
    and values, (P, C, K) for each layer, into which the new ones are written.
    """
    counts = [len(ids) for ids, _, _ in spans]
    token_ids = tf.constant([i for ids, _, _ in spans for i in ids])  # (T,)
    at = [tf.range(start, start + len(ids)) for ids, start, _ in spans]
    seen = [tf.constant(slots) for _, _, slots in spans]
    new = [tf.gather(own, p) for own, p in zip(seen, at, strict=True)]
    new = tf.concat(new, 0)[:, None]  # (T, 1)
    positions = tf.concat(at, 0)  # (T,)
    x = model.embedding(token_ids)[None]  # (1, T, D)
    for layer, keys, values in zip(model.layers, *memory, strict=True):
        part, y = layer.attention, layer.attention_norm(x)
        query, key, value = rotated_tf(part, y, positions)
        key = tf.transpose(key[0], (1, 0, 2))  # (T, C, K)
        value = tf.transpose(value[0], (1, 0, 2))  # (T, C, K)
        keys.scatter_nd_update(new, key)
        values.scatter_nd_update(new, value)
        found = []
        queries = tf.split(query, counts, 2)
        for q, p, own in zip(queries, at, seen, strict=True):
            k = tf.transpose(tf.gather(keys, own), (1, 0, 2))  # (..., K)
            v = tf.transpose(tf.gather(values, own), (1, 0, 2))  # (..., K)
            mask = tf.range(len(own)) <= p[:, None]  # its own past
            found.append(attend_grouped_tf(q, k[None], v[None], mask))
        found = tf.concat(found, 2)  # (1, H, T, K)
        x = x + part.output_proj(merge_heads_tf(found))
        x = x + layer.feed_forward(layer.feed_forward_norm(x))
    x = model.norm(tf.gather(x[0], tf.cumsum(counts) - 1))  # (B, D)
    if not model.tied:
        return model.linear(x)
    return x @ tf.transpose(model.embedding.embeddings)  # (B, N)
