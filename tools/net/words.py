"""What a number or a colour is called in a sentence."""

ONES = """zero one two three four five six seven eight nine ten eleven twelve
thirteen fourteen fifteen sixteen seventeen eighteen nineteen""".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
NUMBERS = {word: value for value, word in enumerate(ONES)} | {
    (f"{word}-{one}" if value else word): 10 * ten + value
    for ten, word in enumerate(TENS, 2)
    for value, one in enumerate(ONES[:10])
}
# Where a hue begins and ends on the circle, whose round is 1.
HUES = {
    "red": (-0.05, 0.04),
    "orange": (0.04, 0.13),
    "yellow": (0.13, 0.19),
    "green": (0.19, 0.45),
    "blue": (0.45, 0.7),
    "purple": (0.7, 0.95),
}
SHADES = {"light", "bright", "dark", "white", "black", "grey"}
COLOURS = {*HUES, *SHADES}


def is_called(colour, word):
    """Tell whether a word of COLOURS names a colour.

    colour: whatever matplotlib takes for one, such as "0.6" or (1, 0, 0).
    """
    from matplotlib.colors import rgb_to_hsv, to_rgb  # not where none is said

    red, green, blue = to_rgb(colour)
    hue, saturation, _ = rgb_to_hsv((red, green, blue))
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    if word in HUES:
        begin, end = HUES[word]
        return saturation > 0.2 and begin <= (hue + 0.05) % 1 - 0.05 < end
    return {
        "light": light > 0.55,
        "bright": light > 0.55,
        "dark": light < 0.45,
        "white": light > 0.97,
        "black": light < 0.05,
        "grey": saturation < 0.1 and 0.05 <= light <= 0.97,
    }[word]


def code(colour):
    """Return a colour as #rrggbb, with the words that name it."""
    from matplotlib.colors import to_hex

    called = sorted(word for word in COLOURS if is_called(colour, word))
    return f"{to_hex(colour)}, that is {' or '.join(called) or 'no word'}"


def pixel(ax, row, column):
    """Return the colour of a cell of the matrix that a panel shows."""
    image = ax.images[0]
    return image.to_rgba(image.get_array()[row, column])
