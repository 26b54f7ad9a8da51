"""Numbers and colours in sentences: the wrong ones are rejected."""

import math

import pytest
from matplotlib.figure import Figure

from tools.net.claims import check_claims
from tools.net.words import HUES, is_called


def panel():
    """Return axes with a matrix, light and dark, and a grey line."""
    axes = Figure().add_subplot()
    axes.imshow([[1, 0]], cmap="cividis")
    axes.grey = axes.plot([0, 1], color="0.6")[0].get_color()
    return axes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It has 4<!--= n -->.", "says 4, but n is 3"),
        ("It is 0.334<!--= n / 9 -->.", "says 0.334"),
        ("It is 3<!--= m -->.", "raises NameError"),
        ("It is 3,001<!--= 1000 * n -->.", "says 3,001"),
        ("It is −3<!--= n -->.", "says −3"),
        ("It is 3.1e-3<!--= n / 1000 -->.", "says 3.1e-3"),
        ("It is 0.3<!--= n * float('nan') -->.", "says 0.3"),
        ("It has 3 rows.", "computed by nothing"),
        ("It has 3<!--= 3 --> rows.", "names no variable"),
        ("It has three<!--= math.ceil(3) --> rows.", "names no variable"),
        ("It has 3<!--= sum(i for i in (1, 2)) --> rows.", "no variable"),
        ("It has four<!--= n --> rows.", "says four, but n is 3"),
        ("It is post-norm<!--= order -->.", "post-norm, but order is 'pre-"),
        ("Thirty-six<!--= 11 * n --> rows.", "says Thirty-six, but 11 * n is"),
        ("It has rows<!--= n -->.", "rows is neither a number nor a colour"),
        ("It takes 3<!--= n * 2**20 / 2**20 --> GiB.", "does not say GiB"),
        ("It is 3.0<!--= n --> per cent.", "does not say per cent"),
        ("It takes 3<!--= n --> bytes.", "does not say bytes"),
        ("It takes 3<!--= n * 1e3 / 1e3 --> µs.", "does not say µs"),
        ("In PyTorch it is 3<!--= n_tf -->.", "says 3 of PyTorch, by 'n_tf'"),
        ("PyTorch: 3<!--= n_tf --> in `torch.nn`", "says 3 of torch, by"),
        (
            "With `np.sum` 3<!--= n_keras -->.",
            "3 of np, by 'n_keras'. Correct",
        ),
        ("It is 3<!--= 100 * n / 1e2 -->.", "is in per cent, which the"),
        ("It is 3<!--= n * 2**20 / 2**20 --> big.", "write 3 MiB, or correct"),
        (
            "It is light<!--= pixel(panel, 0, 1) -->.",
            "#00224e, that is blue or dark",
        ),
        (
            "It is orange<!--= panel.grey -->.",
            "#999999, that is bright or grey",
        ),
    ],
)
def test_number_in_prose_that_is_wrong_is_rejected(text, expected):
    (message,) = check_claims(
        text,
        {
            **{"n": 3, "n_tf": 3, "n_keras": 3, "math": math},
            **{"order": "pre-norm", "panel": panel()},
        },
    )
    assert expected in message


@pytest.mark.parametrize(
    "text",
    [
        "It has 3<!--= n -->, **3**<!--= n --> and 0.333<!--= n / 9 -->.",
        "It is 3,000<!--= 1000 * n -->, −3<!--= -n -->.",
        "It is 3.0e-3<!--= n / 1e3 -->, 1.1<!--= math.log(3) -->.",
        "`x[1]`, $2^3$, [section 3.4](#x), GPT-2, float32\n\n```\n16\n```",
        "$-1$, $k = 0$, $12 a$, $4 \\cdot 16 = 64$, $d =$ 3<!--= n -->",
        "1. one\n2. two\n\n### Exercise 3: x (easy, 10 minutes)",
        "Three<!--= n -->, **thirty-three**<!--= 11 * n -->.",
        "Pre-norm<!--= order --> is the order, *pre-norm*<!--= order -->.",
        "2.0<!--= 2**20 * (n - 1) / 2**20 --> MiB, 75<!--= 25 * n * 100 / "
        "100 --> %, 3<!--= num_bytes --> bytes, 3<!--= n --> rows.",
        "In PyTorch 3<!--= n_torch -->, 3<!--= n_tf --> rows in Keras, "
        "3<!--= n_tf -->; and 3<!--= n --> in NumPy.\n3<!--= n_keras -->.",
        "200<!--= 100 * (n - 1) -->, 300<!--= 100 * n --> per cent.\n"
        "| 300<!--= 100 * n --> |\nSome 900<!--= 100 * round(300 * n / 100) "
        "-->.",
        "Light<!--= pixel(panel, 0, 0) -->, dark<!--= pixel(panel, 0, 1) -->, "
        "blue<!--= pixel(panel, 0, 1) -->, grey<!--= panel.grey -->.",
    ],
)
def test_true_number_in_prose_passes(text):
    names = {"n": 3, "num_bytes": 3, "order": "pre-norm", "panel": panel()}
    names["math"] = math
    names |= {f"n_{library}": 3 for library in ("torch", "tf", "keras")}
    assert check_claims(text, names) == []


@pytest.mark.parametrize(
    ("word", "colour"),
    [
        *(("purple", "#2d004b"), ("orange", "#7f3b08")),  # the ends of PuOr
        *(("orange", "#e08214"), ("blue", "#2b4c7e"), ("yellow", "#fde725")),
        *(("green", "#3b7d3b"), ("red", "#d7191c"), ("black", "black")),
        *(("white", "1.0"), ("bright", "#ffea46"), ("dark", "#00224e")),
    ],
)
def test_colour_has_its_name_and_no_other_hue_s(word, colour):
    assert is_called(colour, word)
    others = {*HUES, "white", "black", "grey"} - {word}
    if word not in ("bright", "dark"):
        assert not any(is_called(colour, other) for other in others)
