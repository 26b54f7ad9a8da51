"""A decoder drawn as a column of parts, which a family fills."""

from .draw import colour
from .parts import svg_image

_INK = "var(--book-text,#1d2433)"
WIDE, HIGH = 158, 442  # of a column; of the picture
_NORMS = 62, 212, 284, 348  # where each of the four norms stands
_PLUS = 244, 380
_UP = 102  # how far the network moves, if it is side by side
PLACES = (
    "before attention", "after attention", "before feed-forward",
    "after feed-forward",
)  # fmt: skip


def _base(base):
    """Return a base in few letters, as in 10k or 1M."""
    if base is None:
        return "none"
    power, unit = (1e6, "M") if base >= 1e6 else (1e3, "k")
    return f"{base / power:g}{unit}"


def short_words(config):
    """Return what is in each part in a line that its box has room for."""
    turns = "pairs" if config.pairs else "halves"
    bases = ", then ".join(dict.fromkeys(map(_base, config.bases)))
    sees = ", then ".join(
        dict.fromkeys(str(window or "all") for window in config.windows)
    )
    heads = {"none": "no norm of q, k", "head": "a norm for each head"}
    heads |= {"width": "a norm over all heads"}
    heads |= {"turned": "norm after the turn"}
    scale = config.score_scale or config.d_head**-0.5
    norm = "LayerNorm" if config.centred else "RMSNorm"
    gate = "SiLU" if config.activation == "silu" else "GELU"
    fed = f"network gated by {gate}"
    if config.num_experts:
        fed = f"{config.experts_asked} of {config.num_experts} experts"
    head = "table" if config.tied else "own matrix"
    words = {
        "embedding": "table" + _factor(config.embedding_factor),
        "queries, keys": heads[config.heads_norm],
        "biases": "bias: " + (" ".join(config.biases) or "none"),
        "rotation": f"{turns}, {bases}",
        "sees": f"sees {sees}",
        "scores": f"scores × {scale:.2g}"
        + (f", cap {config.score_cap:g}" if config.score_cap else ""),
        "feed-forward": fed,
        "residual": _factor(config.residual_factor).strip(),
        "logits": head
        + _factor(config.logit_factor)
        + (f", cap {config.logit_cap:g}" if config.logit_cap else ""),
    }
    for place, given in zip(PLACES, config.norms, strict=True):
        offset = ", 1 + w" if config.scale_offset else ""
        words[place] = f"{norm}{offset}" if given else ""
    return words


def _factor(factor):
    return "" if factor == 1 else f" × {factor:.2g}"


def _look(differs):
    """Return the attributes of a box, which tell whether it differs."""
    ink = colour("key" if differs else "token")
    return {
        "stroke": ink, "fill": ink,
        "fill-opacity": 0.22 if differs else 0.06,
    }  # fmt: skip


def column_parts(side, name, config, differing):
    """Return what a column shows: {part: a text, or attributes}.

    side: 0 or 1; name: of the family; differing: the parts that differ.
    """
    words, parts = short_words(config), {f"name-{side}": name}
    for part, text in words.items():
        here, differs = f"{part}-{side}", part in differing
        if part == "residual":
            ink = {"fill": colour("key") if differs else _INK}
            for i in range(2):
                parts[f"{part}-{i}-{side}"] = text
                parts[f"line-{part}-{i}-{side}"] = ink
            continue
        parts[here] = text
        if part in ("queries, keys", "biases", "rotation", "sees", "scores"):
            ink = colour("key") if differs else _INK
            weight = 600 if differs else 400
            parts[f"line-{here}"] = {"fill": ink, "font-weight": weight}
            continue
        parts[f"box-{here}"] = _look(differs)
        if part in PLACES:
            parts[f"group-{here}"] = {"opacity": int(bool(text))}
    beside = config.side_by_side
    up = _UP if beside else 0
    parts[f"network-{side}"] = {"transform": f"translate(0 {-up})"}
    parts[f"frame-{side}"] = {"opacity": int(beside)}
    parts[f"first-{side}"] = {"opacity": int(not beside)}
    x = 8 + 184 * side + WIDE
    turns = [(54, _PLUS[1])] if beside else [(54, _PLUS[0]), (256, _PLUS[1])]
    parts[f"skip-{side}"] = "".join(
        f"M{x - WIDE / 2:g} {a}H{x + 8}V{b}H{x - WIDE / 2 + 8:g}"
        for a, b in turns
    )
    return parts


def draw_columns(parts):
    """Return both columns at the start, as an image."""
    svg = "".join(_column(side, parts) for side in (0, 1))
    style = "font:12px sans-serif"
    label = "two decoders, from the embedding at the top to the logits"
    svg = f"<g fill='none' text-anchor='middle' style='{style}'>{svg}</g>"
    return svg_image(label, f"360 {HIGH}", svg)


def _column(side, parts):
    """Return one column as SVG, its moving parts named."""
    left = 8 + 184 * side
    middle, ink = left + WIDE / 2, _INK
    grey = colour("mask")

    def attributes(part):
        return " ".join(f"{k}='{v}'" for k, v in parts[part].items())

    def text(part, y, bold=False):
        more = " font-weight='600'" * bold
        said = parts[part]
        return (
            f"<text data-part='{part}' x='{middle:g}' y='{y}' fill='{ink}'"
            f"{more}>{said}</text>"
        )

    def box(part, y, height, shown=True):
        here = f"{part}-{side}"
        found = f"<rect x='{left}' y='{y}' width='{WIDE}' height='{height}' "
        found += "rx='4' style='fill:var(--page,#fff)'/>"
        found += f"<rect data-part='box-{here}' x='{left}' y='{y}' "
        found += f"width='{WIDE}' height='{height}' rx='4' "
        found += f"{attributes(f'box-{here}')}/>"
        return found + (text(here, y + height / 2 + 4) if shown else "")

    svg = text(f"name-{side}", 14, bold=True)
    svg += f"<path d='M{middle:g} 46V{HIGH - 36}' stroke='{grey}'/>"
    skip = f"skip-{side}"
    svg += f"<path data-part='{skip}' d='{parts[skip]}' stroke='{grey}'/>"
    svg += box("embedding", 24, 22)
    for place, y in zip(PLACES, _NORMS, strict=True):
        here = f"group-{place}-{side}"
        svg += f"<g data-part='{here}' {attributes(here)}>"
        svg += box(place, y, 20) + "</g>"
    svg += f"<rect x='{left}' y='88' width='{WIDE}' height='118' rx='4' "
    svg += f"style='fill:var(--page,#fff)' stroke='{colour('token')}'/>"
    svg += f"<text x='{middle:g}' y='106' fill='{ink}' font-weight='600'>"
    svg += "attention</text>"
    lines = "queries, keys", "biases", "rotation", "sees", "scores"
    for i, part in enumerate(lines):
        here = f"line-{part}-{side}"
        line = text(f"{part}-{side}", 125 + 18.5 * i)
        line = line.replace(f" fill='{ink}'", "")
        svg += f"<g data-part='{here}' {attributes(here)}>{line}</g>"
    svg += f"<rect data-part='frame-{side}' {attributes(f'frame-{side}')} "
    svg += f"x='{left - 5}' y='84' width='{WIDE + 10}' height='159' rx='6' "
    svg += f"stroke='{grey}' stroke-dasharray='4 3'/>"
    network = f"network-{side}"
    svg += f"<g data-part='{network}' {attributes(network)}>"
    svg += box("feed-forward", 312, 28) + "</g>"
    for i, y in enumerate(_PLUS):
        first = f"data-part='first-{side}' " * (not i)
        first += attributes(f"first-{side}") * (not i)
        svg += f"<g {first}><circle cx='{middle:g}' cy='{y}' r='8' "
        svg += f"stroke='{ink}' style='fill:var(--page,#fff)'/>"
        svg += f"<path d='M{middle - 4:g} {y}h8m-4 -4v8' stroke='{ink}'/>"
        part = f"residual-{i}-{side}"
        said = text(part, y + 4).replace(f" fill='{ink}'", "")
        said = said.replace(f"x='{middle:g}'", f"x='{middle - 32:g}'")
        line = f"line-{part}"
        svg += f"<g data-part='{line}' {attributes(line)}>{said}</g></g>"
    return svg + box("logits", HIGH - 36, 24)
