"""What the chapters show with: printed tables, maps, and moving pictures.

The chapters import these; they explain nothing of a Transformer. The moving
pictures need IPython and the maps matplotlib, which every notebook has.
"""

import json

import numpy as np

# The colours of matplotlib's map cividis, from 0 to 1.
SHADES = """#00224d #002a62 #083370 #243c6e #35456c #434e6b #4e566c #5a5f6d
#666970 #717273 #7c7b78 #878478 #948e77 #a19874 #aea271 #bbad6c #c8b765 #d6c35d
#e4ce51 #f3da42 #fde737""".split()
FIGURE_SCRIPT = """
const make = (tag, options, ...inside) => {
  const node = Object.assign(document.createElement(tag), options);
  node.append(...inside);
  return node;
};
const shade = (cell, share, text = share.toFixed(2)) => {
  cell.textContent = text;
  cell.style.background = SHADES[Math.floor(20 * share + 0.5)];
  cell.style.color = share < 0.475 ? "#fff" : "#000";
};
const labelled = (label, options) => {
  const input = make("input", {...options, style: "min-width:0"});
  const inside = [input, make("span", {}, label)];
  if (["range", "text"].includes(options.type)) inside.reverse();
  if (options.type == "range") inside.push(make("span"));
  const style = "display:inline-flex;gap:6px;align-items:center;"
    + "max-width:100%;min-height:28px;padding-right:16px;"
    + "box-sizing:border-box";
  return make("label", {style}, ...inside);
};
const figure = (id, controls, draw) => {
  const root = document.getElementById(id);
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const form = make("form", {autocomplete: "off"});
  for (const {label, choices, chosen, ...rest} of controls)
    form.append(choices
      ? make("fieldset", {style: "border:0;margin:0;padding:0"},
        make("legend", {style: "font:inherit;margin:0"}, label),
        ...choices.map((choice, value) => labelled(choice,
          {...rest, value, checked: chosen.includes(value)})))
      : labelled(label, rest));
  let timer;
  const update = () => {
    for (const input of form.querySelectorAll("[type=range]"))
      input.nextSibling.textContent = input.value;
    const said = draw(new FormData(form), part, form.elements);
    clearTimeout(timer); // a screen reader waits till the hand rests
    timer = setTimeout(() => {
      if (part("words").textContent != said)
        part("words").textContent = said;
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


def print_table(columns, rows):
    """Print the rows of a table below the names of its columns.

    rows: a dict, name of the row -> what stands in it, numbers or words.
    """
    table = [
        [name, *(f"{c:.4f}" if isinstance(c, float) else str(c) for c in row)]
        for name, row in {"": columns, **rows}.items()
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for name, *row in table:
        cells = (f"{c:>{w}}" for c, w in zip(row, widths[1:], strict=True))
        print(f"{name:{widths[0]}}", *cells, sep="  ")


def show_figure(name, controls, picture, words, data, script):
    """Return a picture that its controls move, where scripts may run.

    picture: HTML, its moving parts named by data-part; words: what is said
    below it; script: a function of the controls' values and the parts that
    draws anew, with data at hand, and returns the words.
    """
    from IPython.display import HTML

    style = "background:#fff;color:#222;color-scheme:light;padding:8px 4px;"
    style += "font:13px/1.5 sans-serif"
    return HTML(
        f'<div id="{name}-figure" style="{style}">{picture}'
        f'<p data-part="words" aria-live="polite">{words}</p></div>'
        f"<script>(() => {{\nconst SHADES = {json.dumps(SHADES)};\n"
        f"const data = {json.dumps(data)};{FIGURE_SCRIPT}"
        f'figure("{name}-figure", {json.dumps(controls)}, {script});\n'
        "})();</script>"
    )


def table_cell(part, text, share=None, tag="td", style=""):
    """Return a cell of a table, coloured by its share, from 0 to 1."""
    style += ";padding:3px 1px;border:1px solid #fff;text-align:center"
    if share is not None:
        ink = "#fff" if share < 0.475 else "#000"
        style += f";background:{SHADES[int(20 * share + 0.5)]};color:{ink}"
    return f'<{tag} data-part="{part}" style="{style}">{text}</{tag}>'


def svg_image(label, size, drawing):
    """Return a drawing as an image, which stands where scripts may not.

    size: width and height in one text; drawing: SVG without double quotes.
    """
    style = "width:100%;min-width:0"
    svg = (
        "<svg xmlns='http://www.w3.org/2000/svg' role='img' aria-label="
        f"'{label}' viewBox='0 0 {size}' style='{style};fill:none'>{drawing}"
        "</svg>"
    )
    for sign in "%#\n":
        svg = svg.replace(sign, f"%{ord(sign):02x}")
    source = f"data:image/svg+xml,{svg}"
    return f'<img alt="{label}" style="{style}" src="{source}">'


def show_weights(ax, weights, words):
    """Draw weights (T, S) as a map, with words as ticks; return the image."""
    image = ax.imshow(weights, cmap="cividis", vmin=0, vmax=1)
    for (row, column), weight in np.ndenumerate(weights):
        ink = "black" if weight > 0.5 else "white"
        place = {"ha": "center", "va": "center", "color": ink}
        ax.text(column, row, f"{weight:.2f}".lstrip("0"), **place)
    ax.set_xticks(range(weights.shape[1]), words, rotation=45)
    ax.set_yticks(range(weights.shape[0]), words)
    return image


def show_mask(ax, mask, row_names, column_names):
    """Draw a mask: blue where a query may attend, else light grey."""
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
