"""Multi-head attention: its pytorch part, for what comes after it.

Built and explained in the chapter *Multi-head attention* of the book.
Written by `make package`: change it in the chapter.
"""

import torch
from torch import nn

from cellbycell.common.multi_head_attention import head_width, mask_per_head
from cellbycell.pytorch.attention import attend


def split_heads(x, num_heads):
    """Divide the width among the heads.

    x (B, T, D); result (B, H, T, K) with K = D / H.
    Raises ValueError if H does not divide D.
    """
    batch_size, seq_len, d_model = x.shape
    d_head = head_width(d_model, num_heads)
    heads = x.reshape(batch_size, seq_len, num_heads, d_head)  # (B, T, H, K)
    return heads.transpose(1, 2)  # (B, H, T, K)


def merge_heads(heads):
    """Put the heads side by side, the inverse of split_heads.

    heads (B, H, T, K); result (B, T, D) with D = H K.
    """
    return heads.transpose(1, 2).flatten(2)  # (B, T, H * K)


class MultiHeadAttention(nn.Module):
    """Multi-head attention: return the output, and weights on request.

    query (B, T, D), key and value (B, S, D); attention_mask (T, S),
    (B, T, S) or (B, H, T, S), True = may attend. The output is (B, T, D),
    the weights, if need_weights, are (B, H, T, S), from before the dropout.
    Raises ValueError if num_heads does not divide d_model.
    Source: Vaswani et al. 2017, section 3.2.2.
    """

    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.d_head = head_width(d_model, num_heads)
        self.query_proj = nn.Linear(d_model, d_model)
        self.key_proj = nn.Linear(d_model, d_model)
        self.value_proj = nn.Linear(d_model, d_model)
        self.output_proj = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, query, key, value, attention_mask=None, need_weights=False
    ):
        query = split_heads(self.query_proj(query), self.num_heads)
        key = split_heads(self.key_proj(key), self.num_heads)
        value = split_heads(self.value_proj(value), self.num_heads)
        mask = mask_per_head(attention_mask)
        output, weights = attend(query, key, value, mask, self.dropout)
        output = self.output_proj(merge_heads(output))  # (B, T, D)
        return (output, weights) if need_weights else output


class SelfAttention(nn.Module):
    """Add to each vector what it reads from its sequence.

    x (B, T, D); result (B, T, D). causal: a query reads the keys up to its
    own position, and no later ones.
    """

    def __init__(self, attention, causal=True):
        super().__init__()
        self.attention, self.causal = attention, causal

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)  # (T, T)
        mask = mask.tril() if self.causal else mask
        return x + self.attention(x, x, x, mask)
