"""Answers that the banks of mistakes do not know: wrong and right ones.

They are written from the statements alone, as a student would, by somebody
who had not read the exercises' modules. A new exercise gets a few here.
"""

import importlib
import math
from functools import partial

import numpy as np
import pytest

TAU = 2 * math.pi


def softmax(x, axis=-1):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def speeds(d):
    return 10000.0 ** (-np.arange(0, d, 2) / d)


def turned_by(here, there, ks):
    z, goal = (x[1::2] + 1j * x[::2] for x in (here, there))
    turns = np.exp(1j * np.array(ks)[:, None] * speeds(len(here)))
    return ks[np.abs(z * turns - goal).sum(1).argmin()]


def attention(q, k, v, width=None, axis=-1):
    root = math.sqrt(width or q.shape[-1])
    return softmax(q @ k.swapaxes(-2, -1) / root, axis) @ v


def by_torch(*given):
    import torch

    query, key, value = map(torch.from_numpy, given[:3])
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(query, key, value)


def query_blocks(query, key, value, block):
    rows = np.split(query, range(block, len(query), block))
    return np.vstack([attention(row, key, value) for row in rows])


def filled(scores, mask, low):
    return softmax(np.where(mask, scores, low))


def greedy(model, start, end, most, row=-1):
    ids = [start]
    while len(ids) <= most and ids[-1] != end:
        ids.append(int(np.argmax(model(ids)[row])))
    return ids[1:]


def rate(s, d, w, least=min):
    return d**-0.5 * least(s**-0.5, s * w**-1.5)


def turned(pair, position, turn):
    z = complex(*pair) * np.exp(1j * position * turn)
    return z.real, z.imag


def in_place(pair, position, turn):
    c, s = math.cos(position * turn), math.sin(position * turn)
    pair[0] = c * pair[0] - s * pair[1]
    pair[1] = s * pair[0] + c * pair[1]
    return pair


def step(q, k, v, keys, values, turn, turns=(1, 1, 0)):
    at = len(keys)
    q, k, v = (
        turn(x, at) if do else x
        for x, do in zip((q, k, v), turns, strict=True)
    )
    return attention(q, np.vstack([keys, k]), np.vstack([values, v]))


def top_p(logits, t, p, keep):
    probs = softmax(logits / t)
    order, kept = np.argsort(-probs), np.zeros(len(probs))
    kept[order] = keep(probs[order].cumsum(), probs[order], p)
    kept[order[0]] = 1
    return probs * kept / (probs * kept).sum()


def beams(total, width):
    return sorted(np.ndindex(total.shape), key=lambda i: -total[i])[:width]


def labelled(ids, mark, end, first=1, stop=1):
    begin = list(ids).index(mark) + first
    last = list(ids).index(end) + stop
    at = np.arange(len(ids))
    return np.where((at >= begin) & (at < last), ids, -100)


def written(keys, values, decays, betas):
    state = np.zeros((keys.shape[1], values.shape[1]))
    for k, v, g, b in zip(keys, values, decays, betas, strict=True):
        k = k / np.linalg.norm(k)
        state = np.exp(g) * state
        state = state + b * np.outer(k, v - state.T @ k)
    return state


def left(g, k=0):
    at = range(len(g))
    sums = [[g[s + 1 : t + 1].sum() for s in at] for t in at]
    return np.exp(sums) * np.tri(len(g), k=k)


WRONG = {
    # A layer
    "embedding.pad_share_of_gradient": [lambda n, t: (t - n) // t],
    "embedding.frequent_vocabulary": [lambda tokens, least: sorted({*tokens})],
    "embedding.strict_lookup": [
        lambda ids, table: table[ids],
        lambda ids, table: table[ids % len(table)],
    ],
    "embedding.table_gradient": [
        lambda ids, up, n: up.T @ np.eye(n)[ids],
        lambda ids, up, n: np.eye(ids.max() + 1)[ids].T @ up,
    ],
    "positional_encoding.wavelength": [lambda c, d: TAU * 10000 ** (c // d)],
    "positional_encoding.halves_table": [
        lambda t, d: np.cos(np.outer(range(t), speeds(2 * d)))
    ],
    "positional_encoding.token_positions": [
        lambda mask: np.arange(mask.shape[1]) - mask.argmin(1)[:, None]
    ],
    "positional_encoding.encode_positions": [
        lambda p, d: np.sin(p.astype(int)[..., None] * np.repeat(speeds(d), 2))
    ],
    "positional_encoding.balanced_table": [
        lambda n, d, pad, seed: np.eye(n, d)
    ],
    "positional_encoding.find_base": [lambda x: x[1, 2] ** (-len(x[0]) / 2)],
    "position_similarity.norm_of_mean": [lambda k, d: math.sqrt(d / 2)],
    "position_similarity.whole_rounds": [lambda t, d: int(t / TAU)],
    "position_similarity.rotation_halves": [lambda k, d: np.eye(d)],
    "position_similarity.read_offset": [
        lambda a, b: turned_by(a, b, range(-50, 50))
    ],
    "position_similarity.mean_cosine": [lambda w, n: math.cos(n * w / 2)],
    "attention.mixture_query": [lambda: [0.1 * math.log(3), 0, -5]],
    "attention.own_attention": [
        lambda q, k, v, d: attention(q, k, v, len(q)),
        lambda q, k, v, d: attention(q, k, k),
        lambda q, k, v, d: attention(q[0], k[0], v[0]),
    ],
    "attention.softmax_backward": [
        lambda p, g: p * (g - (p * g).mean(-1, keepdims=True))
    ],
    "attention.attend_in_blocks": [query_blocks],
    "multi_head_attention.parameter_count": [lambda d, h, bias: 4 * d * d * h],
    "multi_head_attention.merge_by_loop": [lambda x: np.concatenate([*x], -1)],
    "multi_head_attention.numpy_multi_head": [
        lambda q, k, v, w, b, n: attention(q @ w[0], k @ w[1], v @ w[2]) @ w[3]
    ],
    "multi_head_attention.repack": [lambda x, n: x[::-1]],
    "multi_head_attention.fold_biases": [
        lambda w, b: np.vstack([b[0], 0 * b[1:3], b[3]])
    ],
    # The Transformer
    "masks.count_pairs": [lambda n, t: n * (n + 1) // 2 + (t - n) * t],
    "masks.window_mask": [
        lambda t, w: np.tri(t, dtype=bool)[:, :w],
        lambda t, w: np.tri(t) - np.tri(t, k=-w),
    ],
    "masks.packed_mask": [lambda ids: ids[:, :, None] == ids[:, None]],
    "masks.mean_of_tokens": [
        lambda x, mask: (x * mask[..., None]).sum(1) / mask.sum(1)[:, None]
    ],
    "masks.masked_softmax": [
        lambda s, m: filled(s, m, -1e9) * m,
        lambda s, m: np.nan_to_num(filled(s, m, -np.inf) + 0 * np.exp(s)),
    ],
    "decoder.inputs_and_targets": [
        lambda rows, start, end: [
            [[start, *i] for i in rows],
            [[*i, end] for i in rows],
        ]
    ],
    "decoder.cross_mask": [
        lambda source, ids: (
            np.repeat((source != 0)[:, None], len(ids[0]), 1) * 1
        )
    ],
    "decoder.decode_one": [
        lambda f, s, e, n: greedy(f, s, e, n)[:-1],
        partial(greedy, row=slice(None)),
    ],
    "decoder.count_model": [
        lambda n, y, d, f, tied: y * (12 * d**2 + 4 * d * f) + n * d
    ],
    "training.floor_of_others": [
        lambda n, a: -(1 - a) * math.log(1 - a) - a * math.log(a)
    ],
    "training.rate_from_zero": [
        lambda s, done, d, w: rate(s + done + 1, d, w + done),
        lambda s, done, d, w: rate(max(s + 1, done), d, w),
    ],
    "training.joint_mean": [
        lambda a, x, b, y: np.append(a[x > 1], b[y > 1]).mean()
    ],
    "training.keys_of_every_second": [
        lambda m: np.arange(1, m, 2)[::-1],
        lambda m: [7, 5, 3, 1],
    ],
    "training.best_shares": [lambda m: [1 / m, 1 / math.factorial(m)]],
    "testing.name_bug": [lambda: "no causal mask"],
    "testing.is_causal": [lambda f, x: np.allclose(f(x)[:2], f(0 * x)[:2])],
    "testing.find_bug": [lambda ask: "memory detached"],
    "testing.fewest": [list],
    "practice.pads_needed": [
        lambda x: (x[-1] - x).sum(),
        lambda x: x.max() - x,
    ],
    "practice.answer_positions": [
        lambda p, a: np.arange((p + a).max()) >= p[:, None]
    ],
    "practice.joint_gradient": [lambda g, n: n @ g / n.sum() // 1],
    "practice.least_loss": [lambda c: -np.log(c.max(1) / c.sum(1)).mean()],
    # A model of today
    "rotary.turned_pair": [in_place, lambda x, p, t: turned(x, t, 1)],
    "rotary.base_of": [
        lambda c: np.round(np.arccos(c[1]) ** -float(len(c)), -3),
        lambda c: np.arccos(c[-1]) ** -float(len(c)),
    ],
    "rotary.halves_to_pairs": [
        lambda w, h: w.reshape(2, -1).T.reshape(w.shape)
    ],
    "cache.one_step": [
        partial(step, turns=(1, 0, 0)),
        partial(step, turns=(1, 1, 1)),
    ],
    "cache.tokens_that_fit": [lambda m, n, h, d, b: m / (n * h * d * b // 4)],
    "cache.in_ring": [lambda n, w: np.roll(np.arange(n - w, n), -n)],
    "tiles.joined_output": [lambda o, s: softmax(s)[:, None] * o],
    "tiles.tile_share": [
        lambda s, m, r: softmax(np.append(np.where(m, s, -1e9), r))[:-1].sum(),
        lambda s, m, r: softmax(np.append(s, r))[:-1][m].sum(),
    ],
    "tiles.sink_of": [lambda w, t: t * (1 - w.sum()) / w.sum()],
    "sampling.tempered_probs": [
        lambda x, t: np.exp(x / t - x.max()) / np.exp(x / t - x.max()).sum()
    ],
    "sampling.nucleus": [
        lambda x, t, p: top_p(x, t, p, lambda sums, q, p: sums < p),
        lambda x, t, p: top_p(x, t, p, lambda sums, q, p: q > p * q[0]),
        lambda x, t, p: top_p(x, t, 1 - p, lambda sums, q, p: sums - q < p),
    ],
    "sampling.beam_step": [lambda s, x, width: beams(s[:, None] + x, len(s))],
    "llama.llama_parameters": [lambda c: 12 * c["hidden_size"] ** 2],
    "llama.to_checkpoint": [lambda x: x.T.reshape(-1, len(x))],
    "llama.larger_base": [lambda b, f, d: b * f ** (d // (d - 2))],
    # Beyond the Llama
    "finetune.adapter_size": [lambda x, r: sum(r * (a + b) for a, b in {*x})],
    "finetune.labels_of": [labelled, partial(labelled, stop=99)],
    "finetune.mask_of": [
        lambda p: (p[:, None] >= p) & np.tri(len(p), dtype=bool)
    ],
    "finetune.folded": [
        lambda w, a, b, alpha: w + alpha // len(a) * b @ a,
        lambda w, a, b, alpha: w + alpha / len(b) * b @ a,
    ],
    "preferences.group_advantages": [
        lambda r, n: r - r.reshape(-1, n).max(-1).repeat(n),
        lambda r, n: r - (r.sum() - r) / (len(r) - 1),
    ],
    "preferences.reward_of": [lambda q, p, beta: beta * (q - p)],
    "preferences.pair_slope": [
        lambda w, x, a, b, beta: -beta / (1 + np.exp(w - a - x + b)),
    ],
    "preferences.still_pulls": [
        lambda ratio, a, clip: np.abs(ratio - 1) < clip,
        lambda ratio, a, clip: ratio < 1 + clip,
    ],
    "speculative.missing": [lambda p, q: p * (p > q) / max(1e-9, p @ (p > q))],
    "speculative.added": [
        lambda d, w, end: len(d) - sum(d != w[:-1]),
        lambda d, w, end: int((d == w[:-1]).cumprod().sum()) + 1,
    ],
    "speculative.speedup": [lambda a, k, c: (1 + a * k) / (1 + c * (k + 1))],
    "speculative.share_accepted": [lambda p, q, t: max(softmax(q / t))],
    "serving.balance": [lambda f, b, size: f * size // b],
    "serving.pages_of": [lambda p, w, size: p // size + w // size],
    "serving.read_in_all": [
        lambda prompts, size: len({i for ids in prompts for i in ids})
    ],
    "serving.steps_needed": [lambda x, places: sum(x[::places])],
    "bits.block_bytes": [lambda n, b: n * (b // 8) + n // 32 * 2],
    "bits.rounded": [lambda w, bits, group: w.round(bits)],
    "bits.unpacked": [lambda x: np.concatenate([x[2:] & 15, x[2:] >> 4]) - 8],
    "bits.undone": [lambda w, f: w * f / f.mean()],
    "parallel.loss_factor": [lambda n, rank: n[rank] * len(n) // n.sum()],
    "parallel.fused_part": [
        lambda x, h, k, rank, size: np.split(x, size)[rank]
    ],
    "parallel.bytes_held": [lambda s, n: 16 / n if s == 3 else 16],
    "parallel.loss_of_parts": [
        lambda x, t: np.logaddexp.reduce([p.max() for p in x]) - x[0][0]
    ],
    "families.windows_and_bases": [
        lambda c: [(512, 1e4)] * len(c["layer_types"])
    ],
    "families.shares_of": [
        lambda s, n, one: np.where(softmax(s) > 1 / n, softmax(s), 0)
    ],
    "families.capped_weights": [
        lambda s, c, m: filled(np.minimum(s, c), m, -np.inf),
        lambda s, c, m: filled(c * np.tanh(s / c), m, 0),
    ],
    "linear_attention.write_all": [written],
    "linear_attention.what_is_left": [partial(left, k=-1)],
    "linear_attention.read_chunk": [
        lambda q, k, v, g, state: left(g) * (q @ k.T) @ v + q @ state
    ],
    "linear_attention.betas_for": [lambda bits: 2 * (np.cumsum(bits) % 2)],
    "mixture_of_experts.bytes_read": [
        lambda e, k, n, size, rest: e * (1 - (k / e) ** n) * size + rest
    ],
    "mixture_of_experts.put_back": [
        lambda x, order, shares: x[np.argsort(order)] * shares.reshape(-1, 1)
    ],
    "mixture_of_experts.balance_of": [
        lambda s, n: s.shape[1] * (softmax(s).mean(0) ** 2).sum()
    ],
    "mixture_of_experts.shares_with_bias": [
        lambda p, b, n: (p + b) * (p + b >= np.sort(p + b)[-n]),
    ],
    "images.tokens_of": [lambda h, w, size: round(h / size * (w / size)) + 1],
    "images.joined": [lambda x, size, w: x.reshape(len(x), -1, w, 3)[:, ::-1]],
    "images.mirrored": [lambda r, c: np.arange(r * c).reshape(-1, r)[:, ::-1]],
    "images.contrast": [
        lambda x, y, s: -np.log(softmax(np.exp(s) * x @ y.T)).trace() / len(x)
    ],
}

RIGHT = {
    # A layer
    "embedding.pad_share_of_gradient": [lambda n, t: 1 - n / t],
    "attention.own_attention": [by_torch],
    "attention.softmax_backward": [
        lambda p, g: [a * (b - a @ b) for a, b in zip(p, g, strict=True)]
    ],
    # The Transformer
    "masks.window_mask": [
        lambda t, w: [[0 <= q - k < w for k in range(t)] for q in range(t)]
    ],
    "masks.count_pairs": [lambda n, t: sum(min(q + 1, n) for q in range(t))],
    "practice.joint_gradient": [lambda g, n: np.average(g, 0, n)],
    # A model of today
    "rotary.turned_pair": [turned],
    "rotary.base_of": [lambda c: np.arccos(c[-1]) ** (-1 / (1 - 1 / len(c)))],
    "cache.in_ring": [
        lambda n, w: [
            n - 1 - (n - 1 - i) % w if i < n else -1 for i in range(w)
        ]
    ],
    "sampling.beam_step": [lambda s, x, width: beams(s[:, None] + x, width)],
    # Beyond the Llama
    "finetune.folded": [
        lambda w, a, b, alpha: (
            w + np.einsum("or,ri->oi", b, a) * alpha / len(a)
        )
    ],
    "preferences.group_advantages": [
        lambda r, n: (r - r.reshape(-1, n).mean(-1).repeat(n)) * n / (n - 1)
    ],
    "preferences.still_pulls": [
        lambda ratio, a, clip: (a * (ratio - 1) < abs(a) * clip) & (a != 0)
    ],
    "speculative.share_accepted": [
        lambda p, q, t: 1 - abs(softmax(p) - softmax(q / t)).sum() / 2
    ],
    "linear_attention.what_is_left": [left],
}


def each(table):
    return pytest.mark.parametrize(
        ("name", "answer"),
        [(name, answer) for name in table for answer in table[name]],
    )


def verdict_of(name, answer):
    """Return what a check says, without the number and the full stop."""
    chapter, exercise = name.split(".")
    module = importlib.import_module(f"cellbycell.exercises.{chapter}")
    check = getattr(module, f"check_{exercise}")
    start, verdict = f"Exercise {check.number}: ", check(answer)
    assert verdict.startswith(start) and verdict.endswith(".")
    assert "\n" not in verdict
    return verdict.removeprefix(start).removesuffix(".")


@each(WRONG)
def test_a_wrong_answer_is_not_correct(name, answer):
    assert verdict_of(name, answer) not in ("correct", "not attempted yet")


@each(RIGHT)
def test_a_right_answer_is_correct(name, answer):
    assert verdict_of(name, answer) == "correct"
