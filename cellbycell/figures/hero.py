"""The first thing on the landing page: the small Llama writes a name."""

import json

import numpy as np

from ..names import LETTERS
from .moving import read
from .names_model import read_name
from .names_pictures import uniforms

__all__ = ["hero"]
TEMPERATURE = 0.6
LONGEST = 20
_HTML = """\
<div id="hero">
<p class="hero-letters" data-part="letters" aria-hidden="true">{letters}</p>
<div class="hero-heads" data-part="heads" aria-hidden="true" hidden>{heads}\
</div>
<form autocomplete="off" hidden>
<label class="hero-range"><span>after letter</span><input name="letter" \
type="range" min="0" max="{count}" value="{start}"></label>
<label>Begin a name: <input name="beginning" type="text" value="{typed}" \
maxlength="{longest}" size="14" autocapitalize="none" spellcheck="false">\
</label>
<button name="another" type="button">Write another</button>
<button name="heads" type="button" aria-expanded="false">\
Where heads look</button>
</form>
<ul class="hero-bars" data-part="bars" aria-hidden="true">{bars}</ul>
<p class="hero-said" data-part="said">{said}</p>
<p class="hero-heard" data-part="heard" aria-live="polite"></p>
</div>
<script>{script}</script>
"""


def hero(typed: str = "swi") -> str:
    """Return the picture, with one name that needs no model.

    `hero.js` moves it: letters appear one by one, and whoever types loads the
    model.

    Parameters
    ----------
    typed
        The beginning of the name.

    Returns
    -------
    str
        HTML.
    """
    name = written(typed)
    logits, looks = read_name(name)
    probs = _softmax(logits / TEMPERATURE)  # (T, N)
    looks = looks.reshape(-1, *looks.shape[2:])  # (H, T, T)
    steps = [
        {
            "probs": [round(float(share), 3) for share in probs[t]],
            "looks": [
                [round(float(w), 2) for w in h[t, : t + 1]] for h in looks
            ],
        }
        for t in range(len(name) + 1)
    ]
    example = dict(
        typed=typed, name=name, temperature=TEMPERATURE, steps=steps
    )
    letters = ""
    for i in range(LONGEST + 1):
        kind = ' class="later"' if i > len(typed) else ""
        text = f".{name}"[i : i + 1].replace(" ", "␣")
        letters += f"<b{kind}>{text}</b>"
    bars = ""
    for letter, share in zip(LETTERS, steps[len(typed)]["probs"], strict=True):
        sign = letter.replace(" ", "␣")
        bars += f'<li style="--share:{share}">{sign}</li>'
    best = probs[len(typed)].argsort()[::-1][:3]
    likely = ", ".join(
        f"{LETTERS[n]} ({probs[len(typed), n]:.2f})" for n in best
    )
    return _HTML.format(
        letters=letters,
        bars=bars,
        heads=_heads(looks),
        typed=typed,
        longest=LONGEST - 2,
        count=len(name),
        start=len(typed),
        said=f"After “{typed}”, the likeliest next: {likely}.",
        script=f"({read('hero.js')})(document.getElementById('hero'), "
        f"{json.dumps(example, separators=(',', ':'))});",
    )


def written(typed: str, draw: int = 1) -> str:
    """Return the name that the stored Llama writes.

    Parameters
    ----------
    typed
        Its beginning.
    draw
        The seed.

    Returns
    -------
    str
        At most twenty letters.
    """
    numbers = uniforms(draw)
    name = typed
    while len(name) < LONGEST:
        probs = _softmax(read_name(name)[0][-1] / TEMPERATURE)
        n = int((probs.cumsum() <= next(numbers)).sum())
        if n == 0:
            break
        name += LETTERS[n]
    return name


def _softmax(logits):
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _heads(looks):
    """Return a row of cells for each head, layer by layer."""
    rows = ""
    for head in range(len(looks)):
        layer, number = divmod(head, len(looks) // 2)
        if number == 0:
            rows += f"<p>Layer {layer}: a head a row, dark where it looks</p>"
        rows += f"<div>{'<i></i>' * (LONGEST + 1)}</div>"
    return rows
