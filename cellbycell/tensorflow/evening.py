"""One evening: its tensorflow part, for what comes after it.

Built and explained in the chapter *One evening* of the book.
Written by `make package`: change it in the chapter.
"""

import keras
import numpy as np
import tensorflow as tf


def turn_tf(x, positions, base):
    """Turn pairs of columns of x (..., T, K) by their positions (T,)."""
    d_head = x.shape[-1]
    speeds = base ** -(tf.range(0, d_head, 2, dtype=x.dtype) / d_head)
    angles = tf.cast(positions, x.dtype)[:, None] * speeds
    cos, sin = tf.cos(angles), tf.sin(angles)
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = [a * cos - b * sin, a * sin + b * cos]
    return tf.reshape(tf.stack(pairs, -1), tf.shape(x))  # (..., T, K)


class BlockTF(keras.layers.Layer):
    """Attention, then a gated network; what each finds is added to x."""

    def __init__(self, d_model, num_heads, key_heads, d_ff, base):
        super().__init__()
        self.num_heads, self.key_heads, self.base = num_heads, key_heads, base
        narrow = d_model // num_heads * key_heads
        self.attn_norm = keras.layers.RMSNormalization(epsilon=1e-5)
        self.attn_q = keras.layers.Dense(d_model, use_bias=False)
        self.attn_k = keras.layers.Dense(narrow, use_bias=False)
        self.attn_v = keras.layers.Dense(narrow, use_bias=False)
        self.attn_output = keras.layers.Dense(d_model, use_bias=False)
        self.ffn_norm = keras.layers.RMSNormalization(epsilon=1e-5)
        self.ffn_gate = keras.layers.Dense(d_ff, use_bias=False)
        self.ffn_up = keras.layers.Dense(d_ff, use_bias=False)
        self.ffn_down = keras.layers.Dense(d_model, use_bias=False)

    def split(self, x, count):
        x = tf.reshape(x, (*x.shape[:2], count, -1))  # (B, T, C, K)
        return tf.transpose(x, (0, 2, 1, 3))  # (B, C, T, K)

    def share(self, x):
        return tf.repeat(x, self.num_heads // self.key_heads, axis=1)

    def turn(self, x, positions):
        return turn_tf(x, positions, self.base)

    def mask(self, positions, slots):
        return slots <= positions[:, None]  # (T, S)

    def attend(self, x, past):
        start = past[0].shape[2] if past else 0
        slots = tf.range(start + x.shape[1])  # (S,)
        positions = slots[start:]  # (T,)
        q = self.turn(self.split(self.attn_q(x), self.num_heads), positions)
        k = self.turn(self.split(self.attn_k(x), self.key_heads), positions)
        v = self.split(self.attn_v(x), self.key_heads)
        if past:
            k = tf.concat([past[0], k], 2)  # (B, C, S, K)
            v = tf.concat([past[1], v], 2)  # (B, C, S, K)
        scores = tf.matmul(q, self.share(k), transpose_b=True)  # (B, H, T, S)
        mask = self.mask(positions, slots)
        scores = tf.where(mask, scores / q.shape[-1] ** 0.5, -np.inf)
        found = tf.nn.softmax(scores) @ self.share(v)  # (B, H, T, K)
        found = tf.transpose(found, (0, 2, 1, 3))  # (B, T, H, K)
        found = tf.reshape(found, tf.shape(x))  # (B, T, D)
        return self.attn_output(found), (k, v)

    def call(self, x, past=None):
        found, past = self.attend(self.attn_norm(x), past)
        x = x + found
        y = self.ffn_norm(x)
        y = tf.nn.silu(self.ffn_gate(y)) * self.ffn_up(y)  # (B, T, F)
        return x + self.ffn_down(y), past


class ModelTF(keras.Model):
    """Return the logits of each next token, (B, T, N), and what to keep."""

    def __init__(self, vocab_size, num_layers, d_model, *sizes):
        super().__init__()
        self.token_embd = keras.layers.Embedding(vocab_size, d_model)
        self.blk = [BlockTF(d_model, *sizes) for _ in range(num_layers)]
        self.output_norm = keras.layers.RMSNormalization(epsilon=1e-5)

    def call(self, ids, past=None):
        x, kept = self.token_embd(ids), []
        for i, block in enumerate(self.blk):
            x, one = block(x, past[i] if past else None)
            kept.append(one)
        table = self.token_embd.embeddings  # (N, D)
        return tf.matmul(self.output_norm(x), table, transpose_b=True), kept
