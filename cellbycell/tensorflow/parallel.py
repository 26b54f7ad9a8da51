"""One model, several machines: its tensorflow part, for what comes after it.

Built and explained in the chapter *One model, several machines* of the book.
Written by `make package`: change it in the chapter.
"""

from dataclasses import replace

import tensorflow as tf

from cellbycell.common.parallel import cut_weights, part_config
from cellbycell.tensorflow.llama import LlamaLayerTF, LlamaTF, llama_weights_tf
from cellbycell.tensorflow.tiles import attend_with_sum_tf, join_attention_tf


def reduce_from_region_tf(x, machine):
    """Return the sum of all machines' x; its gradient goes back as it is."""
    return x + tf.stop_gradient(machine.all_reduce(x) - x)


def copy_to_region_tf(x, machine):
    """Return x, the same on all machines; its gradients are added up."""

    @tf.custom_gradient
    def same(x):
        return tf.identity(x), machine.all_reduce

    return same(x)


class ShardedLayerTF(LlamaLayerTF):
    """A machine's part of a LlamaLayer, which returns what the whole does.

    config: of the part. Takes and returns what LlamaAttention does, the cache
    with the key heads of this machine.
    """

    def __init__(self, config, machine):
        super().__init__(config)
        self.machine = machine

    def call(self, x, positions, attention_mask, cache=None):
        normed = copy_to_region_tf(self.attention_norm(x), self.machine)
        found, cache = self.attention(normed, positions, attention_mask, cache)
        x = x + reduce_from_region_tf(found, self.machine)
        normed = copy_to_region_tf(self.feed_forward_norm(x), self.machine)
        found = self.feed_forward(normed)  # (B, T, D)
        return x + reduce_from_region_tf(found, self.machine), cache


def shard_llama_tf(config, tensors, machine):
    """Return a machine's part of the Llama with these tensors."""
    part = part_config(config, machine.size)
    model = LlamaTF(replace(part, num_layers=0))
    model.layers = [
        ShardedLayerTF(part, machine) for _ in range(config.num_layers)
    ]
    own = cut_weights(tensors, machine.rank, machine.size)
    for name, weight in llama_weights_tf(model).items():
        weight.assign(own[name] if "embed" in name else own[name].T)
    return model


def ring_attention_tf(machine, query, key, value, positions):
    """Return causal attention over the keys of all machines, (..., T, V).

    query (..., T, K), key (..., T, K), value (..., T, V): of this machine's
    tokens, which are at positions (T,) of the text.
    """
    kept, places = None, positions
    for step in range(machine.size):
        if step:
            key, value = machine.pass_on(key), machine.pass_on(value)
            places = machine.pass_on(places)
        mask = places <= positions[:, None]  # (T, S)
        found = attend_with_sum_tf(query, key, value, mask)
        kept = join_attention_tf(kept, found) if step else found
    return kept[0]


def vocabulary_loss_tf(machine, logits, targets):
    """Return the loss of each token (T,) from parts of the vocabulary.

    logits (T, C): of this machine's part, equally wide on all; targets (T,):
    ids in the whole vocabulary.
    """
    width = logits.shape[-1]
    places = targets - machine.rank * width
    is_own = tf.cast((places >= 0) & (places < width), logits.dtype)
    places = tf.clip_by_value(places, 0, width - 1)
    found = tf.gather(logits, places, batch_dims=1) * is_own
    own = tf.reduce_logsumexp(logits, -1)  # (T,)
    sums = tf.unstack(machine.gather(own))
    sums[machine.rank] = own  # with its gradient
    return tf.reduce_logsumexp(sums, 0) - reduce_from_region_tf(found, machine)
