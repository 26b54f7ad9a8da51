"""A small Llama that runs in the reader's page, with pictures of its work.

The book's small Llama has learned names (`cellbycell.names`). Its weights are
stored in `data/llama.json`, in eight bits; `model.js` is the same model
in JavaScript, and `look.js` and `write.js` draw the pictures. This module
needs no framework.
"""

import base64
import json
from functools import cache
from pathlib import Path

import numpy as np

from ..checkpoint import llama_shapes
from ..common import LlamaConfig, llama_parts
from ..names import LETTERS, encode_names
from .moving import read, show_figure
from .parts import svg_image, svg_texts, table_cell, table_head

__all__ = [
    "model_script",
    "pack",
    "read_name",
    "show_look",
    "show_write",
    "stored_config",
    "stored_weights",
]
FILE = Path(__file__).parents[1] / "data" / "llama.json"
_COLUMNS = 11  # the dot and ten letters, for the width of a phone
_LONGEST = 20
_SIGNS = [{" ": "␣"}.get(letter, letter) for letter in LETTERS]
_WORDS = [{".": "the end", " ": "a space"}.get(x, x) for x in LETTERS]
_STYLE = (
    "<style>.moving.moving legend{width:auto}"
    ".moving.moving .wide{text-align:left;padding-top:8px}</style>"
)


def stored_config() -> LlamaConfig:
    """Return the sizes of the stored Llama.

    Returns
    -------
    LlamaConfig
        Two layers of width 48.
    """
    return LlamaConfig(**_stored()["sizes"])


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
    return _unpacked(_stored())


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
    packed = packed or _stored()
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
    packed = packed or _stored()
    given = {name: packed[name] for name in ("sizes", "weights")}
    return f"window.namesModel = ({read('model.js')})({json.dumps(given)});"


def show_look(model=None, name: str = "moldavia"):
    """Return a picture of a Llama that reads a name.

    It shows the loss of each letter, where each head looks, and the next
    letter. The reader can switch heads and positions off.

    Parameters
    ----------
    model
        A Llama or a LlamaTF that has learned names; None for the stored one.
    name
        The first name, of at most ten letters.

    Returns
    -------
    IPython.display.HTML
        The picture, for a notebook.

    Raises
    ------
    ValueError
        As in pack and read_name, or the name is too long.
    """
    if not 0 < len(name) < _COLUMNS:
        raise ValueError(f"{name!r} should have 1 to {_COLUMNS - 1} letters.")
    packed = pack(model) if model is not None else _stored()
    logits, looks = read_name(name, packed)
    probs = _softmax(logits)  # (T, N)
    last = len(name)
    losses = [
        -np.log(row[LETTERS.index(letter)])
        for row, letter in zip(probs, name, strict=False)
    ]
    signs = [_SIGNS[LETTERS.index(letter)] for letter in f".{name}"]
    rows = "<tr><td style='width:16%'></td>"
    for s in range(_COLUMNS):
        bold = " style='font-weight:700'" if s == last else ""
        sign = signs[s] if s <= last else ""
        rows += f"<td data-part='letter-{s}'{bold}>{sign}</td>"
    texts = [f"{loss:.1f}" for loss in losses]
    shares = [min(loss / 6, 1) for loss in losses]
    rows += _row("loss", "loss", ["", *texts], [None, *shares])
    rows += _row("less", "parts off", [], []).replace("<tr", "<tr hidden", 1)
    for layer, heads in enumerate(looks):
        start = "The" if layer else f"After “{name}”, the"
        words = f"{start} heads of layer {layer} look at"
        part = "" if layer else " data-part='begun'"
        rows += f"<tr><td class='wide' colspan='{_COLUMNS + 1}'{part}>{words}"
        for head, look in enumerate(heads[:, -1]):
            texts = [_short(weight) for weight in look]
            rows += _row(f"{layer}-{head}", f"head {head}", texts, look)
    best = probs[-1].argsort()[::-1][:3]
    first, second, third = (f"{_WORDS[n]} ({probs[-1, n]:.2f})" for n in best)
    controls = [
        dict(label="name", name="name", type="text", value=name)
        | dict(maxLength=_COLUMNS - 1, size=14),
        dict(label="after letter", name="query", type="range")
        | dict(min=0, max=last, value=last),
        *(
            dict(label=f"heads of layer {layer}", name=f"layer{layer}")
            | dict(type="checkbox", chosen=list(range(len(heads))))
            | dict(choices=[str(head) for head in range(len(heads))])
            for layer, heads in enumerate(looks)
        ),
        dict(label="rotary positions", name="rotary", type="checkbox")
        | dict(choices=["on"], chosen=[0]),
        dict(label="letters in sight", name="sees", type="range")
        | dict(min=1, max=_COLUMNS, value=_COLUMNS),
    ]
    bars = f"<path data-part='next' d='{_bars(probs[-1], 9)}' "
    return show_figure(
        "look",
        controls,
        f"{_STYLE}<table>{rows}</table>"
        + _drawing("Thirty bars, the probability of each next letter", bars),
        f"After “{name}”, the model expects {first}, {second} or {third}. The "
        f"mean loss of the letters is {np.mean(losses):.2f}.",
        {"columns": _COLUMNS, "signs": _SIGNS, "words": _WORDS},
        read("look.js"),
        model_script(packed),
    )


def show_write(name: str = "san", sliders: bool = True):
    """Return a picture of eight names that the stored Llama writes.

    Parameters
    ----------
    name
        The first beginning of the names, of at most 18 letters.
    sliders
        False leaves out the sliders for temperature and so on.

    Returns
    -------
    IPython.display.HTML
        The picture, for a notebook.

    Raises
    ------
    ValueError
        As in read_name.
    """
    rows = ""
    for i, text in enumerate(_written(name)):
        rows += "" if i % 2 else "<tr>"
        rows += f"<td data-part='name-{i}' class='head'>{text}"
    picture = f"<table>{rows}</table>"
    said = f"Eight names that begin with “{name}”."
    controls = [
        dict(label="beginning", name="name", type="text", value=name)
        | dict(maxLength=_LONGEST - 2, size=14)
    ]
    if sliders:
        probs = _softmax(read_name(name)[0])[-1]
        drawing = _drawing(
            "Thirty bars, the probabilities of letters, and of the kept ones",
            f"<path data-part='all' d='{_bars(probs, 10)}' "
            "style='fill:#b0b0b0'/>"
            f"<path data-part='kept' d='{_bars(probs, 6, 2)}' ",
        )
        picture = drawing + picture
        said = f"After “{name}”, 30 of 30 letters are kept, with 1.00 of the "
        said += "probability."
        controls += [
            dict(name=part, label=label, type="range")
            | dict(min=low, max=high, step=step, value=value)
            for part, label, low, high, step, value in [
                ("temperature", "temperature", 0.1, 3, 0.1, 1),
                ("k", "k", 1, 30, 1, 30),
                ("p", "p", 0, 1, 0.05, 1),
                ("least", "min-p", 0, 1, 0.05, 0),
                ("draw", "draw", 1, 50, 1, 1),
            ]
        ]
    return show_figure(
        "names",
        controls,
        _STYLE + picture,
        said,
        {"longest": _LONGEST},
        read("write.js"),
        model_script(),
    )


def _written(name, draw=1):
    """Return the first eight names that write.js shows."""
    state, names = draw, []

    def uniform():  # the generator mulberry32
        nonlocal state
        state = (state + 0x6D2B79F5) % 2**32
        x = (state ^ state >> 15) * (state | 1) % 2**32
        x ^= (x + (x ^ x >> 7) * (x | 61)) % 2**32
        return (x ^ x >> 14) / 2**32 + 2**-33

    for _ in range(8):
        text = name
        while len(text) < _LONGEST:
            noise = -np.log(-np.log([uniform() for _ in LETTERS]))
            n = (read_name(text)[0][-1] + noise).argmax()
            if n == 0:
                break
            text += LETTERS[n]
        names.append(text)
    return names


def _softmax(logits):
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _short(weight):
    """Return a weight in three characters; "" for a small one."""
    if weight < 0.095:
        return ""
    return f"{weight:.2f}"[1:] if weight < 0.995 else "1"


def _row(part, label, texts, shares):
    """Return a row of the table, blank after the last text."""
    row = "<tr>" + table_head(part, label)
    for s in range(_COLUMNS):
        given = (texts[s], shares[s]) if s < len(texts) else ("",)
        row += table_cell(f"{part}-{s}", *given)
    return row


def _bars(shares, wide, off=0):
    """Return bars as the path of a drawing."""
    return "".join(
        f"M{3 + off + 11.8 * n:.1f} 100V{100 - 90 * share:.1f}h{wide}V100z"
        for n, share in enumerate(shares)
    )


def _drawing(label, paths):
    """Return bars above the letters; sets the colour of the last path."""
    places = [round(7.5 + 11.8 * n, 1) for n in range(len(_SIGNS))]
    texts = [((x, 115), sign) for x, sign in zip(places, _SIGNS, strict=True)]
    return svg_image(
        label,
        "360 122",
        f"<path d='M2 10h356M2 55h356' stroke='#ddd'/>{paths}"
        "style='fill:#2b4c7e'/><path d='M2 100h356' stroke='#767676'/>"
        + f"<g text-anchor='middle'>{svg_texts(texts)}</g>",
    )


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
def _stored() -> dict:
    """Return the contents of the file."""
    return json.loads(FILE.read_text("utf-8"))
