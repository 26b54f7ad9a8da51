"""Pictures of the small Llama at work: where it looks, and what it writes."""

import numpy as np

from ..names import LETTERS
from .moving import read, show_figure
from .names_model import model_script, pack, read_name, stored
from .parts import svg_image, svg_texts, table_cell, table_head

__all__ = ["show_look", "show_write"]
_COLUMNS = 13  # the dot and twelve letters, for the width of a phone
_LONGEST = 20
_SIGNS = [{" ": "␣"}.get(letter, letter) for letter in LETTERS]
_WORDS = [{".": "the end", " ": "a space"}.get(x, x) for x in LETTERS]
_STYLE = (
    "<style>.moving.moving legend{width:auto}"
    ".moving.moving .wide{text-align:left;padding-top:8px}</style>"
)


def show_look(model=None, name: str = "moldavia"):
    """Return a picture of a Llama that reads a name.

    It shows the loss of each letter, where each head looks, and the next
    letter. The reader can switch heads and positions off.

    Parameters
    ----------
    model
        A Llama or a LlamaTF that has learned names; None for the stored one.
    name
        The first name, of at most twelve letters.

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
    packed = pack(model) if model is not None else stored()
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


def show_write(name: str = "san"):
    """Return a picture of eight names that the stored Llama writes.

    Parameters
    ----------
    name
        The first beginning of the names, of at most 18 letters.

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
    probs = _softmax(read_name(name)[0])[-1]
    drawing = _drawing(
        "Thirty bars, the probabilities of letters, and of the kept ones",
        f"<path data-part='all' d='{_bars(probs, 10)}' "
        "style='fill:#b0b0b0'/>"
        f"<path data-part='kept' d='{_bars(probs, 6, 2)}' ",
    )
    controls = [
        dict(label="beginning", name="name", type="text", value=name)
        | dict(maxLength=_LONGEST - 2, size=14)
    ]
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
        f"{_STYLE}{drawing}<table>{rows}</table>",
        f"After “{name}”, 30 of 30 letters are kept, with 1.00 of the "
        "probability.",
        {"longest": _LONGEST},
        read("write.js"),
        model_script(),
    )


def uniforms(seed):
    """Yield numbers from 0 to 1, as the generator mulberry32 in the page."""
    state = seed
    while True:
        state = (state + 0x6D2B79F5) % 2**32
        x = (state ^ state >> 15) * (state | 1) % 2**32
        x ^= (x + (x ^ x >> 7) * (x | 61)) % 2**32
        yield (x ^ x >> 14) / 2**32


def _written(name, draw=1):
    """Return the first eight names that write.js shows."""
    numbers, names = uniforms(draw), []
    for _ in range(8):
        text = name
        while len(text) < _LONGEST:
            draws = [next(numbers) + 2**-33 for _ in LETTERS]
            noise = -np.log(-np.log(draws))
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
