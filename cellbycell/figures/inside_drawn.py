"""The drawings of *Look inside a real model*."""

from .draw import Picture

__all__ = ["draw_patch", "draw_path", "draw_taps"]


def draw_taps():
    """Return a layer with the two places from which we keep something.

    Returns
    -------
    Picture
        A stream that goes straight up, attention and network beside it.
    """
    picture = Picture(
        214,
        "A stream goes straight up past attention and network, which read it "
        "through a norm and add to it. Kept are the stream behind the layer, "
        "and the weights inside the attention.",
    )
    x, floor = 90, 196
    for name, role, y in (
        ("norm, attention", "query", 132), ("norm, network", "value", 66),
    ):  # fmt: skip
        box = picture.layer(170, y, 120, name, role, 26)
        picture.line((x, y + 40), (230, y + 40), box.bottom)
        picture.arrow(box.top, (230, y - 12), (x + 8, y - 12))
    picture.arrow((x, floor), (x, 22), width=4, role="output")
    for y in (120, 54):
        picture.plus(x, y, role="output")
    picture.text(x, floor + 14, "stream", role="output")
    picture.text(14, 38, "kept:", at="start", size=12)
    picture.text(14, 24, "streams", at="start", bold=True)
    picture.arrow((66, 30), (x - 6, 30), role="wrong")
    picture.text(312, 128, "kept:", at="start", size=12)
    picture.text(312, 146, "weights", at="start", bold=True)
    picture.arrow((290, 141), (310, 141), role="wrong")
    return picture


def draw_patch():
    """Return two prompts, and a stream that goes from one into the other.

    Returns
    -------
    Picture
        Tokens in columns, layers upwards; an arrow from prompt to prompt.
    """
    picture = Picture(
        250,
        "Two prompts side by side, their tokens as columns. After some layers "
        "the stream of Germany is put in the place of France's, and what is "
        "computed from there on may change: Paris becomes Berlin.",
    )
    for left, country, answer in (
        (8, "France", "?"),
        (200, "Germany", "Berlin"),
    ):
        words = "of", country, "is"
        for i, word in enumerate(words):
            x = left + 28 + 62 * i
            picture.text(x, 240, word, bold=word == country)
            picture.arrow((x, 224), (x, 60), width=3, role="token")
        for y in (196, 166, 104, 74):
            picture.line((left + 8, y), (left + 172, y))
        picture.text(left + 152, 44, answer, bold=True, role="output")
    picture.arrow(
        (290, 136), (106, 136), role="wrong", width=2.5,
    )  # fmt: skip
    picture.text(196, 128, "carried over", role="wrong", size=12)
    picture.text(190, 16, "layers upwards, tokens from left to right", size=12)
    return picture


def draw_path():
    """Return the way of the answer through the model.

    Returns
    -------
    Picture
        Tokens in columns, layers upwards: up at France, across in layer 23,
        up at the last token.
    """
    picture = Picture(
        262,
        "Five tokens as columns, layers upwards. What belongs to France goes "
        "up at its own token through 23 layers, across to the last token by "
        "head 4 of layer 23, and up through six more layers to Paris.",
    )
    words = "The", "capital", "of", "France", "is"
    places = [44 + 68 * i for i in range(5)]
    for x, word in zip(places, words, strict=True):
        picture.text(x, 252, word, bold=word in ("France", "is"))
        picture.line((x, 234), (x, 50))
    for y, name in ((206, "layer 0"), (104, "layer 23"), (62, "layer 29")):
        picture.line((28, y), (336, y))
        picture.text(372, y + 4, name, at="end", size=11)
    france, last = places[3], places[4]
    picture.arrow((france, 234), (france, 108), width=5, role="value")
    picture.arrow((france, 104), (last - 3, 104), width=5, role="query")
    picture.arrow((last, 100), (last, 40), width=5, role="output")
    picture.text(last, 30, "Paris", bold=True, role="output")
    picture.text((france + last) / 2, 94, "head 4", role="query", bold=True)
    picture.text(france - 8, 162, "France", role="value", at="end")
    return picture
