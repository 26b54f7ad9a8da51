"""One model, several machines: its pytorch part, for what comes after it.

Built and explained in the chapter *One model, several machines* of the book.
Written by `make package`: change it in the chapter.
"""

from dataclasses import replace

import torch

from cellbycell.common.parallel import cut_weights, part_config
from cellbycell.pytorch.llama import Llama, LlamaLayer, llama_weights
from cellbycell.pytorch.tiles import attend_with_sum, join_attention


def reduce_from_region(x, machine):
    """Return the sum of all machines' x; its gradient goes back as it is."""
    return x + (machine.all_reduce(x) - x).detach()


def copy_to_region(x, machine):
    """Return x, the same on all machines; its gradients are added up."""
    if x.requires_grad:
        x = x.clone()
        x.register_hook(machine.all_reduce)
    return x


class ShardedLayer(LlamaLayer):
    """A machine's part of a LlamaLayer, which returns what the whole does.

    config: of the part. Takes and returns what LlamaAttention does, the cache
    with the key heads of this machine.
    """

    def __init__(self, config, machine):
        super().__init__(config)
        self.machine = machine

    def forward(self, x, positions, attention_mask, cache=None):
        normed = copy_to_region(self.attention_norm(x), self.machine)
        found, cache = self.attention(normed, positions, attention_mask, cache)
        x = x + reduce_from_region(found, self.machine)
        normed = copy_to_region(self.feed_forward_norm(x), self.machine)
        found = self.feed_forward(normed)  # (B, T, D)
        return x + reduce_from_region(found, self.machine), cache


def shard_llama(config, tensors, machine):
    """Return a machine's part of the Llama with these tensors."""
    part = part_config(config, machine.size)
    model = Llama(replace(part, num_layers=0))
    for _ in range(config.num_layers):
        model.layers.append(ShardedLayer(part, machine))
    own = cut_weights(tensors, machine.rank, machine.size)
    for name, weight in llama_weights(model).items():
        weight.data = torch.tensor(own[name])
    return model


def ring_attention(machine, query, key, value, positions):
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
        found = attend_with_sum(query, key, value, mask)
        kept = join_attention(kept, found) if step else found
    return kept[0]


def vocabulary_loss(machine, logits, targets):
    """Return the loss of each token (T,) from parts of the vocabulary.

    logits (T, C): of this machine's part, equally wide on all; targets (T,):
    ids in the whole vocabulary.
    """
    width = logits.shape[-1]
    places = targets - machine.rank * width
    is_own = (places >= 0) & (places < width)
    places = places.clamp(0, width - 1)[:, None]  # (T, 1)
    found = logits.gather(-1, places)[:, 0] * is_own
    own = logits.logsumexp(-1)  # (T,)
    sums = machine.gather(own)  # (..., T)
    sums[machine.rank] = own  # with its gradient
    return sums.logsumexp(0) - reduce_from_region(found, machine)
