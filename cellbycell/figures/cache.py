"""The moving pictures of *The key-value cache*."""

from .moving import show_break, show_states
from .parts import table_cell, table_head

SHARES = {"kept": 0.15, "again": 0.45, "new": 0.75}


def show_steps(tokens):
    """Return what each step of writing computes, with a cache and without.

    Parameters
    ----------
    tokens
        The words of a text.

    Returns
    -------
    IPython.display.HTML
        A table: a row of keys and values, then a row of weights for each
        query.
    """
    length = len(tokens)

    def state(step, cache):
        first = 0 if cache else step - 1  # the button "on" comes first
        again = set(range(step - 1)) if cache else set()
        parts = {}
        for s in range(length):
            known = "kept" if s < first else "again" if s in again else "new"
            parts[f"kept-{s}"] = _shaded(known if s < step else "")
            for t in range(length):
                text = "again" if {s, t} <= again else "new"
                computed = first <= t < step and s < step
                parts[f"weight-{t}-{s}"] = _shaded(text if computed else "")
        rows = step - first
        said = f"Step {step}: keys and values computed: {rows}, "
        said += f"read from a cache: {first}; weights computed: {rows * step}."
        return said, parts

    def draw(parts):
        rows = '<tr><td style="width:24%"></td>'
        for s, token in enumerate(tokens):
            rows += table_head(f"key-{s}", token, "up")
        names = {"kept": "keys, values"}
        names |= {f"weight-{t}": f"query {x}" for t, x in enumerate(tokens)}
        for row, name in names.items():
            rows += f"<tr>{table_head(row, name)}"
            for s in range(length):
                shown = parts[f"{row}-{s}"]
                rows += table_cell(f"{row}-{s}", *shown)
        return f"<table>{rows}</table>"

    return show_states(
        "cache",
        [
            dict(label="tokens read", name="step", type="range", min=1)
            | dict(max=length, value=4, play=True),
            dict(label="cache", name="cache", type="radio", chosen=[0])
            | dict(choices=["on", "off"]),
        ],
        state,
        draw,
    )


def _shaded(text):
    return text, SHARES.get(text)


def show_corner(read, model, token_ids, held_out, patched, written):
    """Return what the upper left corner of the mask breaks.

    Parameters
    ----------
    read
        A function: model, ids, a size -> the logits, read in chunks.
    model
        A Llama with a cache.
    token_ids
        Of PyTorch, (B, T).
    held_out
        A function of the model: its loss.
    patched
        Two contexts in which the attention is right, and wrong.
    written
        What each writes, in two lists of texts.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    passed = []
    for kernel in patched:
        with kernel:
            whole, steps, threes = (
                read(model, token_ids, size=size) for size in (99, 1, 3)
            )
            _, cache = model(token_ids[:, :-1], cache=[])
            after_prompt, _ = model(token_ids[:, -1:], cache=cache)
            loss = held_out(model).item()

        def same(found, wanted=whole):
            wanted = wanted[:, -found.shape[1] :]
            return (found - wanted).abs().max().item() < 1e-3

        passed.append(
            {
                "the logits' shape, and no NaN": threes.shape == whole.shape
                and not bool(threes.isnan().any()),
                "one token after a prompt, against one pass": same(
                    after_prompt
                ),
                "one by one, against one pass": same(steps),
                "chunks of three, against one pass": same(threes),
                "the held-out loss of one pass": loss < 2.2,
            }
        )
    return show_break(
        "cache-mistake",
        *([[text] for text in texts] for texts in written),
        passed,
        "Most tests of a cache read single tokens after a prompt, and those "
        "need no mask.",
    )
