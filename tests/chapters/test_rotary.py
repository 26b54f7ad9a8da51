"""The chapter on rotary positions: its functions, and what it claims."""

import math
import re
from importlib import import_module

import numpy as np
import pytest
import torch

from benchmarks import far
from cellbycell.breaks import ask_smol
from cellbycell.figures.rotary_far import read_far
from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.mark.parametrize("name", ["rotary", "rotary_halves"])
def test_positions_of_each_row_are_its_own(chapter, name):
    """Left padding counts positions row by row."""
    book = chapter("rotary")
    x = torch.sin(torch.arange(2 * 3 * 5 * 8.0) ** 2).reshape(2, 3, 5, 8)
    positions = torch.tensor([[0, 0, 1, 2, 3], [0, 1, 2, 3, 4]])
    both = book[name](x, positions[:, None])
    for row, where in enumerate(positions):
        assert torch.allclose(both[row], book[name](x[row], where))
    twin = book[f"{name}_tf"](x.numpy(), positions[:, None].numpy())
    assert np.allclose(both, twin, atol=1e-6)


@pytest.mark.parametrize("name", ["rotary", "rotary_tf", "rotary_halves"])
def test_an_odd_width_is_refused(chapter, name):
    x = np.ones((2, 5), "float32")
    x = x if name.endswith("_tf") else torch.tensor(x)
    with pytest.raises(ValueError, match="even"):
        chapter("rotary")[name](x, torch.arange(2))


def test_wide_heads_show_another_base_at_position_1(chapter):
    book = chapter("rotary")
    given = torch.sin(torch.arange(3 * 2 * 3 * 7 * 64.0) ** 2)
    given = given.reshape(3, 2, 3, 7, 64)
    marks = book["noticed_by"](book["mistakes"]["another base"], *given)
    assert marks["position 1"] and not marks["shift"]


def test_far_positions_need_many_digits(chapter):
    """A shift changes scores in the fifth decimal, a far one in the third."""
    rotary = chapter("rotary")["rotary"]

    def error(dtype, shift):
        x = torch.sin(torch.arange(8 * 64) ** 2.0).to(dtype).reshape(8, 64)
        here = rotary(x, torch.arange(8))
        there = rotary(x, torch.arange(8) + shift)
        return float((there @ there.T - here @ here.T).abs().max())

    assert error(torch.float32, 7) < 1e-4
    assert 1e-3 < error(torch.float32, 100_000) < 0.1
    assert error(torch.float64, 100_000) < 1e-9


def test_a_bias_for_the_distance_is_one_more_column(chapter):
    """And the softmax makes a factor out of it."""
    book = chapter("rotary")
    attend, mask, bias = book["attend"], book["causal_mask"], book["bias"]
    slopes, positions = book["slopes"][:, None, None], book["positions"]
    x = torch.sin(torch.arange(4 * 7 * 4.0) ** 2).reshape(4, 7, 4)
    scores = (x @ x.mT / 2 + bias).masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-1)
    ones, column = torch.ones(4, 7, 1), slopes * positions[:, None]
    longer_query = torch.cat([x * math.sqrt(5 / 4), ones], -1)
    longer_key = torch.cat([x, column * math.sqrt(5)], -1)
    by_column = attend(longer_query, longer_key, x, mask)[1]
    assert torch.allclose(by_column, weights, atol=1e-6)
    faded = attend(x, x, x, mask)[1] * bias.exp()
    faded = faded / faded.sum(-1, keepdim=True)
    assert torch.allclose(faded, weights, atol=1e-6)
    assert np.allclose(bias, book["bias_tf"])


def test_turned_attention_differs_from_the_second_position_on(chapter):
    """The first position is turned by zero; both frameworks agree."""
    book = chapter("rotary")
    x = np.sin(np.arange(2 * 7 * 12.0) ** 2).reshape(2, 7, 12)
    found = {}
    for name in ("RotaryAttention", "MultiHeadAttention"):
        for kind, given in [("", torch.tensor(x).float()), ("TF", x)]:
            layer = book[name + kind](12, 3)
            book["initialise"](layer)
            mask = np.tril(np.ones((7, 7), bool))
            mask = mask if kind else torch.tensor(mask)
            output = layer(given, given, given, mask)
            found[name, kind] = output if kind else output.detach()
        assert np.allclose(found[name, ""], found[name, "TF"], atol=1e-5)
    gaps = [np.asarray(found[name, ""]) for name, kind in found if kind]
    gaps = np.abs(gaps[0] - gaps[1]).max((0, 2))  # (T,)
    assert gaps[0] < 1e-6 < 1e-2 < gaps[1:].min()


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_a_norm_after_the_rotation_shows_if_scales_differ_in_a_pair(
    chapter, kind
):
    """Pairs of equal scales, however far apart, turn as they did."""
    rotary = chapter("rotary")[f"rotary{kind}"]
    x = np.random.default_rng(0).standard_normal((5, 6)).astype("float32")
    positions = np.arange(5)
    if not kind:
        x, positions = torch.tensor(x), torch.tensor(positions)
    for scales, seen in [([1, 1, 5, 5, 9, 9], False), ([1, 2] * 3, True)]:
        scale = np.float32(scales) if kind else torch.tensor(scales)
        before = np.asarray(rotary(x * scale, positions))
        after = np.asarray(rotary(x, positions) * scale)
        assert np.allclose(before, after, atol=1e-5) != seen


def test_the_copy_from_far_away_is_measured_again():
    """Two points of the figure, on both sides of the fall."""
    found = read_far()
    for gap in (4000, 7000):
        text, copy = far.losses("as it is", gap)
        assert abs(text - found["text"]["as it is"]) < 0.002
        place = found["gaps"].index(gap)
        assert abs(copy - found["copy"]["as it is"][place]) < 0.002


def test_what_a_shift_of_all_positions_changes():
    """Nothing, in a published model."""
    right = ask_smol()
    by = "positions + 1000, self.base)"
    moved = ask_smol("turn(x, positions, self.base)", f"turn(x, {by}")
    assert abs(moved.loss - right.loss) < 1e-3
    assert moved.answer == right.answer


def layout_of(family):
    """Return how a family of Transformers takes columns into pairs."""
    module = import_module(f"transformers.models.{family}.modeling_{family}")
    half_turn = getattr(module, "rotate_half", None)
    half_turn = half_turn or module.rotate_every_two
    x = torch.tensor([[[[1.0, 2.0, 3.0, 4.0]]]])
    layouts = {(-3, -4, 1, 2): "halves", (-2, 1, -4, 3): "pairs"}
    return layouts[tuple(half_turn(x).flatten().int().tolist())]


def test_the_layouts_of_the_families():
    """The table of the chapter has what Transformers does."""
    chapter = (BOOK / "rotary.ipynb").read_text("utf-8")
    named = {}
    for layout in ("halves", "pairs"):
        (row,) = re.findall(rf"\| {layout} \| (.*?) \|", chapter)
        for family in row.split(", "):
            file = family.lower().replace("ernie 4.5", "ernie4_5")
            file = file.replace("gpt-neox", "gpt_neox").replace(" 2", "2")
            named[file.replace("-", "")] = layout
    assert len(named) == 17
    for family, layout in named.items():
        assert layout_of(family) == layout, family
