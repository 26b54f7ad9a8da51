"""What the chapters show with: printed tables, maps, and moving pictures.

The chapters import these; they explain nothing of a Transformer. The moving
pictures need IPython and the maps matplotlib, which every notebook has.
"""

import json

import numpy as np

# Blue for a share from 0 to 1, and orange to purple for a number from -1 to 1:
# matplotlib's maps Blues and PuOr, which the figures have. Nothing is white.
SHADES = """#f7fbff #eef5fc #e3eef9 #d9e8f5 #d0e1f2 #c6dbef #b7d4ea #a6cee4
#94c4df #7fb9da #6aaed6 #5ba3d0 #4a98c9 #3b8bc2 #2e7ebc #2070b4 #1764ab #0d57a1
#084a91 #083c7d #08306b""".split()
SIGNED = """#7f3b08 #974907 #b25706 #c96d0d #e08214 #ef9e3c #fcb761 #fdcc8c
#fee0b6 #faecd7 #f6f6f7 #e8e9f1 #d8daeb #c5c2de #b1aad1 #988dbe #8073ac #6a4c9a
#532687 #3f1268 #2d004b""".split()
# Letters are those of the text beside the picture, and never below 11 pixels.
_FIGURE_STYLE = """
.moving{background:#fff;color:#222;color-scheme:light;padding:4px 0}
.moving :is(form,fieldset,legend,p){border:0;margin:0;padding:0;font:inherit}
.moving form{display:flow-root;margin-bottom:12px}
.moving fieldset{display:flow-root}
.moving legend,.moving .name{font-weight:600;margin-right:12px}
.moving legend{float:left;line-height:28px}
.moving label{display:inline-flex;gap:6px;align-items:center;max-width:100%;
min-height:28px;margin:0;padding-right:16px;box-sizing:border-box}
.moving input{min-width:0;max-width:100%}
.moving .name{white-space:nowrap}
.moving.moving table{table-layout:fixed!important;width:100%;max-width:36em;
border-collapse:collapse;margin:0 0 8px;font:inherit;line-height:1.4;
font-size:max(11px,min(1em,3.4vw))}
.moving.moving :is(tr,tr:hover){background:none}
.moving.moving :is(td,th){padding:3px 1px;border:1px solid #fff;
text-align:center;font-weight:400;white-space:normal;max-width:none}
.moving.moving .head{text-align:left;padding-right:6px}
.moving.moving .up{writing-mode:vertical-rl;padding:0 0 6px;text-align:end}
.moving .bar{display:flex;align-items:center;margin-bottom:8px}
.moving .bar b{width:9px;height:1em}
.moving .pair{display:flex;flex-wrap:wrap;gap:0 16px;max-width:36em}
.moving.moving .pair table{flex:1 1 13em;width:auto}
.moving fieldset:has([name^=guess-]) legend{width:19em;max-width:100%}
.moving fieldset b{padding:4px 8px;white-space:nowrap}
.moving .heard{position:absolute;clip-path:inset(50%);height:1px;width:1px;
overflow:hidden}
.moving svg,.moving img{display:block;width:100%;max-width:28rem;min-width:0;
margin-bottom:8px;fill:none}
"""
_FIGURE_SCRIPT = """
const make = (tag, options, ...inside) => {
  const node = Object.assign(document.createElement(tag), options);
  node.append(...inside);
  return node;
};
const paint = (cell, colour) => {
  const [r, g, b] = [1, 3, 5].map((at) =>
    parseInt(colour.slice(at, at + 2), 16));
  cell.style.background = colour;
  cell.style.color = 30 * r + 59 * g + 11 * b < 10700 ? "#fff" : "#000";
};
const shade = (cell, share, text = share.toFixed(2), shades = SHADES) => {
  cell.textContent = text;
  paint(cell, shades[Math.floor(20 * share + 0.5)]);
};
const labelled = (label, options) => {
  const input = make("input", options);
  const inside = [input, make("span", {}, label)];
  if (["range", "text"].includes(options.type)) {
    inside.reverse();
    inside[0].className = "name";
  }
  if (options.type == "range") {
    const steps = (input.max - input.min) / (input.step || 1);
    input.style.width = `${Math.min(320, Math.max(130, 3 * steps))}px`;
    inside.push(make("span"));
  }
  return make("label", {}, ...inside);
};
const figure = (id, controls, draw) => {
  const root = document.getElementById(id);
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const form = make("form", {autocomplete: "off"});
  for (const {label, choices, chosen, ...rest} of controls)
    form.append(choices
      ? make("fieldset", {}, make("legend", {}, label),
        ...choices.map((choice, value) => labelled(choice,
          {...rest, value, checked: chosen.includes(value)})))
      : labelled(label, rest));
  let timer;
  const heard = make("p", {className: "heard", ariaLive: "polite"});
  root.append(heard);
  part("said").ariaHidden = true;
  const update = () => {
    for (const input of form.querySelectorAll("[type=range]"))
      input.nextSibling.textContent = input.value;
    const said = draw(new FormData(form), part, form.elements);
    part("said").textContent = said;
    clearTimeout(timer); // a screen reader waits till the hand rests
    timer = setTimeout(() => {
      if (heard.textContent != said) heard.textContent = said;
    }, 300);
  };
  const image = root.querySelector("img");
  if (image) image.outerHTML = decodeURIComponent(
    image.getAttribute("src").split("svg+xml,")[1]);
  form.onkeydown = (event) => event.stopPropagation(); // not to JupyterLab
  form.onsubmit = (event) => event.preventDefault();
  form.oninput = update;
  root.prepend(form);
  update();
};
"""
_MISTAKE_SCRIPT = """(values, part, elements) => {
  const form = elements[0].form;
  part("answers")?.replaceWith(form); // the guesses stand below the numbers
  let guessed = 0, good = 0;
  data.fails.forEach((fails, i) => {
    const guess = values.get(`guess-${i}`);
    if (guess === null) return;
    const lamp = form.children[i].querySelector("b")
      ?? form.children[i].appendChild(make("b"));
    const isRight = fails == (guess == 1);
    lamp.textContent = (isRight ? "\u2713 yes, it " : "\u2717 no, it ")
      + (fails ? "fails" : "passes");
    paint(lamp, isRight ? "#d0e1f2" : "#fcb761");
    guessed += 1;
    good += isRight;
  });
  const all = data.fails.length;
  if (guessed < all) return "Does the model with the mistake pass each check? "
    + `${guessed} of ${all} guessed.`;
  return `You are right about ${good} of ${all} checks. ${data.reveal}`;
}"""
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


def print_table(columns, rows):
    """Print the rows of a table below the names of its columns.

    Parameters
    ----------
    columns
        The names of the columns.
    rows
        {name of the row: what stands in it, numbers or words}.
    """
    table = [
        [name, *(f"{c:.4f}" if isinstance(c, float) else str(c) for c in row)]
        for name, row in {"": columns, **rows}.items()
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for name, *row in table:
        cells = (f"{c:>{w}}" for c, w in zip(row, widths[1:], strict=True))
        print(f"{name:{widths[0]}}", *cells, sep="  ")


def show_figure(name, controls, picture, said, data, script, model=None):
    """Return a picture that its controls move, where scripts may run.

    Parameters
    ----------
    name
        Of the picture, for the page.
    controls
        A dict for each: its label and its attributes in HTML; choices, and
        those chosen, if there are several boxes.
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

    style = _FIGURE_STYLE.replace("\n", "")
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
        f"const data = {json.dumps(data)};{_FIGURE_SCRIPT}"
        f"{start}\n}})();</script>"
    )


def show_mistake(name, right, wrong, checks, reveal):
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
    checks
        {what is checked: (passes right, passes wrong)}, as booleans.
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
    failing = [not passes for _, passes in checks.values()]
    if not all(passes for passes, _ in checks.values()):
        raise ValueError("the correct model fails a check: mend the check")
    if all(failing) or not any(failing):
        raise ValueError("the bet is open only if some checks fail, not all")
    both = {"correct": right, "with the mistake": wrong}
    cells = [x for part in both.values() for row in part for x in row]
    numbers = [float(x) for x in cells if not isinstance(x, str)]
    signed, largest = min(numbers, default=0) < 0, max(map(abs, [1, *numbers]))
    tables = ""
    for title, part in both.items():
        tables += f'<table><tr><th colspan="{len(part[0])}">{title}</th>'
        for row in part:
            tables += "<tr>"
            for x in row:
                if isinstance(x, str):
                    tables += table_cell("value", x)
                elif signed:
                    share = (x / largest + 1) / 2
                    tables += table_cell("value", f"{x:.2f}", share, SIGNED)
                else:
                    tables += table_cell("value", f"{x:.2f}", x / largest)
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
        _MISTAKE_SCRIPT,
    )


def painted(colour):
    """Return the style of a cell: its colour, and letters that it shows.

    Parameters
    ----------
    colour
        As in "#08306b".

    Returns
    -------
    str
        CSS, with black or white letters.
    """
    r, g, b = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    ink = "#fff" if 30 * r + 59 * g + 11 * b < 10700 else "#000"
    return f"background:{colour};color:{ink}"


def table_cell(part, text, share=None, shades=SHADES):
    """Return a cell of a table, coloured by its share.

    Parameters
    ----------
    part
        The cell's name, for the script.
    text
        What stands in it.
    share
        From 0 to 1; None for no colour.
    shades
        The 21 colours, from 0 to 1.

    Returns
    -------
    str
        HTML.
    """
    look = ""
    if share is not None:
        look = f' style="{painted(shades[int(20 * share + 0.5)])}"'
    return f'<td data-part="{part}"{look}>{text}</td>'


def table_head(part, text, look="head"):
    """Return the head of a row or a column.

    Parameters
    ----------
    part
        The cell's name, for the script.
    text
        What stands in it.
    look
        "head" for a row, "up" for a narrow column.

    Returns
    -------
    str
        HTML.
    """
    return f'<th data-part="{part}" class="{look}">{text}</th>'


def weights_table(rows, columns, weights):
    """Return weights as a table: a row for each query, and a legend.

    Parameters
    ----------
    rows
        The T tokens of the queries.
    columns
        The S tokens of the keys.
    weights
        (T, S); NaN where a key is blocked, which gets no colour.

    Returns
    -------
    str
        HTML.
    """
    table = '<tr><td style="width:19%"></td>'
    for s, token in enumerate(columns):
        table += table_head(f"key-{s}", token, "up")
    for t, token in enumerate(rows):
        table += "<tr>" + table_head(f"query-{t}", token)
        for s, weight in enumerate(weights[t]):
            share = None if np.isnan(weight) else weight
            text = f"{share or 0:.2f}"
            table += table_cell(f"weight-{t}-{s}", text, share)
    bar = "".join(f'<b style="background:{shade}"></b>' for shade in SHADES)
    bar = f'<p class="bar">weight&ensp;0&ensp;{bar}&ensp;1</p>'
    return f"<table>{table}</table>{bar}"


def svg_image(label, size, drawing):
    """Return a drawing as an image, which stands where scripts may not.

    Parameters
    ----------
    label
        What is said of it where it is not seen.
    size
        Width and height in one text, 360 wide.
    drawing
        SVG without double quotes.

    Returns
    -------
    str
        HTML.
    """
    svg = (
        "<svg xmlns='http://www.w3.org/2000/svg' role='img' aria-label="
        f"'{label}' viewBox='0 0 {size}' fill='none'>{drawing}</svg>"
    )
    for sign in "%#\n":
        svg = svg.replace(sign, f"%{ord(sign):02x}")
    return f'<img alt="{label}" src="data:image/svg+xml,{svg}">'


def svg_texts(texts):
    """Return the words of a drawing.

    Parameters
    ----------
    texts
        Pairs of a place (x, y) and a text.

    Returns
    -------
    str
        SVG.
    """
    words = "".join(
        f"<text x='{x}' y='{y}'>{text}</text>" for (x, y), text in texts
    )
    return f"<g style='fill:#222;font:13px sans-serif'>{words}</g>"


def show_weights(ax, weights, tokens):
    """Draw weights as a map, with tokens as ticks.

    Parameters
    ----------
    ax
        The axes of matplotlib.
    weights
        (T, S), from 0 to 1.
    tokens
        The ticks; T and S are as many.

    Returns
    -------
    matplotlib.image.AxesImage
        For a colour bar.
    """
    image = ax.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    for (row, column), weight in np.ndenumerate(weights):
        ink = "white" if weight > 0.725 else "black"
        middle = {"ha": "center", "va": "center", "color": ink}
        ax.text(column, row, f"{weight:.2f}".lstrip("0"), **middle)
    ax.set_xticks(range(weights.shape[1]), tokens, rotation=90)
    ax.set_yticks(range(weights.shape[0]), tokens)
    return image


def show_mask(ax, mask, row_names, column_names):
    """Draw a mask: blue where a query may attend, else light grey.

    Parameters
    ----------
    ax
        The axes of matplotlib.
    mask
        (T, S), True = may attend.
    row_names, column_names
        The ticks, T and S.
    """
    from matplotlib.colors import ListedColormap

    colours = ListedColormap(["0.85", "tab:blue"])
    ax.imshow(np.where(mask, 1.0, 0.0), cmap=colours, vmin=0, vmax=1)
    ax.set_xticks(range(len(column_names)), column_names, rotation=90)
    ax.set_yticks(range(len(row_names)), row_names)
    ax.set_xticks(np.arange(len(column_names) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(row_names) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=2)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)
