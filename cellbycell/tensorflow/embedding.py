"""From words to vectors: its tensorflow part, for what comes after it.

Built and explained in the chapter *From words to vectors* of the book.
Written by `make package`: change it in the chapter.
"""

import keras
import numpy as np
import tensorflow as tf


def name_loss_tf(model, rows):
    """Return the mean loss of the letters of names, in nats.

    model: from ids (B, T) to logits (B, T, N); rows: T + 1 ids each.
    """
    rows = tf.convert_to_tensor(rows)
    inputs, targets = rows[:, :-1], rows[:, 1:]
    is_first = tf.range(inputs.shape[1]) == 0  # (T,)
    counts = (inputs != 0) | is_first  # (B, T)
    logits = model(inputs)  # (B, T, N)
    cross_entropy = keras.losses.sparse_categorical_crossentropy
    losses = cross_entropy(targets, logits, from_logits=True)  # (B, T)
    return tf.reduce_mean(losses[counts])


def learn_tf(
    model, rows, steps=300, rate=0.01, decay=0.01, seed=0, loss_of=name_loss_tf
):
    """Train a model on rows drawn at random: return the losses.

    rows: T + 1 ids each, and each step draws 64; loss_of: a function of the
    model and the rows that were drawn.
    """
    rng, losses = np.random.default_rng(seed), []
    optimizer = keras.optimizers.AdamW(rate, decay, epsilon=1e-8)
    weights = model.trainable_variables
    optimizer.build(weights)  # else the step is traced twice

    @tf.function  # traced once, and then run without Python: much faster
    def take_step(drawn):
        with tf.GradientTape() as tape:
            loss = loss_of(model, drawn)
        gradients = tape.gradient(loss, weights)
        # The rows of a table, added up: Adam would square each one alone.
        gradients = [tf.convert_to_tensor(g) for g in gradients]
        optimizer.apply(gradients, weights)
        return loss

    for step in range(steps):
        optimizer.learning_rate = rate * (1 - step / steps)
        drawn = rows[rng.integers(len(rows), size=64)]
        losses.append(float(take_step(tf.constant(drawn))))
    return losses
