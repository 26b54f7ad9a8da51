"""The moving pictures of *One evening*."""

from html import escape

import numpy as np

from .moving import show_states
from .parts import svg_image, svg_texts, table_cell, table_head


def visible(token):
    """Return a token so that its spaces and line ends are seen."""
    return token.replace(" ", "␣").replace("\n", "⏎")


def show_talk(question, said):
    """Return an answer that the reader walks through, token by token.

    Parameters
    ----------
    question
        What was asked.
    said
        What `cellbycell.smol.talk` returns.

    Returns
    -------
    IPython.display.HTML
        The text so far, and the five likeliest next tokens.
    """

    def state(token):
        i = token - 1
        written = "".join(text for text, _ in said[:i])
        shown = {"answer": f"{question} {written}"}
        for r, (text, share) in enumerate(said[i][1].items()):
            shown[f"token-{r}"] = visible(text)
            shown[f"share-{r}"] = f"{share:.0%}", round(share, 3)
        first = visible(said[i][0])
        words = f"Token {token}: {first} is the likeliest, and is appended."
        return words, shown

    def draw(parts):
        rows = f'<p data-part="answer">{escape(parts["answer"])}</p><table>'
        rows += '<tr><th class="head">next token<th>probability'
        for r in range(5):
            text = escape(parts[f"token-{r}"])
            rows += "<tr>" + table_head(f"token-{r}", text)
            rows += table_cell(f"share-{r}", *parts[f"share-{r}"])
        return rows + "</table>"

    steps = {"type": "range", "min": 1, "max": len(said), "value": 1}
    control = {"label": "token", "name": "token"} | steps | {"play": True}
    return show_states("talk", [control], state, draw)


def show_one_query(letters, query, key, value):
    """Return one letter's way through attention, with each of its numbers.

    Parameters
    ----------
    letters
        The T letters.
    query, key, value
        (T, 2) each.

    Returns
    -------
    IPython.display.HTML
        Scores, weights and the output of the letter that is chosen.
    """

    def pair(numbers):
        return ", ".join(f"{x:.1f}".replace("-", "−") for x in numbers)

    def state(letter):
        t = int(letter)
        scores = key[: t + 1] @ query[t] / np.sqrt(2)
        weights = np.exp(scores) / np.exp(scores).sum()
        output = weights @ value[: t + 1]
        shown = {}
        for s in range(len(letters)):
            sees = s <= t
            shown[f"score-{s}"] = f"{scores[s]:.2f}" if sees else "blocked"
            share = round(float(weights[s]), 3) if sees else None
            shown[f"weight-{s}"] = f"{share or 0:.2f}", share
            part = weights[s] * value[s] if sees else np.zeros(2)
            shown[f"part-{s}"] = pair(part)
        shown["output"] = pair(output)
        said = (
            f"{letters[t]} asks with ({pair(query[t])}), and takes "
            f"({pair(output)}) home."
        )
        return said.replace("-", "−"), shown

    def draw(parts):
        heads = "key", "score", "weight", "value", "weight × value"
        rows = '<tr><th class="head" style="width:12%">letter'
        rows += "".join(f"<th>{head}" for head in heads)
        for s, letter in enumerate(letters):
            rows += f'<tr><th class="head">{letter}<td>{pair(key[s])}'
            rows += table_cell(f"score-{s}", parts[f"score-{s}"])
            rows += table_cell(f"weight-{s}", *parts[f"weight-{s}"])
            rows += f"<td>{pair(value[s])}"
            rows += table_cell(f"part-{s}", parts[f"part-{s}"])
        rows += '<tr><th class="head" colspan=5>the sum: its output'
        return f"<table>{rows}{table_cell('output', parts['output'])}</table>"

    choices = {"choices": list(letters), "chosen": [len(letters) - 1]}
    control = {"label": "who asks", "name": "letter", "type": "radio"}
    return show_states("one-query", [control | choices], state, draw)


# Each part of the model: its name in the code, its place, what it does.
PARTS = {
    "token_embd": (
        (115, 8, 130),
        "A row of numbers for each token. The last step uses the same rows "
        "again, to say how well each token fits as the next one.",
    ),
    "attn_norm": (
        (40, 52, 120),
        "Brings each row to length one per column, so that no token shouts. "
        "What it scales is a copy; the row itself goes by on the right.",
    ),
    "attn_q, attn_k, attn_v": (
        (40, 84, 170),
        "What a token asks, what it offers, and what it hands over. Each head "
        "has its own columns, and heads that share keys save memory.",
    ),
    "turn": (
        (40, 116, 70),
        "Turns each pair of columns by the token's position. Two tokens then "
        "match by how far apart they are, not by where they stand.",
    ),
    "mask, softmax": (
        (120, 116, 110),
        "Whoever comes later is blocked, and the scores of the others become "
        "weights that sum to one.",
    ),
    "attn_output": (
        (40, 148, 120),
        "Mixes what the heads have found. The sum is added to the row, which "
        "is why a layer can only add to what is known.",
    ),
    "ffn_norm": (
        (40, 204, 120),
        "The same norm again, before the second half of the block.",
    ),
    "ffn_gate, ffn_up": (
        (40, 236, 170),
        "Each token alone: a wide row of features, and a gate for each of "
        "them that is open or shut.",
    ),
    "ffn_down": (
        (40, 268, 120),
        "Back to the row's width, and added to it. Most of the model's "
        "numbers are in these three matrices.",
    ),
    "output_norm": (
        (115, 324, 130),
        "The norm a last time. Then each row is compared with the row of "
        "every token: these are the logits.",
    ),
}


def show_map():
    """Return the model as a map, whose parts the reader chooses.

    Returns
    -------
    IPython.display.HTML
        A drawing, and two sentences on the chosen part.
    """
    names = list(PARTS)

    def state(part):
        shown = {
            f"part-{i}": {"fill": "#9ecae1" if i == int(part) else "#f7fbff"}
            for i in range(len(names))
        }
        name = names[int(part)]
        return f"{name}: {PARTS[name][1]}", shown

    def draw(parts):
        line = "<g stroke='#555' stroke-width='2'>"
        line += "<path d='M300 23V339'/><path d='M245 23H300'/>"
        for top, bottom in ((62, 160), (214, 280)):
            line += f"<path d='M300 {top}H160'/><path d='M160 {bottom}H300'/>"
        line += "<path d='M300 339H245'/></g>"
        boxes, words = "", [((312, 164), "+"), ((312, 284), "+")]
        words += [((10, 44), "block"), ((10, 196), "")]
        for i, (name, ((x, y, width), _)) in enumerate(PARTS.items()):
            fill = parts[f"part-{i}"]["fill"]
            boxes += (
                f"<rect data-part='part-{i}' x='{x}' y='{y}' width='{width}' "
                f"height='26' rx='4' fill='{fill}' stroke='#08519c'/>"
            )
            words.append(((x + 8, y + 18), name))
        frame = "<rect x='4' y='44' width='330' height='262' rx='6' "
        frame += "stroke='#999' stroke-dasharray='4 4'/>"
        label = "the parts of the model, from the token to the logits"
        words = [pair for pair in words if pair[1] and pair[1] != "block"]
        drawing = frame + line + boxes + svg_texts(words)
        return svg_image(label, "360 356", drawing)

    control = {"label": "part", "name": "part", "type": "radio"}
    choices = {"choices": names, "chosen": [2]}
    return show_states("map", [control | choices], state, draw)
