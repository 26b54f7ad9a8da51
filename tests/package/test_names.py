"""Names: the stored ones, the split, the rows, and the first weights."""

from importlib import import_module

import numpy as np
import pytest

from cellbycell import names

NAMED = {
    "country FI": ["finland", "suomi"],
    "language fi": ["suomi", "finnish"],
    **{f"city {c}": [c * 3] for c in "abcdefgh"},
}


def texts(rows):
    return set(names.decode_names(rows))


def test_the_stored_names_are_those_of_babel():
    pytest.importorskip("babel")
    written = pytest.importorskip("benchmarks.names")
    assert names._FILE.read_text("utf-8") == written.text()


def test_what_the_book_says_of_the_rows():
    named = names.read_names()
    train_rows, held_rows = names.split_names(named)
    assert train_rows.shape == (8240, 22) and held_rows.shape == (902, 22)
    train, held = texts(train_rows), texts(held_rows)
    assert len(train) == 8240 and not train & held
    out = [thing for thing, of in named.items() if not train & set(of)]
    assert all(set(of) <= held for thing, of in named.items() if thing in out)
    assert len(out) >= 0.1 * len(named) - 1
    assert sum(len(of) for of in named.values()) > 9142 == len(train | held)


@pytest.mark.parametrize("seed", range(20))
def test_a_name_of_two_things_is_held_out_with_either(seed):
    train, held = map(texts, names.split_names(NAMED, share=0.2, seed=seed))
    assert not train & held and len(train | held) == 11
    if {"finland"} & held or {"finnish"} & held:
        assert "suomi" in held


def test_a_list_is_split_name_by_name():
    given = [f"{a}{b}" for a in "abcde" for b in "vwxyz"]
    train, held = names.split_names(given, share=0.2)
    assert len(train) == 20 and len(held) == 5
    assert texts(train) | texts(held) == set(given)
    assert train.shape[1] == held.shape[1] == 4


def test_rows_go_there_and_back():
    given = ["o'hara", "saint-denis", "new york", "a"]
    rows = names.encode_names(given)
    assert rows.shape == (4, 13) and rows.dtype == np.int64
    assert not rows[:, 0].any() and not rows[:, -1].any()
    assert names.decode_names(rows) == given
    assert names.decode_names([[0, 1, 2], [0, 0, 1], [0]]) == ["ab", "", ""]
    assert names.plain("Åland, Österreich") == "aland, osterreich"


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: names.encode_names(["Ada"]), "'A' in 'Ada'.*plain"),
        (lambda: names.encode_names(["a.b"]), r"'\.' in 'a\.b'"),
        (lambda: names.encode_names(["route 3"]), "'3' in 'route 3'"),
        (
            lambda: names.encode_names(["a1", "b", "c2!"]),
            "'1' in 'a1', '2' in 'c2!', '!' in 'c2!'",
        ),
        (lambda: names.encode_names([""]), "empty: leave it out"),
        (lambda: names.split_names("ada"), "not one string"),
        (lambda: names.encode_names(["abc"], 4), "3 letters .* length=4"),
        (lambda: names.split_names([]), "0 names for training"),
        (lambda: names.split_names(["ada"]), "0 held out: give more"),
        (lambda: names.split_names(["ada", "bo"], 1.0), "0 names for train"),
    ],
)
def test_bad_names_are_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def models():
    """Return the same model in both frameworks."""
    torch = pytest.importorskip("torch")
    keras = pytest.importorskip("keras")
    pytest.importorskip("tensorflow")
    pt = import_module("cellbycell.pytorch")
    tf = import_module("cellbycell.tensorflow")
    nn, layers = torch.nn, keras.layers
    ours = nn.Sequential(
        nn.Embedding(30, 8),
        pt.AddPositions(),
        pt.Causal(pt.Encoder(1, 8, 2, 12, norm_first=True)),
        nn.Linear(8, 30),
    )
    twin = keras.Sequential(
        [
            layers.Embedding(30, 8),
            tf.AddPositionsTF(),
            tf.CausalTF(tf.EncoderTF(1, 8, 2, 12, norm_first=True)),
            layers.Dense(30),
        ]
    )
    return pt, tf, ours, twin


@pytest.mark.xdist_group("frameworks")
def test_both_frameworks_begin_and_learn_alike():
    pt, tf, ours, twin = models()
    given = [a + b + c for a in "abc" for b in "-' " for c in "xyz"]
    rows, held = names.split_names(given)
    for model in (ours, twin):
        names.initialise(model, seed=3)
    ids = rows[:, :-1]
    before = ours(import_module("torch").tensor(ids)).detach().numpy()
    assert np.allclose(before, twin(ids), atol=1e-5)
    losses = pt.learn(ours, rows, steps=20, decay=0.3, seed=1)
    losses_tf = tf.learn_tf(twin, rows, steps=20, decay=0.3, seed=1)
    assert np.allclose(losses[:4], losses_tf[:4], atol=1e-4)
    assert abs(losses[-1] - losses_tf[-1]) < 0.03
    assert losses[-1] < losses[0] - 1
    found = pt.name_loss(ours, held).item()
    assert found == pytest.approx(float(tf.name_loss_tf(twin, held)), abs=0.03)


@pytest.mark.xdist_group("frameworks")
def test_what_follows_the_end_of_a_name_does_not_count():
    pt, tf, ours, twin = models()
    for model in (ours, twin):
        names.initialise(model)
    short = names.encode_names(["abc", "xy"])
    wide = names.encode_names(["abc", "xy"], 12)
    for loss, model in [(pt.name_loss, ours), (tf.name_loss_tf, twin)]:
        losses = [loss(model, rows) for rows in (short, wide)]
        losses = [getattr(x, "detach", lambda x=x: x)() for x in losses]
        assert np.allclose(*losses, atol=1e-5)


@pytest.mark.xdist_group("frameworks")
def test_first_weights_have_their_sizes():
    *_, ours, _ = models()
    names.initialise(ours)
    for name, weight in ours.named_parameters():
        if name.endswith("scale"):
            assert (weight == 1).all()
        elif weight.ndim == 1:
            assert not weight.any()
        elif name == "0.weight":
            assert abs(weight.norm(dim=1).mean() - 1) < 0.2
        else:
            wanted = (2 / sum(weight.shape)) ** 0.5
            assert abs(weight.std() / wanted - 1) < 0.3
