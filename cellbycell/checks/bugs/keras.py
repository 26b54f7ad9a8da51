"""Small correct models in Keras, which get the planted bugs."""

import keras
import numpy as np
from keras import layers, ops

from . import BOTH_WAYS, IDS, NEXT, PADS, SOURCE


def in_keras(lower=0, upper=0):
    """Return a Keras model; its decoder keeps layers' inputs in 16 slots."""
    norm = layers.LayerNormalization

    class Layer(layers.Layer):
        def __init__(self, crossed):
            super().__init__()
            self.attention = layers.MultiHeadAttention(4, 8)
            self.cross = layers.MultiHeadAttention(4, 8) if crossed else None
            self.norms = [norm() for _ in range(2 + crossed)]
            self.widen = layers.Dense(64, activation="gelu")
            self.narrow, self.dropout = layers.Dense(32), layers.Dropout(0.1)

        def call(self, x, mask, memory=None, read=None, start=0, kept=None):
            y = now_kept = self.norms[0](x)
            if kept is not None:
                now_kept = ops.slice_update(kept, (0, start, 0), y)
            x = x + self.attention(y, now_kept, attention_mask=mask)
            if self.cross:
                y = self.norms[2](x)
                x = x + self.cross(y, memory, attention_mask=read)
            y = self.narrow(self.widen(self.norms[1](x)))
            return x + self.dropout(y), now_kept

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.table = layers.Embedding(48, 32)
            self.places = layers.Embedding(16, 32)
            self.linear = layers.Dense(48)
            self.lower = [Layer(False) for _ in range(lower)]
            self.upper = [Layer(lower > 0) for _ in range(upper)]

        def call(self, ids, decoder_ids=None, start=0, kept=None):
            memory, read = None, (ids != 0)[:, None]
            if lower:
                memory = self.table(ids) + self.places(np.arange(ids.shape[1]))
                for layer in self.lower:
                    memory, _ = layer(memory, read)
                if not upper:
                    return self.linear(memory)
                ids = decoder_ids
            end, now_kept = start + ids.shape[1], []
            new, slots = np.arange(start, end), np.arange(16 if kept else end)
            mask = (slots <= new[:, None])[None]
            x = self.table(ids) + self.places(new)
            for i, layer in enumerate(self.upper):
                cache = {"start": start, "kept": kept[i] if kept else None}
                x, y = layer(x, mask, memory, read, **cache)
                now_kept.append(y)
            return (self.linear(x), now_kept) if kept else self.linear(x)

    return Model()


def keras_loss(logits, targets):
    """Return the mean cross-entropy of what is not a pad."""
    entropy = keras.losses.sparse_categorical_crossentropy
    real = ops.cast(targets != 0, "float32")
    losses = entropy(targets, logits, from_logits=True) * real
    return ops.sum(losses) / ops.sum(real)


def step(model, ids, cache):
    """Return a Keras decoder's logits of new ids, and the cache."""
    start, kept = cache or (0, [ops.zeros((len(ids), 16, 32))] * 2)
    logits, kept = model(ids, start=start, kept=kept)
    return logits, (start + ids.shape[1], kept)


ASKED = PADS | {"targets": NEXT, "loss": keras_loss}
# The options that make a model, its ids, and what else is asked.
MODELS = {
    "keras-decoder": ({"upper": 2}, [IDS], ASKED | {"step": step}),
    "keras-encoder": ({"lower": 2}, [SOURCE], BOTH_WAYS),
    "keras-both": ({"lower": 2, "upper": 2}, [SOURCE, IDS], ASKED),
}


def case(name):
    """Return the arguments of `check_model` for a model."""
    keras.utils.set_random_seed(8)
    options, ids, asked = MODELS[name]
    model = in_keras(**options)
    model(*ids)  # makes its weights
    names = ("token_ids", "decoder_ids")
    given = dict(zip(names, ids, strict=False))
    return {"model": model} | given | asked
