"""The decoder: its pytorch part, for what comes after it.

Built and explained in the chapter *The decoder* of the book.
Written by `make package`: change it in the chapter.
"""

import math
import warnings
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from cellbycell.common.multi_head_attention import layer_projections
from cellbycell.pytorch.encoder import (
    AddAndNorm,
    Encoder,
    EncoderLayer,
    LayerNorm,
    draw_weights,
)
from cellbycell.pytorch.masks import make_causal_mask
from cellbycell.pytorch.multi_head_attention import MultiHeadAttention
from cellbycell.pytorch.positional_encoding import position_table


class DecoderLayer(EncoderLayer):
    """Self-attention, cross-attention and feed-forward, one by one.

    x (B, T, D), memory (B, S, D), or None: without cross-attention; masks
    (T, T) of x and (B, 1, S) of memory, True = may attend; result (B, T, D).
    Raises ValueError if num_heads does not divide d_model.
    """

    def __init__(
        self, d_model, num_heads, d_ff, norm_first=False, dropout=0.0
    ):
        super().__init__(d_model, num_heads, d_ff, norm_first, dropout)
        self.cross_attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.around_cross_attention = AddAndNorm(d_model, norm_first, dropout)

    def forward(self, x, memory=None, attention_mask=None, memory_mask=None):
        def look_back(y):
            return self.attention(y, y, y, attention_mask)

        def read_source(y):
            return self.cross_attention(y, memory, memory, memory_mask)

        x = self.around_attention(x, sublayer=look_back)
        if memory is not None:
            x = self.around_cross_attention(x, sublayer=read_source)
        return self.around_feed_forward(x, sublayer=self.feed_forward)


class Decoder(nn.Module):
    """A stack of decoder layers, each with its own weights, and a norm.

    The arguments are those of DecoderLayer; result (B, T, D).
    Raises ValueError if num_heads does not divide d_model.
    """

    def __init__(self, num_layers, d_model, *sizes, **options):
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, *sizes, **options) for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model)

    def forward(self, x, memory=None, attention_mask=None, memory_mask=None):
        for layer in self.layers:
            x = layer(x, memory, attention_mask, memory_mask=memory_mask)
        return self.norm(x)


class Transformer(nn.Module):
    """An encoder-decoder: return the logits of each next token.

    source_ids (B, S), input_ids (B, T), zeros are pads, on the right of
    input_ids; logits (B, T, N). tied: the last layer is the table.
    Raises ValueError if num_heads does not divide d_model.
    Source: Vaswani et al. 2017, section 3.
    """

    def __init__(
        self,
        vocab_size,
        num_layers,
        d_model,
        num_heads,
        d_ff,
        norm_first=False,
        dropout=0.0,
        tied=False,
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.embedding.weight.data /= math.sqrt(d_model)
        sizes = num_layers, d_model, num_heads, d_ff, norm_first, dropout
        self.encoder = Encoder(*sizes)
        self.decoder = Decoder(*sizes)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(d_model, vocab_size, bias=False)
        if tied:
            self.linear.weight = self.embedding.weight

    def embed(self, token_ids):
        x = self.embedding(token_ids)  # (B, T, D)
        x = x * math.sqrt(x.shape[-1])
        x = x + position_table(*x.shape[1:], dtype=x.dtype).to(x.device)
        return self.dropout(x)

    def encode(self, source_ids):
        memory_mask = (source_ids != 0)[:, None]  # (B, 1, S)
        return self.encoder(self.embed(source_ids), memory_mask), memory_mask

    def decode(self, input_ids, memory, memory_mask):
        causal_mask = make_causal_mask(input_ids.shape[1])  # (T, T)
        causal_mask = causal_mask.to(input_ids.device)
        x = self.embed(input_ids)  # (B, T, D)
        x = self.decoder(x, memory, causal_mask, memory_mask=memory_mask)
        return self.linear(x)

    def forward(self, source_ids, input_ids):
        memory, memory_mask = self.encode(source_ids)
        return self.decode(input_ids, memory, memory_mask)


def draw_model(model, seed):
    """Initialise a Transformer: the same in both frameworks."""
    draw_weights(model, seed)
    vocab_size, d_model = model.embedding.weight.shape
    table = np.random.default_rng(seed).normal(size=(vocab_size, d_model))
    model.embedding.weight.data[:] = torch.tensor(table / math.sqrt(d_model))


def append_ids(written, next_ids):
    """Return written (B, T) with next_ids (B,) appended, one longer."""
    return torch.cat([written, next_ids[:, None]], dim=1)  # (B, T + 1)


@contextmanager
def evaluating(model):
    """Within `with`, a model is in evaluation mode, without gradients.

    Afterwards each part is in its own mode again, also after an error.
    """
    parts = [*model.modules()] if isinstance(model, nn.Module) else []
    modes = [part.training for part in parts]
    try:
        for part in parts:
            part.training = False
        with torch.no_grad():
            yield
    finally:
        for part, mode in zip(parts, modes, strict=True):
            part.training = mode


def greedy_decode(model, source_ids, start_id, end_id, max_len):
    """Return the ids that a model writes for source_ids (B, S).

    Rows begin with start_id; max_len tokens at most, zeros after end_id. The
    model is in evaluation mode while it writes.
    """
    with evaluating(model):
        memory, memory_mask = model.encode(source_ids)
        written = torch.zeros_like(source_ids[:, :1]) + start_id  # (B, 1)
        for _ in range(max_len):
            has_ended = (written[:, 1:] == end_id).any(dim=1)  # (B,)
            if has_ended.all():
                break
            logits = model.decode(written, memory, memory_mask)
            next_ids = logits[:, -1].argmax(dim=-1)  # (B,)
            next_ids = next_ids.masked_fill(has_ended, 0).to(written.dtype)
            written = append_ids(written, next_ids)
    return written


def _torch_weights(layer):
    """Yield the weights of a layer of either stack, in PyTorch's order."""
    attentions = [layer.attention]
    norms = [layer.around_attention.norm, layer.around_feed_forward.norm]
    if hasattr(layer, "cross_attention"):
        attentions.append(layer.cross_attention)
        norms.insert(1, layer.around_cross_attention.norm)
    for attention in attentions:
        *packed, output = layer_projections(attention)
        yield torch.cat([proj.weight for proj in packed])
        yield torch.cat([proj.bias for proj in packed])
        yield from output.parameters()
    for part in (layer.feed_forward, *norms):
        yield from part.parameters()


def to_torch_transformer(model):
    """Return nn.Transformer with the weights of our Transformer."""
    first, dtype = model.decoder.layers[0], model.embedding.weight.dtype
    d_ff, d_model = first.feed_forward.widen.weight.shape
    sizes = len(model.encoder.layers), len(model.decoder.layers), d_ff
    with warnings.catch_warnings(record=True):  # of the fast path
        library = nn.Transformer(
            d_model,
            first.attention.num_heads,
            *sizes,
            dropout=0.0,
            batch_first=True,
            norm_first=first.around_attention.norm_first,
            layer_norm_eps=first.around_attention.norm.epsilon,
        ).to(dtype)
    weights = []
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers:
            weights += _torch_weights(layer)
        weights += stack.norm.parameters()
    for theirs, ours in zip(library.parameters(), weights, strict=True):
        theirs.data.copy_(ours)
    return library


def write_names(model, count, max_len=20, seed=0):
    """Return the rows of ids (B, T) of names that a model writes.

    model: from ids (B, T) to logits (B, T, N). A row begins with a dot, id 0;
    each letter is drawn by its probability; zeros follow the end.
    """
    points = np.random.default_rng(seed).random((count, max_len))
    written = np.zeros((count, 1), dtype=np.int64)  # (B, 1)
    with evaluating(model):
        for point in points.T:  # it falls into the slice of a letter
            logits = model(torch.tensor(written))[:, -1]  # (B, N)
            shares = logits.softmax(dim=-1).numpy()  # (B, N)
            next_ids = (shares.cumsum(axis=-1) < point[:, None]).sum(axis=-1)
            next_ids = next_ids.clip(max=shares.shape[1] - 1)  # (B,)
            next_ids[(written[:, 1:] == 0).any(axis=1)] = 0  # it has ended
            written = np.append(written, next_ids[:, None], axis=1)
    return written
