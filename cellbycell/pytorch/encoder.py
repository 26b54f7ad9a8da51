"""The encoder: its pytorch part, for what comes after it.

Built and explained in the chapter *The encoder* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from cellbycell.pytorch.masks import make_causal_mask
from cellbycell.pytorch.multi_head_attention import MultiHeadAttention


def draw_weights(layer, seed, spread=0.1):
    """Initialise a layer: the same in both frameworks.

    Matrices as in Glorot and Bengio 2010; the scales of norms near 1, the
    rest near 0. Spread 0: exactly 1, and 0.
    """
    rng = np.random.default_rng(seed)
    for name, weight in layer.named_parameters():
        values = rng.standard_normal(weight.shape[::-1])
        values *= (
            math.sqrt(2 / sum(weight.shape)) if values.ndim > 1 else spread
        )
        values += values.ndim == 1 and name.endswith(("scale", "weight"))
        weight.data.copy_(torch.tensor(values.T))  # on its own device


def _widen(x):
    """Return x as floating-point numbers, and the same in float32 at least."""
    if not x.is_floating_point():
        x = x.to(torch.float32)
    return x, x.to(torch.promote_types(x.dtype, torch.float32))


def normalise(x, epsilon=1e-5):
    """Give each row of x (..., D) a mean of zero and a variance of one.

    The result has x's type; whole numbers become float32.
    Source: Ba et al. 2016, section 3.
    """
    x, wide = _widen(x)
    wide = wide - wide[..., :1]  # so that equal numbers are zeros exactly
    centred = wide - wide.mean(dim=-1, keepdim=True)  # (..., D)
    variance = centred.square().mean(dim=-1, keepdim=True)  # (..., 1)
    return (centred / torch.sqrt(variance + epsilon)).to(x.dtype)  # (..., D)


class LayerNorm(nn.Module):
    """Normalise each row of x (..., D), scale and shift each column.

    Source: Ba et al. 2016, section 3.
    """

    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.scale = nn.Parameter(torch.ones(d_model))  # (D,)
        self.shift = nn.Parameter(torch.zeros(d_model))  # (D,)

    def forward(self, x):
        return normalise(x, self.epsilon) * self.scale + self.shift


class RMSNorm(nn.Module):
    """Divide each row by its root mean square, then scale each column.

    x (..., D); result (..., D), of x's type if the scale has that type;
    whole numbers become float32.
    Source: Zhang and Sennrich 2019, section 4.
    """

    def __init__(self, d_model, epsilon=1e-6):
        super().__init__()
        self.epsilon = epsilon
        self.scale = nn.Parameter(torch.ones(d_model))  # (D,)

    def forward(self, x):
        x, wide = _widen(x)
        square = wide.square().mean(dim=-1, keepdim=True)  # (..., 1)
        fraction = wide * torch.rsqrt(square + self.epsilon)  # (..., D)
        return fraction.to(x.dtype) * self.scale


class FeedForward(nn.Module):
    """Two linear layers with a ReLU between, for each row of x (..., D).

    Source: Vaswani et al. 2017, section 3.3.
    """

    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.widen = nn.Linear(d_model, d_ff)
        self.narrow = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        hidden = self.widen(x).relu()  # (..., F)
        return self.narrow(self.dropout(hidden))  # (..., D)


class SwiGLU(nn.Module):
    """A feed-forward network with a gate, at each position alone.

    x (..., D); result (..., D).
    Source: Shazeer 2020, section 2.
    """

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        hidden = F.silu(self.gate(x)) * self.up(x)  # (..., F)
        return self.down(hidden)  # (..., D)


class AddAndNorm(nn.Module):
    """A residual connection around a sub-layer, with norm and dropout.

    x (B, T, D); result (B, T, D); sublayer keeps this shape. norm_first:
    normalise what the sub-layer reads (pre-norm), not the sum (post-norm).
    Sources: Vaswani et al. 2017, section 3.1; Xiong et al. 2020, section 3.
    """

    def __init__(self, d_model, norm_first=False, dropout=0.0):
        super().__init__()
        self.norm_first = norm_first
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, sublayer):
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each with residual and norm.

    x (B, T, D); result (B, T, D); attention_mask (T, S), (B, T, S) or
    (B, H, T, S), True = may attend. norm_first: pre-norm, not post-norm.
    Raises ValueError if num_heads does not divide d_model.
    """

    def __init__(self, d_model, num_heads, d_ff, norm_first=False, dropout=0):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.around_attention = AddAndNorm(d_model, norm_first, dropout)
        self.around_feed_forward = AddAndNorm(d_model, norm_first, dropout)

    def forward(self, x, attention_mask=None):
        x = self.around_attention(
            x, sublayer=lambda y: self.attention(y, y, y, attention_mask)
        )
        return self.around_feed_forward(x, sublayer=self.feed_forward)


class Encoder(nn.Module):
    """A stack of encoder layers, each with its own weights, and a norm.

    x (B, T, D); result (B, T, D); attention_mask as in EncoderLayer.
    Raises ValueError if num_heads does not divide d_model.
    """

    def __init__(
        self, num_layers, d_model, num_heads, d_ff, norm_first=False, dropout=0
    ):
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, num_heads, d_ff, norm_first, dropout)
            for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model)

    def forward(self, x, attention_mask=None):
        for layer in self.layers:
            x = layer(x, attention_mask)
        return self.norm(x)


class Causal(nn.Module):
    """A layer or a stack whose queries read no later position.

    x (B, T, D); result (B, T, D). encoder: takes x and an attention_mask.
    """

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, x):
        return self.encoder(x, make_causal_mask(x.shape[1]))
