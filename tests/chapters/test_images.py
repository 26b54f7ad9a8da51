"""The chapter on images: cutting, places, sizes, CLIP, its mistakes."""

import copy
import inspect
import textwrap

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from cellbycell.common import largest_change
from cellbycell.pictures import (
    NAMES,
    SHAPES,
    draw_pairs,
    draw_pictures,
    name_ids,
    shuffle_patches,
)

pytestmark = pytest.mark.xdist_group("frameworks")
GRID = {
    "size": st.integers(1, 4),
    "rows": st.integers(1, 3),
    "columns": st.integers(1, 4),
    "colours": st.sampled_from([1, 3, 4]),
}


def broken(book, name, old, new):
    """Return a function of the chapter with one changed line."""
    source = textwrap.dedent(inspect.getsource(book[name]))
    assert source.count(old) == 1
    space = dict(book)
    exec(source.replace(old, new), space)
    return space[name]


def numbered(rows, columns, size, colours):
    """Return a picture of counting numbers, colours first."""
    count = rows * columns * size**2 * colours
    shape = colours, rows * size, columns * size
    return torch.arange(float(count)).reshape(1, *shape)


# Patches


@given(**GRID)
def test_each_patch_is_a_square(book, rows, columns, size, colours):
    picture = numbered(rows, columns, size, colours)
    found = book["cut_patches"](picture, size)
    assert found.shape == (1, rows * columns, colours * size**2)
    for place in range(rows * columns):
        row, column = size * (place // columns), size * (place % columns)
        want = picture[0, :, row : row + size, column : column + size]
        assert torch.equal(found[0, place], want.flatten())


@given(**GRID)
def test_both_frameworks_cut_alike(book, rows, columns, size, colours):
    picture = numbered(rows, columns, size, colours)
    found = book["cut_patches"](picture, size)
    found = found.unflatten(2, (colours, -1)).mT.flatten(2)
    last = picture.permute(0, 2, 3, 1).numpy()
    assert largest_change(book["cut_patches_tf"](last, size), found) == 0


@given(**GRID)
def test_patches_are_those_of_the_libraries(
    book, rows, columns, size, colours
):
    import tensorflow as tf

    picture = numbered(rows, columns, size, colours)
    want = F.unfold(picture, size, stride=size).mT
    assert torch.equal(book["cut_patches"](picture, size), want)
    last = picture.permute(0, 2, 3, 1).numpy()
    one = (1, size, size, 1)
    want = tf.image.extract_patches(last, one, one, (1, 1, 1, 1), "VALID")
    want = tf.reshape(want, (1, rows * columns, -1))
    assert largest_change(book["cut_patches_tf"](last, size), want) == 0


def test_a_view_keeps_the_shape_and_no_square(book):
    picture = numbered(2, 3, 4, 3)
    right = book["cut_patches"](picture, 4)
    wrong = book["view_patches"](picture, 4)
    assert right.shape == wrong.shape
    assert {*right.flatten().tolist()} == {*wrong.flatten().tolist()}
    assert not torch.equal(right, wrong)
    swapped = broken(
        book, "cut_patches", "0, 2, 4, 1, 3, 5", "0, 4, 2, 1, 3, 5"
    )
    turned = broken(
        book, "cut_patches", "0, 2, 4, 1, 3, 5", "0, 2, 4, 1, 5, 3"
    )
    for one in (swapped, turned):
        assert one(picture, 4).shape == right.shape
        assert not torch.equal(one(picture, 4), right)


def test_patches_shuffled_back_are_the_picture():
    pictures = draw_pictures(draw_pairs(3, 0), 0)
    order = np.random.default_rng(0).permutation(16)
    mixed = shuffle_patches(pictures, 4, order)
    assert largest_change(mixed, pictures) > 0.1
    back = shuffle_patches(mixed, 4, order.argsort())
    assert largest_change(back, pictures) == 0


# Pictures


def test_pictures_have_what_their_names_say():
    for number, name in enumerate(NAMES):
        colour, shape = name.split()
        (picture,) = draw_pictures([[number]], seed=0)
        bright = picture.max(axis=2) > 0.5
        assert bright.sum() == SHAPES[shape].sum()
        mean = picture[bright].mean(axis=0)
        assert (
            (mean.argmax() == "red green blue".split().index(colour))
            if (colour in ("red", "green", "blue"))
            else mean[:2].min() > 0.5
        )


def test_pairs_have_different_shapes_and_all_occur():
    pairs = draw_pairs(2000, 3)
    assert (pairs[:, 0] % 5 != pairs[:, 1] % 5).all()
    assert {*pairs.ravel()} == {*range(25)}
    assert name_ids().shape == (25, 3)


# Places


def test_a_bag_gives_the_same_for_any_order(book):
    images = book["images"][2000:2010]
    with torch.no_grad():
        want = book["bag"](images)
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(16)
            mixed = shuffle_patches(book["pictures"][2000:2010], 4, order)
            mixed = torch.tensor(mixed).permute(0, 3, 1, 2)
            assert largest_change(book["bag"](mixed), want) < 1e-4
            assert (
                largest_change(book["model"](mixed), book["model"](images)) > 1
            )


def share_after(book, model):
    """Train a classifier as the chapter does; return its share of right."""
    images, kinds = book["images"], book["kinds"]
    book["learn"](
        model,
        **book["settings"],
        loss_of=lambda model, i: book["loss_of_kinds"](
            model, images[i], kinds[i]
        ),
    )
    with torch.no_grad():
        right = model(images[2000:]).argmax(-1) == kinds[2000:]
    return right.float().mean()


@pytest.mark.parametrize("seed", [1, 2])
def test_other_seeds_learn_and_a_bag_tosses_a_coin(book, seed):
    shares = {}
    for kind in ("places", "bag"):
        model = book["Classifier"](book["ViT"](16, 4, 32), 32, 5)
        book["draw_weights"](model, seed=seed)
        if kind == "bag":
            model.vit.table.requires_grad_(False).zero_()
        shares[kind] = share_after(book, model)
    assert shares["places"] > 0.95 and 0.4 < shares["bag"] < 0.6


def test_a_mask_makes_a_small_picture_the_same_alone(book):
    import tensorflow as tf

    images, vit = book["images"], book["model"].vit
    sizes = [(16, 16), (8, 16), (16, 8), (4, 4), (12, 8)]
    cut = [images[n, :, :h, :w] for n, (h, w) in enumerate(sizes)]
    with torch.no_grad():
        rows, mask = book["embed_sizes"](vit, cut, 4)
        together = vit.encoder(rows, mask[:, None])
        assert mask.sum(1).tolist() == [h * w // 16 + 1 for h, w in sizes]
        for n, one in enumerate(cut):
            alone = vit.encoder(book["embed_sizes"](vit, [one], 4)[0])
            count = alone.shape[1]
            assert largest_change(together[n, :count], alone[0]) < 1e-5
        # A whole picture is as in the model itself.
        assert largest_change(together[0], vit(images[:1])[0]) < 1e-5
    vit = book["model_tf"].vit
    cut = [tf.constant(x.permute(1, 2, 0).numpy()) for x in cut]
    rows, mask = book["embed_sizes_tf"](vit, cut, 4)
    together = vit.encoder(rows, mask[:, None])
    for n, one in enumerate(cut):
        alone = vit.encoder(book["embed_sizes_tf"](vit, [one], 4)[0])
        count = alone.shape[1]
        assert largest_change(together[n, :count], alone[0]) < 1e-5


@pytest.mark.parametrize("new", [(2, 4), (4, 4), (5, 2), (3, 3), (7, 6)])
def test_tables_are_resized_as_in_transformers(book, new):
    import transformers as hf

    config = hf.ViTConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        image_size=12,
        patch_size=4,
    )
    vit = hf.ViTModel(config, add_pooling_layer=False).eval()
    height, width = 4 * new[0], 4 * new[1]
    table = vit.embeddings.position_embeddings
    fill = torch.empty(1, new[0] * new[1] + 1, 8)
    want = vit.embeddings.interpolate_pos_encoding(fill, height, width)
    ours = book["resized"](table[0].detach().numpy(), (3, 3), new)
    assert largest_change(ours, want[0].detach()) < 1e-5
    if new[0] != new[1]:
        swapped = book["resized"](table[0].detach().numpy(), (3, 3), new[::-1])
        assert largest_change(swapped, want[0].detach()) > 1e-3


def test_a_resized_grid_is_taken_for_a_square(book):
    """As the side road says: another number of places, or another shape."""
    import transformers as hf

    small = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    small |= dict(intermediate_size=8, patch_size=4)
    vit = hf.ViTModel(hf.ViTConfig(**small, image_size=[8, 12])).eval()
    with pytest.raises(RuntimeError):
        vit(torch.zeros(1, 3, 16, 16), interpolate_pos_encoding=True)
    vit = hf.ViTModel(hf.ViTConfig(**small, image_size=[8, 32])).eval()
    wide = torch.zeros(1, 3, 16, 16)
    read = vit.embeddings.interpolate_pos_encoding(
        torch.empty(1, 13, 8), 12, 16
    )
    assert vit(wide, interpolate_pos_encoding=True) is not None
    table = vit.embeddings.position_embeddings[0].detach().numpy()
    want = book["resized"](table, (4, 4), (3, 4))
    assert largest_change(read[0].detach(), want) < 1e-5


@given(st.integers(0, 5), st.integers(0, 5))
def test_a_grid_of_rotations_knows_differences_alone(book, down, right):
    for turn, make in (
        (book["rotary_grid"], torch.tensor),
        (book["rotary_grid_tf"], np.array),
    ):
        x = np.sin(np.arange(32.0) ** 2).reshape(2, 2, 8)
        query, key = (make(part.astype("float32")) for part in x)
        rows, columns = np.array([0.0, 1.0]), np.array([3.0, 1.0])
        scores = []
        for r, c in ((rows, columns), (rows + down, columns + right)):
            given = make(r.astype("float32")), make(c.astype("float32"))
            q, k = turn(query, *given), turn(key, *given)
            scores.append(np.asarray(q) @ np.asarray(k).T)
        assert largest_change(*scores) < 1e-4
    swapped = turn(query, given[1], given[0])
    if not np.allclose(*given):
        assert largest_change(swapped, q) > 1e-3


def test_the_rotation_is_that_of_qwen2_vl(book):
    from transformers.models.qwen2_vl import modeling_qwen2_vl

    apply = modeling_qwen2_vl.apply_rotary_pos_emb_vision
    x = torch.sin(torch.arange(96.0) ** 2).reshape(6, 1, 16)  # (T, H, K)
    rows, columns = torch.arange(6.0) // 3, torch.arange(6.0) % 3
    turns = 10000.0 ** (-torch.arange(0, 8, 2) / 8)
    angles = torch.cat([rows[:, None] * turns, columns[:, None] * turns], 1)
    angles = torch.cat([angles, angles], dim=1)  # (T, K)
    want, _ = apply(x, x, angles.cos(), angles.sin())
    # Pairs side by side, rows before columns: column c of theirs is ours.
    order = [i + 8 * half for i in range(8) for half in (0, 1)]
    ours = book["rotary_grid"](x[:, 0][:, order], rows, columns)
    assert largest_change(ours, want[:, 0][:, order]) < 1e-5


# CLIP


def test_the_loss_by_hand(book):
    images = F.normalize(torch.sin(torch.arange(12.0) ** 2).view(3, 4), dim=1)
    texts = F.normalize(torch.cos(torch.arange(12.0) ** 2).view(3, 4), dim=1)
    logits = (2 * images @ texts.T).double().numpy()
    rows = [np.log(np.exp(r).sum()) - r[n] for n, r in enumerate(logits)]
    columns = [np.log(np.exp(c).sum()) - c[n] for n, c in enumerate(logits.T)]
    want = (np.mean(rows) + np.mean(columns)) / 2
    scale = torch.tensor(2.0).log()
    assert abs(book["clip_loss"](images, texts, scale) - want) < 1e-5
    one_way = broken(book, "clip_loss", "logits.T, own", "logits, own")
    assert abs(one_way(images, texts, scale) - want) > 1e-3


def test_the_first_loss_is_that_of_chance(book):
    for count in (8, 24):
        x = torch.randn(2, count, 512, generator=torch.manual_seed(0))
        x = F.normalize(x, dim=-1)
        assert (
            abs(book["clip_loss"](*x, torch.zeros(())) - np.log(count)) < 0.05
        )


def test_half_of_a_gradient_is_lost_without_the_others(book):
    """Two machines, own rows against all: gathered with gradient, or not."""
    x = torch.sin(torch.arange(64.0) ** 2).view(2, 4, 8)
    images, texts = (F.normalize(part, dim=1) for part in x)
    images, texts = images.requires_grad_(), texts.requires_grad_()
    whole = book["clip_loss"](images, texts, torch.ones(()))
    want = torch.cat(torch.autograd.grad(whole, [images, texts]))
    found = {}
    for cut in (False, True):
        total = torch.zeros_like(want)
        values = []
        for part in (slice(0, 2), slice(2, 4)):
            own = torch.arange(4)[part]
            both = []
            for y in (images, texts):
                other = y.detach() if cut else y
                keep = torch.zeros(4, 1)
                keep[part] = 1
                both.append(keep * y + (1 - keep) * other)
            scale = torch.ones(()).exp()
            loss = F.cross_entropy(scale * images[part] @ both[1].T, own)
            loss = loss + F.cross_entropy(scale * texts[part] @ both[0].T, own)
            values.append(loss.item() / 2)
            total += torch.cat(torch.autograd.grad(loss / 2, [images, texts]))
        assert abs(np.mean(values) - whole.item()) < 1e-6
        found[cut] = (total / 2 - want).norm() / want.norm()
    assert found[False] < 1e-6 and found[True] > 0.2


def first_five(book, clip):
    """Return the names of the pictures that a search finds first."""
    with torch.no_grad():
        vectors = clip.of_images(book["album_images"][80:].flatten(0, 1))
        found = vectors @ clip.of_texts(book["names"][2:3])[0]
    return [NAMES[n % 25] for n in found.argsort(descending=True)[:5]]


def named(book, clip, number):
    """Return the likeliest names of the kept-out pictures of a name."""
    with torch.no_grad():
        vectors = clip.of_images(book["album_images"][80:, number])
        best = (vectors @ clip.of_texts(book["names"]).T).argmax(-1)
    return [NAMES[n] for n in best]


@pytest.mark.parametrize(("seed", "most"), [(4, True), (40, False)])
def test_other_seeds_find_red_crosses_and_some_name_them(book, seed, most):
    """A search finds them, though they may have got the name of a ring."""
    clip = fresh(book, seed, book["seen"])
    first = first_five(book, clip)
    assert first.count("red cross") >= 4
    best = named(book, clip, NAMES.index("red cross"))
    assert (best.count("red cross") > len(best) / 2) == most


def test_a_seed_that_finds_red_rings_first(book):
    clip = fresh(book, 5, book["seen"])
    first = first_five(book, clip)
    assert first.count("red ring") >= 3


def fresh(book, seed, seen):
    """Return a CLIP that is trained on some names."""
    text = book["TextEncoder"](len(book["WORDS"]), 3, 32)
    clip = book["Clip"](book["ViT"](16, 4, 32), text, 32, 16)
    parts = clip.image, clip.text, clip.image_proj, clip.text_proj
    for number, part in enumerate(parts, start=seed + 1):
        book["draw_weights"](part, seed=number)
    book["learn"](
        clip,
        np.arange(80),
        steps=300,
        rate=0.004,
        loss_of=lambda clip, i: book["clip_loss"](
            *clip(book["album_images"][i[:24], seen], book["names"][seen]),
            clip.log_scale,
        ),
    )
    return clip


def test_many_blue_rings_are_taken_for_another_blue_thing(book):
    """As the chapter says of another name that is held out."""
    number = NAMES.index("blue ring")
    seen = [n for n in range(25) if n != number]
    for seed in (0, 2):
        best = named(book, fresh(book, seed, seen), number)
        others = best.count("blue bar") + best.count("blue square")
        assert others / len(best) > 0.3


def test_both_cosines_grow_on_the_diagonal(book):
    for before, after in (("before", "after"), ("before_tf", "after_tf")):
        diagonals = []
        for name in (before, after):
            cosines = np.asarray(book[name])
            rest = cosines[~np.eye(25, dtype=bool)].mean()
            diagonals.append(np.diag(cosines).mean() - rest)
        assert diagonals[0] < 0.1 and diagonals[1] > 0.7


def test_red_crosses_were_never_shown_and_are_found(book):
    assert [NAMES[n] for n in range(25) if n not in book["seen"]] == [
        "red cross"
    ]
    for found in (book["found"].numpy(), book["found_tf"].numpy()):
        assert {*(found.argsort()[-5:] % 25)} == {NAMES.index("red cross")}


# What else is said


def test_the_mean_of_all_outputs_serves_as_well(book):
    class Mean(book["Classifier"]):
        def forward(self, images):
            return self.linear(self.vit(images).mean(1))

    model = Mean(book["ViT"](16, 4, 32), 32, 5)
    book["draw_weights"](model, seed=0)
    assert share_after(book, model) > 0.95


def test_a_view_trains_as_well_in_both_frameworks(book):
    for name in ("right", "by_view"):
        assert min(book[name].mean(), book[f"{name}_tf"].mean()) > 0.95


def test_the_class_token_looks_left(book):
    for name in ("looks", "looks_tf"):
        grid = book[name].reshape(-1, 4, 4)
        assert grid[:, :, :2].sum((1, 2)).mean() > 0.7


def test_with_two_layers_the_last_map_can_be_more_even(book):
    model = book["Classifier"](book["ViT"](16, 4, 32, num_layers=2), 32, 5)
    book["draw_weights"](model, seed=2)
    right = share_after(book, model)
    with torch.no_grad():
        looks = book["looks_of"](model.vit, book["images"][2000:])
    shares = [
        np.asarray(found).reshape(-1, 4, 4)[:, :, :2].sum((1, 2)).mean()
        for found in (book["looks"], looks)
    ]
    assert right > 0.95 and shares[1] < shares[0] - 0.05


def test_means_of_pixels_are_those_of_the_processors():
    from transformers.image_utils import (
        IMAGENET_STANDARD_MEAN,
        OPENAI_CLIP_MEAN,
    )

    assert IMAGENET_STANDARD_MEAN == [0.5, 0.5, 0.5]
    assert np.round(OPENAI_CLIP_MEAN, 2).tolist() == [0.48, 0.46, 0.41]


def test_the_pooled_output_of_a_vit_has_one_more_layer():
    import transformers as hf

    small = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    small |= dict(intermediate_size=8, patch_size=4, image_size=8)
    vit = hf.ViTModel(hf.ViTConfig(**small)).eval()
    found = vit(torch.zeros(1, 3, 8, 8))
    want = vit.pooler.dense(found.last_hidden_state[:, 0]).tanh()
    assert largest_change(found.pooler_output.detach(), want.detach()) < 1e-6


def test_the_kit_does_not_look_for_patches_by_view(book):
    from cellbycell.checks import check_model

    pictures = book["images"][:4]
    report = check_model(book["viewed"].vit, pictures, patch=4)
    assert not report.failed and not report.errors


def test_patches_by_view_show_when_true_ones_are_exchanged(book):
    order = np.arange(16)
    order[[0, 15]] = 15, 0
    pictures = book["pictures"][2000:2010]
    mixed = shuffle_patches(pictures, 4, order)
    moved = []
    for name in ("model", "viewed"):
        vit = copy.deepcopy(book[name].vit).requires_grad_(False)
        vit.table.zero_()
        both = [
            vit(torch.tensor(x).permute(0, 3, 1, 2))[:, 0]
            for x in (pictures, mixed)
        ]
        moved.append(largest_change(*both))
    assert moved[0] < 1e-4 and moved[1] > 0.1
