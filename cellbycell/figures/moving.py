"""A picture that its controls move, in a notebook and on the site.

Python computes what each state shows, and `figure.js` shows it.
"""

import json
from functools import cache
from html import escape
from itertools import product
from pathlib import Path

from .parts import SHADES, SIGNED, table_cell

# On the site the model is a file, as it is too large for every reader.
_MODEL_SCRIPT = """const begin = () => {
const model = window.namesModel;
%s
};
const place = document.getElementById("ID");
const load = (seen, watcher) => {
  if (!seen.some((one) => one.isIntersecting)) return;
  watcher.disconnect();
  const root = document.documentElement.dataset.content_root;
  const src = `${root}_static/names_model.js`;
  document.head.append(make("script", {src, onload: begin}));
};
if (window.namesModel) begin();
else new IntersectionObserver(load, {rootMargin: "200px"}).observe(place);"""


@cache
def read(name):
    """Return the text of a file of this folder, without spaces around it."""
    return (Path(__file__).parent / name).read_text("utf-8").strip()


def show_figure(name, controls, picture, said, data, script, model=None):
    """Return a picture that its controls move, where scripts may run.

    Parameters
    ----------
    name
        Of the picture, for the page.
    controls
        A dict for each: its label and its attributes in HTML; choices, and
        those chosen, if there are several boxes. A range that is a time has
        `play`, and gets a button that moves it.
    picture
        HTML, its moving parts named by data-part.
    said
        The sentence below the picture.
    data
        What the script has at hand, for JSON.
    script
        JavaScript: a function of the controls' values and the parts, which
        draws anew and returns the sentence.
    model
        What the script calls by this name: JavaScript that sets
        `window.namesModel`. The site moves it into a file, which a page loads
        when the reader is near.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    from IPython.display import HTML

    style = read("figure.css").partition("*/")[2].replace("\n", "")
    start = f'figure("{name}-figure", {json.dumps(controls)}, {script});'
    before = ""
    if model is not None:
        before = f"<script>{model}</script>"
        start = _MODEL_SCRIPT.replace("ID", f"{name}-figure") % start
    return HTML(
        f'<div id="{name}-figure" class="moving"><style>{style}</style>'
        f'{picture}<p data-part="said">{said}</p></div>'
        f"{before}<script>(() => {{\nconst SHADES = {json.dumps(SHADES)};\n"
        f"const SIGNED = {json.dumps(SIGNED)};\n"
        f"const data = {json.dumps(data)};\n{read('figure.js')}\n"
        f"{start}\n}})();</script>"
    )


def show_states(name, controls, state, draw, script="", shades=SHADES):
    """Return a picture whose controls choose among computed states.

    Parameters
    ----------
    name
        Of the picture, for the page.
    controls
        As in `show_figure`: radio buttons, boxes and ranges, whose values
        together are a few hundred states at most.
    state
        A function of the controls' values, by name: a number for a range, the
        index of a radio button's choice, True for a box, a tuple of indices
        for several boxes. It returns a sentence, and
        {part: what it shows}: a text (of a path, where it goes), a text and
        the share from 0 to 1 that colours it, a dict of attributes, or None
        if the part is hidden.
    draw
        A function of these parts, which returns the HTML of the start.
    script
        JavaScript that is run once; it has `root`, the picture's element.
    shades
        The colours of the shares.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    axes = [_axis(control) for control in controls]
    names = [control["name"] for control in controls]
    given = product(*(values for _, values in axes))
    states = [state(**dict(zip(names, x, strict=True))) for x in given]
    start = [_start(control) for control in controls]
    said, parts = state(**dict(zip(names, start, strict=True)))
    moved = {
        part: _told_once([shown[part] for _, shown in states])
        for part in parts
    }
    data = {
        "controls": [axis for axis, _ in axes],
        "parts": {n: each for n, each in moved.items() if len(each[0]) > 1},
        "said": _told_once([sentence for sentence, _ in states]),
        "shades": shades,
    }
    show = "showState"
    if script:
        root = f'document.getElementById("{name}-figure")'
        show = f"showState); ((root) => {{{script}}})({root}"
    said = escape(said, quote=False)
    return show_figure(name, controls, draw(parts), said, data, show)


def _axis(control):
    """Return what the script is told of a control, and its values."""
    axis = {"name": control["name"]}
    if control["type"] == "range":
        low, step = control["min"], control.get("step", 1)
        size = round((control["max"] - low) / step) + 1
        values = [low + step * i for i in range(size)]
        return axis | dict(kind="range", size=size, min=low, step=step), values
    if control["type"] == "radio":
        size = len(control["choices"])
        return axis | dict(kind="radio", size=size), list(range(size))
    if "choices" not in control:
        return axis | dict(kind="box", size=2), [False, True]
    count = len(control["choices"])
    values = [
        tuple(i for i in range(count) if boxes >> i & 1)
        for boxes in range(2**count)
    ]
    return axis | dict(kind="boxes", size=2**count), values


def _start(control):
    """Return the value of a control at the start."""
    if control["type"] == "range":
        return control["value"]
    if control["type"] == "radio":
        return control["chosen"][0]
    if "choices" in control:
        return tuple(control["chosen"])
    return control.get("checked", False)


def _told_once(values):
    """Return the distinct values, and for each value its place in them."""
    places = {}
    for value in values:
        places.setdefault(json.dumps(value), len(places))
    distinct = [json.loads(text) for text in places]
    return distinct, [places[json.dumps(value)] for value in values]


def show_break(name, right, wrong, passed, reveal):
    """Return what a model gives, which breaks before the reader's eyes.

    Parameters
    ----------
    name
        Of the picture, for the page.
    right, wrong
        As in `show_mistake`.
    passed
        {what is checked: whether it passes}, of the correct model and of the
        one with the mistake.
    reveal
        The sentence that is said of the mistake.

    Returns
    -------
    IPython.display.HTML
        One table and its checks, with a switch between both models.

    Raises
    ------
    ValueError
        As in `show_mistake`; or if the two tables differ in shape.
    """
    _check_bet(passed)
    both = right, wrong
    if [*map(len, right)] != [*map(len, wrong)]:
        raise ValueError("both tables need the same rows and columns")
    numbers = [x for rows in both for row in rows for x in row]
    signed, largest = _scale(numbers)

    def state(model):
        shown = {}
        for r, row in enumerate(both[int(model)]):
            for c, x in enumerate(row):
                shown[f"cell-{r}-{c}"] = _shaded(x, signed, largest)
        for i, passes in enumerate(passed[int(model)].values()):
            text = "\N{CHECK MARK} passes" if passes else "\N{BALLOT X} fails"
            shown[f"check-{i}"] = text
        count = sum(passed[int(model)].values())
        said = f"Correct: all {count} checks pass." if model == 0 else reveal
        return said, shown

    def draw(parts):
        table = "".join(
            "<tr>"
            + "".join(
                table_cell(f"cell-{r}-{c}", *parts[f"cell-{r}-{c}"], shades)
                for c in range(len(row))
            )
            for r, row in enumerate(right)
        )
        lamps = "".join(
            f'<tr><th class="head">{check}</th>'
            + table_cell(f"check-{i}", parts[f"check-{i}"])
            for i, check in enumerate(passed[0])
        )
        return f"<table>{table}</table><table>{lamps}</table>"

    shades = SIGNED if signed else SHADES
    choices = {"choices": ["correct", "with the mistake"], "chosen": [0]}
    control = {"label": "the model", "name": "model", "type": "radio"}
    return show_states(name, [control | choices], state, draw, shades=shades)


def _check_bet(passed):
    """Raise unless all checks see the correct model, and some the other."""
    of_right, checks = passed
    failing = [not passes for passes in checks.values()]
    if not all(of_right.values()):
        raise ValueError("the correct model fails a check: mend the check")
    if all(failing) or not any(failing):
        raise ValueError("the bet is open only if some checks fail, not all")
    return failing


def _scale(cells):
    """Return whether the numbers among cells are signed; the largest."""
    numbers = [float(x) for x in cells if not isinstance(x, str)]
    return min(numbers, default=0) < 0, max(map(abs, [1, *numbers]))


def _shaded(x, signed, largest):
    """Return the text of a cell and the share that colours it."""
    if isinstance(x, str):
        return x, None
    share = (x / largest + 1) / 2 if signed else x / largest
    return f"{x:.2f}", round(float(share), 3)


def show_mistake(name, right, wrong, passed, reveal):
    """Return what a model gives with a mistake, and checks to bet on.

    The reader guesses each check, and sees at once whether the guess is right;
    without scripts all answers stand there.

    Parameters
    ----------
    name
        Of the picture, for the page.
    right, wrong
        What the correct model gives, and what the one with the mistake:
        two rows of rows, numbers or texts.
    passed
        {what is checked: whether it passes}, of the correct model and of the
        one with the mistake.
    reveal
        The sentence that is said at the end.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.

    Raises
    ------
    ValueError
        If the correct model fails, or every check passes, or none does.
    """
    failing, checks = _check_bet(passed), passed[1]
    both = {"correct": right, "with the mistake": wrong}
    cells = [x for part in both.values() for row in part for x in row]
    signed, largest = _scale(cells)
    shades = SIGNED if signed else SHADES
    tables = ""
    for title, part in both.items():
        tables += f'<table><tr><th colspan="{len(part[0])}">{title}</th>'
        for row in part:
            tables += "<tr>"
            for x in row:
                given = _shaded(x, signed, largest)
                tables += table_cell("value", *given, shades)
        tables += "</table>"
    lamps = '<table data-part="answers"><tr><td style="width:60%"></td>'
    lamps += "".join(f"<th>{title}</th>" for title in both)
    for check, fails in zip(checks, failing, strict=True):
        lamps += f'<tr><th class="head">{check}</th>'
        for bad in (False, fails):
            text = "\N{BALLOT X} fails" if bad else "\N{CHECK MARK} passes"
            lamps += f"<td>{text}</td>"
    guess = {"type": "radio", "choices": ["passes", "fails"], "chosen": []}
    return show_figure(
        name,
        [
            {"label": check, "name": f"guess-{i}", **guess}
            for i, check in enumerate(checks)
        ],
        f'<div class="pair">{tables}</div>{lamps}</table>',
        reveal,
        {"fails": failing, "reveal": reveal},
        read("bet.js"),
    )
