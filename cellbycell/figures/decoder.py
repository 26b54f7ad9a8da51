"""The moving pictures of *The decoder*."""

from .moving import show_break, show_states
from .parts import table_cell


def show_writing(source, written, says, past, memory):
    """Return what each position looks at while a decoder writes.

    Parameters
    ----------
    source, written, says
        The S tokens of the source, the T tokens that are read, and those that
        are predicted.
    past, memory
        The weights of what was written, (T, T), and of the source, (T, S).

    Returns
    -------
    IPython.display.HTML
        A table: tokens and weights, twice; the reader goes on step by step.
    """
    most = len(past) - 1

    def state(step, position):
        position = min(position, step - 1)
        parts = {}
        for s in range(len(source)):
            parts[f"memory-{s}"] = _weight(memory[position][s])
        for s in range(most + 1):
            parts[f"written-{s}"] = written[s] if s < step else ""
            parts[f"next-{s}"] = says[s] if s < step else ""
            parts[f"past-{s}"] = _weight(past[position][s])
            if s > position:
                parts[f"past-{s}"] = "", None
        said = f"Step {step}: position {position} reads “{written[position]}”"
        said += f", sees {position + 1} of {step} tokens and the whole "
        return f"{said}source, and predicts “{says[position]}”.", parts

    def draw(parts):
        rows = '<tr><th class="head" style="width:17%">source'
        for s, token in enumerate(source):
            rows += f'<td data-part="source-{s}">{token}</td>'
        rows += '<tr><th class="head">weight'
        for s in range(len(source)):
            rows += table_cell(f"memory-{s}", *parts[f"memory-{s}"])
        for head, part in (("written", "written"), ("predicts", "next")):
            rows += f'<tr><th class="head">{head}'
            for s in range(most + 1):
                text = parts[f"{part}-{s}"]
                rows += f'<td data-part="{part}-{s}">{text}</td>'
        rows += '<tr><th class="head">weight'
        for s in range(most + 1):
            rows += table_cell(f"past-{s}", *parts[f"past-{s}"])
        return f"<table>{rows}</table>"

    return show_states(
        "write",
        [
            dict(label=label, name=name, type="range", min=low, max=high)
            | dict(value=low, play=name == "step")
            for label, name, low, high in [
                ("tokens read", "step", 1, most),
                ("asking position", "position", 0, most - 1),
            ]
        ],
        state,
        draw,
    )


def _weight(share):
    return f"{share:.2f}", round(float(share), 2)


def show_forgotten_mask(passed, texts):
    """Return what is written, with the memory's mask and without.

    Parameters
    ----------
    passed
        {check: whether it passes}, of the right masks and the wrong ones.
    texts
        What is written with both, two lists of texts.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    return show_break(
        "decoder-mistake",
        *([[text] for text in each] for each in texts),
        passed,
        "The longer sentence has no pads, so it passes. Most tests use one "
        "sequence, or sequences of one length.",
    )
