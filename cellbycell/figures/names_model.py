"""A small Llama that runs in the reader's page, with pictures of its work.

The book's small Llama has learned names (`cellbycell.names`). Its weights are
stored in `data/llama.json`, in eight bits; `model.js` is the same model
in JavaScript, and `names_pictures` draws with it. This module
needs no framework.
"""

import base64
import json
from functools import cache
from pathlib import Path

import numpy as np

from ..checkpoint import llama_shapes
from ..common import LlamaConfig, llama_parts
from ..names import encode_names
from .moving import read

__all__ = [
    "model_script",
    "pack",
    "read_name",
    "stored_config",
    "stored_weights",
]
FILE = Path(__file__).parents[1] / "data" / "llama.json"


def stored_config() -> LlamaConfig:
    """Return the sizes of the stored Llama.

    Returns
    -------
    LlamaConfig
        Two layers of width 48.
    """
    return LlamaConfig(**stored()["sizes"])


def stored_weights() -> dict[str, np.ndarray]:
    """Return the weights of the stored Llama.

    `python -m benchmarks.names llama` trains them on names and rounds them to
    eight bits.

    Returns
    -------
    dict of str to numpy.ndarray
        Each tensor by its name in a checkpoint, in float32; a matrix is
        (out, in), as in PyTorch.
    """
    return _unpacked(stored())


def read_name(
    name: str, packed=None, off=(), rotary=True, sees=None
) -> tuple[np.ndarray, np.ndarray]:
    """Return what a Llama predicts after each letter of a name.

    Parameters
    ----------
    name
        Letters of `cellbycell.names.LETTERS`, without the dot before them.
    packed
        The result of `pack`; None for the stored model.
    off
        Pairs (layer, head) of heads that are switched off.
    rotary
        False switches the positions off.
    sees
        How many of the last letters a position sees; None for all.

    Returns
    -------
    logits : numpy.ndarray
        The logits of the next letter, (T, N), in float64.
    looks : numpy.ndarray
        The attention weights, (L, H, T, T).

    Raises
    ------
    ValueError
        The name has a character that is no letter.
    """
    packed = packed or stored()
    config = LlamaConfig(**packed["sizes"])
    groups = config.num_heads // config.key_heads
    (ids,) = encode_names([name], len(name) + 2) if name else [[0, 0]]
    ids = ids[:-1]
    weights = {n: w.astype(float) for n, w in _unpacked(packed).items()}
    t = np.arange(len(ids))
    ages = t[:, None] - t  # (T, T)
    seen = (ages >= 0) & (ages < (sees or len(ids)))  # (T, T)
    half = config.d_head // 2
    speeds = config.base ** (-np.arange(half) / half) * rotary
    turns = np.exp(1j * t[:, None] * speeds)  # (T, K / 2)

    def normed(x, scale):
        square = (x**2).mean(-1, keepdims=True)
        return x / np.sqrt(square + config.epsilon) * scale

    def split(x):  # (T, H K) to (H, T, K)
        return x.reshape(len(ids), -1, config.d_head).swapaxes(0, 1)

    def turned(x):
        pairs = (x[..., :half] + 1j * x[..., half:]) * turns
        return np.concatenate([pairs.real, pairs.imag], -1)

    x, looks = weights["model.embed_tokens.weight"][ids], []
    for layer in range(config.num_layers):
        start = f"model.layers.{layer}."

        def of(part, start=start):
            return weights[f"{start}{part}.weight"].T

        y = normed(x, of("input_layernorm"))
        query = turned(split(y @ of("self_attn.q_proj")))
        key = turned(split(y @ of("self_attn.k_proj"))).repeat(groups, 0)
        value = split(y @ of("self_attn.v_proj")).repeat(groups, 0)
        scores = query @ key.swapaxes(1, 2) / np.sqrt(config.d_head)
        scores = np.where(seen, scores, -np.inf)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        looks.append(powers / powers.sum(-1, keepdims=True))  # (H, T, T)
        found = looks[-1] @ value  # (H, T, K)
        found[[head for at, head in off if at == layer]] = 0
        found = found.swapaxes(0, 1).reshape(len(ids), -1)
        x = x + found @ of("self_attn.o_proj")
        y = normed(x, of("post_attention_layernorm"))
        gate = y @ of("mlp.gate_proj")
        gate = gate / (1 + np.exp(-gate)) * (y @ of("mlp.up_proj"))
        x = x + gate @ of("mlp.down_proj")
    x = normed(x, weights["model.norm.weight"])
    return x @ weights["lm_head.weight"].T, np.stack(looks)


def letter_losses(name: str, **parts) -> list[float]:
    """Return the loss of each letter of a name, its end included.

    parts: as `read_name` takes them.
    """
    logits, letters = read_name(name, **parts)[0], encode_names([name])[0, 1:]
    largest = logits.max(-1, keepdims=True)
    total = largest[:, 0] + np.log(np.exp(logits - largest).sum(-1))
    return (total - logits[np.arange(len(letters)), letters]).tolist()


def pack(model) -> dict:
    """Return the weights of a Llama as text, rounded to eight bits.

    Each row is divided by a 127th of its largest entry and rounded.

    Parameters
    ----------
    model
        A Llama or a LlamaTF of the book that reads names.

    Returns
    -------
    dict
        The sizes, and the weights in base64: all rows in int8, then the
        factor of each row in float16.

    Raises
    ------
    ValueError
        The model does not read names, or differs from the stored model in
        more than sizes.
    """
    parts = llama_parts(model)
    tensors = {name: _tensor(part) for name, part in parts.items()}
    attention = model.layers[0].attention
    vocab_size, d_model = tensors["model.embed_tokens.weight"].shape
    wide = len(tensors["model.layers.0.self_attn.q_proj.weight"])
    sizes = {
        "vocab_size": vocab_size,
        "num_layers": len(model.layers),
        "d_model": d_model,
        "num_heads": attention.num_heads,
        "key_heads": attention.key_heads,
        "d_head": wide // attention.num_heads,
        "d_ff": len(tensors["model.layers.0.mlp.gate_proj.weight"]),
    }
    plain = LlamaConfig(**sizes)
    own = vocab_size, attention.base, model.norm.epsilon, model.tied
    wanted = 30, plain.base, plain.epsilon, plain.tied
    if own != wanted:
        names = "vocab_size", "base", "epsilon", "tied"
        wrong = [
            f"{name}={found!r} instead of {right!r}"
            for name, found, right in zip(names, own, wanted, strict=True)
            if found != right
        ]
        raise ValueError(
            f"this Llama has {', '.join(wrong)}: the picture shows models of "
            "names that differ in their sizes only."
        )
    numbers, factors = zip(*map(_rounded, tensors.values()), strict=True)
    data = b"".join(part.tobytes() for part in (*numbers, *factors))
    return {"sizes": sizes, "weights": base64.b64encode(data).decode()}


def model_script(packed=None) -> str:
    """Return the model as a script that sets the page's `namesModel`.

    Parameters
    ----------
    packed
        The result of `pack`; None for the stored model.

    Returns
    -------
    str
        JavaScript, with the weights.
    """
    packed = packed or stored()
    given = {name: packed[name] for name in ("sizes", "weights")}
    return f"window.namesModel = ({read('model.js')})({json.dumps(given)});"


def _tensor(part) -> np.ndarray:
    """Return the only weight of a part, in the layout of PyTorch."""
    if hasattr(part, "parameters"):
        (weight,) = part.parameters()
        return weight.detach().cpu().numpy().astype(np.float32)
    (weight,) = part.trainable_variables
    values = np.asarray(weight, np.float32)
    return values if "embeddings" in weight.name else values.T


def _rounded(tensor):
    """Return rows in int8 (R, C), and their factors in float16 (R,)."""
    rows = tensor.reshape(-1, tensor.shape[-1])
    factors = (np.abs(rows).max(axis=1) / 127).astype("<f2")
    safe = np.where(factors == 0, 1, factors).astype(np.float32)
    numbers = np.rint(rows / safe[:, None]).clip(-127, 127)
    return numbers.astype("i1"), factors


def _unpacked(packed) -> dict[str, np.ndarray]:
    """Return the weights in the result of `pack`, by name, in float32."""
    shapes = llama_shapes(LlamaConfig(**packed["sizes"]))
    data = base64.b64decode(packed["weights"])
    count = sum(int(np.prod(shape)) for shape in shapes.values())
    numbers = np.frombuffer(data[:count], "i1").astype(np.float32)
    factors = np.frombuffer(data[count:], "<f2").astype(np.float32)
    found = {}
    for name, shape in shapes.items():
        size, rows = int(np.prod(shape)), int(np.prod(shape[:-1]))
        part = numbers[:size].reshape(rows, -1) * factors[:rows, None]
        found[name] = part.reshape(shape)
        numbers, factors = numbers[size:], factors[rows:]
    return found


@cache
def stored() -> dict:
    """Return the contents of the file."""
    return json.loads(FILE.read_text("utf-8"))
