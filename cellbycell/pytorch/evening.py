"""One evening: its pytorch part, for what comes after it.

Built and explained in the chapter *One evening* of the book.
Written by `make package`: change it in the chapter.
"""

import torch
import torch.nn.functional as F
from torch import nn


def turn(x, positions, base):
    """Turn pairs of columns of x (..., T, K) by their positions (T,)."""
    d_head = x.shape[-1]
    speeds = base ** -(torch.arange(0, d_head, 2) / d_head)
    angles = positions[:, None] * speeds
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = [a * cos - b * sin, a * sin + b * cos]
    return torch.stack(pairs, -1).flatten(-2)  # (..., T, K)


class Block(nn.Module):
    """Attention, then a gated network; what each finds is added to x."""

    def __init__(self, d_model, num_heads, key_heads, d_ff, base):
        super().__init__()
        self.num_heads, self.key_heads, self.base = num_heads, key_heads, base
        narrow = d_model // num_heads * key_heads
        self.attn_norm = nn.RMSNorm(d_model, eps=1e-5)
        self.attn_q = nn.Linear(d_model, d_model, bias=False)
        self.attn_k = nn.Linear(d_model, narrow, bias=False)
        self.attn_v = nn.Linear(d_model, narrow, bias=False)
        self.attn_output = nn.Linear(d_model, d_model, bias=False)
        self.ffn_norm = nn.RMSNorm(d_model, eps=1e-5)
        self.ffn_gate = nn.Linear(d_model, d_ff, bias=False)
        self.ffn_up = nn.Linear(d_model, d_ff, bias=False)
        self.ffn_down = nn.Linear(d_ff, d_model, bias=False)

    def split(self, x, count):
        return x.unflatten(-1, (count, -1)).transpose(1, 2)  # (B, C, T, K)

    def share(self, x):
        return x.repeat_interleave(self.num_heads // self.key_heads, 1)

    def turn(self, x, positions):
        return turn(x, positions, self.base)

    def mask(self, positions, slots):
        return slots <= positions[:, None]  # (T, S)

    def attend(self, x, past):
        start = past[0].shape[2] if past else 0
        slots = torch.arange(start + x.shape[1])  # (S,)
        positions = slots[start:]  # (T,)
        q = self.turn(self.split(self.attn_q(x), self.num_heads), positions)
        k = self.turn(self.split(self.attn_k(x), self.key_heads), positions)
        v = self.split(self.attn_v(x), self.key_heads)
        if past:
            k = torch.cat([past[0], k], 2)  # (B, C, S, K)
            v = torch.cat([past[1], v], 2)  # (B, C, S, K)
        scores = q @ self.share(k).mT / q.shape[-1] ** 0.5  # (B, H, T, S)
        mask = self.mask(positions, slots)
        weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
        found = weights @ self.share(v)  # (B, H, T, K)
        found = found.transpose(1, 2).flatten(-2)  # (B, T, D)
        return self.attn_output(found), (k, v)

    def forward(self, x, past=None):
        found, past = self.attend(self.attn_norm(x), past)
        x = x + found
        y = self.ffn_norm(x)
        y = F.silu(self.ffn_gate(y)) * self.ffn_up(y)  # (B, T, F)
        return x + self.ffn_down(y), past


class Model(nn.Module):
    """Return the logits of each next token, (B, T, N), and what to keep."""

    def __init__(self, vocab_size, num_layers, d_model, *sizes):
        super().__init__()
        self.token_embd = nn.Embedding(vocab_size, d_model)
        self.blk = nn.ModuleList(
            Block(d_model, *sizes) for _ in range(num_layers)
        )
        self.output_norm = nn.RMSNorm(d_model, eps=1e-5)

    def forward(self, ids, past=None):
        x, kept = self.token_embd(ids), []
        for i, block in enumerate(self.blk):
            x, one = block(x, past[i] if past else None)
            kept.append(one)
        return self.output_norm(x) @ self.token_embd.weight.T, kept
