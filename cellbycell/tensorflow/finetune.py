"""Teach an old model: its tensorflow part, for what comes after it.

Built and explained in the chapter *Teach an old model* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import keras
import numpy as np
import tensorflow as tf

from cellbycell.common.finetune import block_mask, projections, prompt_ids
from cellbycell.smol import END
from cellbycell.tensorflow.training import smoothed_loss_tf


def answer_to_tf(model, tokenizer, question, steps=16):
    """Return an answer, each time the likeliest token."""
    new, cache, said = prompt_ids(tokenizer, question), [], []
    while len(said) < steps and END not in said:
        logits, cache = model(tf.constant([new]), cache)
        new = [int(tf.argmax(logits[0, -1]))]
        said += new
    return tokenizer.decode(said, skip_special_tokens=False)


def packed_logits_tf(model, token_ids, positions, mask):
    """Return the logits of packed rows, (B, T, N).

    model: a Llama; token_ids and positions (B, T); mask (B, T, S), True =
    may attend; the same for all heads.
    """
    x = model.embedding(token_ids)  # (B, T, D)
    for layer in model.layers:
        x, _ = layer(x, positions[:, None], mask[:, None, None])
    x = model.norm(x)
    if model.tied:
        return tf.matmul(x, model.embedding.embeddings, transpose_b=True)
    return model.linear(x)  # (B, T, N)


def packed_loss_tf(model, packed):
    """Return the mean loss of what is asked in packed rows, ().

    packed (4, B, T): of pack_rows.
    """
    ids, targets, texts, positions = packed
    told = map(tf.constant, (ids, positions, block_mask(texts)))
    logits = packed_logits_tf(model, *told)  # (B, T, N)
    return smoothed_loss_tf(logits, targets, smoothing=0.0)


class LoraTF(keras.layers.Layer):
    """A frozen linear layer, and beside it a change of low rank.

    base: a linear layer with a weight (F, D); rng: of NumPy, for down.
    x (..., D); result (..., F). Source: Hu et al. 2021, section 4.1.
    """

    def __init__(self, base, rank, alpha, rng):
        super().__init__()
        base.trainable = False
        self.base, self.scale = base, alpha / rank
        d_in, d_out = base.kernel.shape  # Keras has (in, out)
        down = rng.normal(size=(rank, d_in)) / math.sqrt(d_in)
        self.down = self.add_weight(shape=(rank, d_in), name="down")
        self.down.assign(down)
        shape = d_out, rank
        self.up = self.add_weight(shape=shape, name="up", initializer="zeros")
        self.built = True  # nothing is left for the first call

    def call(self, x):
        narrow = tf.matmul(x, self.down, transpose_b=True)  # (..., C)
        change = tf.matmul(narrow, self.up, transpose_b=True)  # (..., F)
        return self.base(x) + self.scale * change


def add_lora_tf(model, rank, alpha, seed=0, **which):
    """Freeze a Llama, put a Lora at each of its projections, and return it.

    which: names= chooses projections; without it, all.
    """
    rng = np.random.default_rng(seed)
    for weight in model.variables:
        weight.trainable = False
    for part, name in projections(model, **which):
        setattr(part, name, LoraTF(getattr(part, name), rank, alpha, rng))
    return model


def merge_lora_tf(model, factor=1.0):
    """Add factor times the change of each Lora to its base; put bases back.

    Changes the model, which stays frozen, and returns it.
    """
    for part, name in projections(model):
        lora = getattr(part, name)
        if isinstance(lora, LoraTF):
            if factor:
                change = factor * lora.scale * lora.up @ lora.down
                lora.base.kernel.assign_add(tf.transpose(change))
            lora.trainable = False  # Keras lists it on
            setattr(part, name, lora.base)
    return model


def teach_tf(model, batches, rate):
    """Train what isn't frozen, one step a batch: return the losses."""
    trained, losses = model.trainable_variables, []
    optimizer = keras.optimizers.AdamW(weight_decay=0.0)
    for step, packed in enumerate(batches):
        optimizer.learning_rate = rate * (1 - step / len(batches))
        with tf.GradientTape() as tape:
            loss = packed_loss_tf(model, packed)
        optimizer.apply(tape.gradient(loss, trained), trained)
        losses.append(float(loss))
    return losses


def text_loss_tf(model, ids):
    """Return the mean loss of a text's tokens, ids (1, T)."""
    logits = model(ids[:, :-1])  # (B, T, N)
    losses = keras.losses.sparse_categorical_crossentropy
    return float(tf.reduce_mean(losses(ids[:, 1:], logits, from_logits=True)))
