"""The moving pictures of *Look inside a real model*."""

import json
from html import escape
from pathlib import Path

from .evening import visible
from .moving import show_states
from .parts import table_cell, table_head

__all__ = ["FILE", "TEXT", "show_early", "show_heads"]
# What SmolLM2 computes for these pictures: `python -m benchmarks.inside`.
FILE = Path(__file__).parent.parent / "data" / "inside.json"
TEXT = " red apple old stone red apple old stone"


def _stored():
    return json.loads(FILE.read_text("utf-8"))


def show_early():
    """Return what SmolLM2 would say after each of its layers.

    Returns
    -------
    IPython.display.HTML
        The likeliest words and the rank of the answer, by prompt and layer.
    """
    prompts = _stored()["early"]

    def state(prompt, layer):
        given = prompts[int(prompt)]
        step = given["layers"][int(layer)]
        shown = {"text": f"{given['prompt']} …"}
        for r, (word, share) in enumerate(
            zip(step["words"], step["shares"], strict=True)
        ):
            shown[f"word-{r}"] = visible(word) or "�"
            shown[f"share-{r}"] = f"{share:.0%}", share
        rank, answer = step["rank"], given["answer"].strip()
        if rank == 1:
            said = f"After {layer} layers: {answer} comes first."
        elif rank < 20:
            said = f"After {layer} layers, {answer} has the rank {rank}."
        else:  # the last digits depend on the processor's rounding
            about = f"{float(f'{rank - 1:.1g}'):,.0f}"
            said = f"After {layer} layers, about {about} are before {answer}."
        return said, shown

    def draw(parts):
        rows = f'<p data-part="text">{escape(parts["text"])}</p><table>'
        rows += '<tr><th class="head">next token<th>probability'
        for r in range(len(prompts[0]["layers"][0]["words"])):
            word = escape(parts[f"word-{r}"])
            rows += "<tr>" + table_head(f"word-{r}", word)
            rows += table_cell(f"share-{r}", *parts[f"share-{r}"])
        return rows + "</table>"

    names = [given["prompt"] for given in prompts]
    last = len(prompts[0]["layers"]) - 1
    controls = [
        {"label": "the words", "name": "prompt", "type": "radio"}
        | {"choices": names, "chosen": [0]},
        {"label": "layers", "name": "layer", "type": "range", "min": 0}
        | {"max": last, "value": 10, "play": True},
    ]
    return show_states("early", controls, state, draw)


def show_heads():
    """Return where each head of SmolLM2 looks in a text that repeats itself.

    Returns
    -------
    IPython.display.HTML
        A map for each layer and head.
    """
    stored = _stored()
    tokens = [token.strip() for token in stored["tokens"]]
    count = len(tokens)
    half = count // 2
    places = {
        half - 1: "what came after them",
        half: "themselves, the first time",
        0: "themselves",
        1: "the token before",
    }
    habits = "the first token", *places.values()

    def state(layer, head):
        weights = iter(stored["weights"][int(layer)][int(head)])
        shown, sums = {}, dict.fromkeys(habits, 0)
        for t in range(count):
            for s in range(t + 1):
                percent = next(weights)
                text = f"{percent}" if percent > 9 else ""
                shown[f"cell-{t}-{s}"] = text, percent / 100
                if t > count // 2 and (s == 0 or t - s in places):
                    where = "the first token" if s == 0 else places[t - s]
                    sums[where] += percent
        where = max(sums, key=sums.get)
        said = f"Layer {layer}, head {head}, when words come again: mostly on "
        return f"{said}{where}.", shown

    def draw(parts):
        rows = '<tr><td style="width:16%">'
        rows += "".join(f"<td>{escape(x)[:3]}" for x in tokens)
        for t, token in enumerate(tokens):
            rows += f'<tr><th class="head">{escape(token)}'
            for s in range(count):
                if s <= t:
                    rows += table_cell(
                        f"cell-{t}-{s}", *parts[f"cell-{t}-{s}"]
                    )
                else:
                    rows += "<td>"
        return f"<table>{rows}</table>"

    controls = [
        {"label": "layer", "name": "layer", "type": "range", "min": 0}
        | {"max": len(stored["weights"]) - 1, "value": 18},
        {"label": "head", "name": "head", "type": "range", "min": 0}
        | {"max": len(stored["weights"][0]) - 1, "value": 6},
    ]
    return show_states("heads", controls, state, draw)
