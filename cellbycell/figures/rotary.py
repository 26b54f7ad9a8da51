"""The moving pictures of *Rotary positions*."""

import math

from .moving import show_mistake, show_states
from .parts import svg_image, svg_texts

BLUE, ORANGE = "#2b4c7e", "#b35806"


def show_clock(turns):
    """Return a query and a key as the two hands of a clock.

    Parameters
    ----------
    turns
        The speed of each pair, in radians a step, (C,).

    Returns
    -------
    IPython.display.HTML
        Two positions and a pair are chosen; the angle between the hands shows.
    """

    def state(query, key, pair):
        turn = float(turns[pair])

        def end(at, long):
            x, y = math.cos(at * turn), math.sin(at * turn)
            return f"{180 + long * x:.1f} {100 - long * y:.1f}"

        angle = (query - key) * turn
        score = math.cos(angle)
        way = 0 if math.sin(angle) > 0 else 1
        said = (
            f"Distance {abs(query - key)}, {turn:.3f} radians a step, whole "
            f"circles aside: the angle is {math.acos(score):.2f}, and the "
            f"score {score:.2f}."
        )
        return said.replace("-", "−"), {
            "query": f"M180 100L{end(query, 88)}",
            "key": f"M180 100L{end(key, 70)}",
            "arc": f"M{end(key, 30)}A30 30 0 0 {way} {end(query, 30)}",
        }

    position = dict(type="range", min=0, max=16)
    return show_states(
        "rotary",
        [
            dict(name="query", label="query at position", value=5) | position,
            dict(name="key", label="key at position", value=3) | position,
            dict(name="pair", label="pair", type="radio", chosen=[0])
            | dict(choices=["0", "1", "2"]),
        ],
        state,
        _draw_clock,
    )


def _draw_clock(parts):
    """Return the picture of the start."""
    blue = f"style='stroke:{BLUE};stroke-width:3'"
    orange = f"style='stroke:{ORANGE};stroke-width:3'"
    return svg_image(
        "A circle with two arrows, the query and the key",
        "360 200",
        "<circle cx='180' cy='100' r='90' stroke='#767676'/>"
        f"<path data-part='query' d='{parts['query']}' {blue}/>"
        f"<path data-part='key' d='{parts['key']}' {orange}/>"
        f"<path data-part='arc' d='{parts['arc']}' stroke='#767676'/>"
        + svg_texts([((288, 40), "query"), ((288, 62), "key")])
        + f"<path d='M262 36h20' {blue}/><path d='M262 58h20' {orange}/>",
    )


def show_layouts(turns, query, key, positions, theirs, losses, texts):
    """Return the bet on pairs in place of halves.

    Parameters
    ----------
    turns
        The two functions that turn, in halves and in pairs.
    query, key
        Tensors of PyTorch, (B, H, T, K), at these positions (T,).
    theirs
        The query as a library turns it, (B, H, T, K).
    losses
        Of a trained model, by the name of the function.
    texts
        What each writes, in two lists.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    passed = []
    for turn in turns:
        found, later = turn(query, positions), turn(query, positions + 9)
        scores = found @ turn(key, positions).mT  # (B, H, T, S)
        shifted = later @ turn(key, positions + 9).mT  # (B, H, T, S)
        gaps = (found - theirs).abs().amax((0, 1, 3)).tolist()  # (T,)
        norms = (found.norm(dim=-1) - query.norm(dim=-1)).abs().max().item()
        change = (shifted - scores).abs().max().item()
        passed.append(
            {
                "the loss is below guessing": losses[turn.__name__]
                < math.log(30),
                "a shift of all positions changes no score": change < 1e-3,
                "every vector keeps its norm": norms < 1e-5,
                "position 0 is a library's": gaps[0] < 1e-5,
                "position 1 is a library's": gaps[1] < 1e-5,
            }
        )
    return show_mistake(
        "rotary-mistake",
        *([[text] for text in found] for found in texts),
        passed,
        "The usual test, the shift, passes: equation (3) holds for both "
        "layouts. So does position 0, which is turned by zero.",
    )
