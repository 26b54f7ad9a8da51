"""Images are tokens, too: its tensorflow part, for what comes after it.

Built and explained in the chapter *Images are tokens, too* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import keras
import tensorflow as tf

from cellbycell.tensorflow.encoder import CausalTF, EncoderTF
from cellbycell.tensorflow.rotary import rotary_tf


def cut_patches_tf(images, size):
    """Cut pictures into square patches, row by row from the top left.

    images: (batch, colours, height, width) in PyTorch, colours last in
    TensorFlow; the result is (B, T, D), with D numbers in each patch.
    """
    height, width, colours = images.shape[1:]
    rows, columns = height // size, width // size
    shape = (-1, rows, size, columns, size, colours)
    cut = tf.reshape(images, shape)  # (..., C)
    cut = tf.transpose(cut, (0, 1, 3, 2, 4, 5))  # (..., C)
    shape = (-1, rows * columns, size * size * colours)
    return tf.reshape(cut, shape)  # (B, T, D)


class ViTTF(keras.layers.Layer):
    """Read pictures as rows of patches behind a class token, (B, T, D).

    count: the patches of a picture; size: of a patch, in pixels.
    Source: Dosovitskiy et al. 2021, section 3.1.
    """

    def __init__(self, count, size, d_model, num_layers=1, num_heads=4):
        super().__init__()
        self.size = size
        self.embed_patch = keras.layers.Dense(d_model)
        self.embed_patch.build((None, 3 * size**2))
        self.class_token = self.add_weight((1, 1, d_model), "zeros")
        self.table = self.add_weight((1 + count, d_model), "zeros")
        self.encoder = EncoderTF(
            num_layers, d_model, num_heads, 2 * d_model, norm_first=True
        )
        self.built = True  # nothing is left for the first call

    def embed(self, images):
        x = self.embed_patch(cut_patches_tf(images, self.size))  # (B, C, D)
        count = tf.shape(x)[0]
        first = tf.repeat(self.class_token, count, axis=0)  # (B, 1, D)
        return tf.concat([first, x], axis=1) + self.table  # (B, C + 1, D)

    def call(self, images):
        return self.encoder(self.embed(images))


def clip_loss_tf(images, texts, log_scale):
    """Return the loss of pairs: each finds its partner in the batch, ().

    images, texts (B, D): unit vectors, a row of each for a pair.
    Source: Radford et al. 2021, section 2.3.
    """
    logits = tf.exp(log_scale) * images @ tf.transpose(texts)  # (B, B)
    own = tf.range(tf.shape(logits)[0])  # (B,)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits
    by_image = tf.reduce_mean(loss(own, logits))
    by_text = tf.reduce_mean(loss(own, tf.transpose(logits)))  # ()
    return (by_image + by_text) / 2


class TextEncoderTF(keras.layers.Layer):
    """Read words, each with those before it; token_ids (B, T) to (B, T, D)."""

    def __init__(self, vocab_size, seq_len, d_model, num_layers=1):
        super().__init__()
        self.embedding = keras.layers.Embedding(vocab_size, d_model)
        self.embedding.build()
        self.table = self.add_weight((seq_len, d_model), "zeros")
        sizes = num_layers, d_model, 4, 2 * d_model
        self.encoder = CausalTF(EncoderTF(*sizes, norm_first=True))
        self.built = True  # nothing is left for the first call

    def call(self, token_ids):
        return self.encoder(self.embedding(token_ids) + self.table)


class ClipTF(keras.layers.Layer):
    """Return unit vectors of pictures and of texts, (B, C) each.

    image, text: encoders; texts all have one length, and end with *end*.
    """

    def __init__(self, image, text, d_model, d_common):
        super().__init__()
        self.image, self.text = image, text
        self.image_proj = keras.layers.Dense(d_common, use_bias=False)
        self.text_proj = keras.layers.Dense(d_common, use_bias=False)
        for proj in (self.image_proj, self.text_proj):
            proj.build((None, d_model))
        start = keras.initializers.Constant(math.log(1 / 0.07))
        self.log_scale = self.add_weight((), start)
        self.built = True  # nothing is left for the first call

    def of_images(self, images):
        x = self.image_proj(self.image(images)[:, 0])
        return tf.math.l2_normalize(x, axis=-1)

    def of_texts(self, token_ids):
        x = self.text_proj(self.text(token_ids)[:, -1])
        return tf.math.l2_normalize(x, axis=-1)

    def call(self, images, token_ids):
        return self.of_images(images), self.of_texts(token_ids)


def rotary_grid_tf(x, rows, columns, base=10000.0):
    """Rotate half of the columns of x by the row, half by the column.

    x (..., T, K) with K divisible by 4; rows, columns (T,): of each patch.
    The result has x's shape.
    """
    by_row, by_column = tf.split(x, 2, axis=-1)  # (..., T, C)
    turned = rotary_tf(by_row, rows, base), rotary_tf(by_column, columns, base)
    return tf.concat(turned, axis=-1)  # (..., T, K)
