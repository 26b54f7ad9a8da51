"""The chapter on the decoder: its model, and how it writes."""

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.mark.parametrize("kind", ["arrays", "lists", "tensors"])
def test_a_pair_of_rows_is_right_too(book, kind):
    make = {"arrays": np.array, "lists": list, "tensors": torch.tensor}[kind]

    def pair(*given):
        inputs, targets = book["inputs_and_targets_solution"](*given)
        return make(inputs), make(targets)

    assert book["check_inputs_and_targets"](pair) == "Exercise 1: correct."
    swapped = book["check_inputs_and_targets"](lambda *x: pair(*x)[::-1])
    says = "the targets are the inputs; exchange them"
    assert swapped == f"Exercise 1: {says}."


def test_the_shift_of_rows_with_pads_is_right(book):
    """Also of rows in which no input is the end, as in exercise 1."""
    given = ([[5, 6, 7], [8]], 1, 2)
    rows = torch.tensor(book["inputs_and_targets_solution"](*given))
    assert book["is_shifted"](*rows)
    assert book["is_shifted"](book["input_ids"], book["target_ids"])
    for wrong in (rows[[0, 0]], rows[[1, 1]], rows[[1, 0]]):
        assert not book["is_shifted"](*wrong)


# The model, in both frameworks.


def both(book, name, *sizes, **options):
    """Return what a class and its twin make of the same arguments."""
    pair = book[name], book[f"{name}TF"]
    return [make(*sizes, **options) for make in pair]


def rates(model):
    """Return the rates of all dropouts in a model of either framework."""
    if hasattr(model, "modules"):
        return [m.p for m in model.modules() if hasattr(m, "p")]
    return [p.rate for p in model._flatten_layers() if hasattr(p, "rate")]


def test_one_dropout_reaches_all_parts_by_position_too(book):
    sizes = (7, 1, 4, 2, 3)
    for model in both(book, "Transformer", *sizes, False, 0.5):
        assert rates(model) == [0.5] * (4 + 6 + 1)
    for model in both(book, "Transformer", *sizes):
        assert rates(model) == [0.0] * (4 + 6 + 1)


def test_dropout_acts_on_words_with_positions_together(book):
    tf = book["tf"]
    got, ids = [], np.array([[3, 1, 2], [2, 0, 0]])

    def drop(x, training=None):
        got.append(x)
        return 0 * x

    model, model_tf = both(book, "Transformer", 7, 1, 4, 2, 3)
    for ours, method, given in [
        (model, "forward", torch.tensor(ids)),
        (model_tf, "call", tf.constant(ids)),
    ]:
        with torch.no_grad():
            whole = ours.embed(given)
            setattr(ours.dropout, method, drop)
            assert not np.asarray(ours.embed(given)).any()
        assert np.array_equal(got.pop(), whole) and not got


def test_dropout_acts_on_what_each_sublayer_returns(book):
    """A rate near one leaves what dropout does not reach: in pre-norm, x."""
    tf = book["tf"]
    sizes = (4, 2, 3, True, 1 - 1e-7)
    layer, layer_tf = both(book, "DecoderLayer", *sizes)
    x = np.float32(np.random.default_rng(0).normal(size=(2, 3, 4)))
    found = layer(torch.tensor(x), torch.tensor(x)).detach()
    found_tf = layer_tf(tf.constant(x), tf.constant(x), training=True)
    assert np.array_equal(found, x) and np.array_equal(found_tf, x)


@pytest.mark.parametrize("d_model", [4, 64])
def test_a_new_table_is_as_wide_as_the_text_says(book, d_model):
    keras = book["keras"]
    torch.manual_seed(0), keras.utils.set_random_seed(0)
    sizes = (2000, 1, d_model, 2, 3)
    model, model_tf = both(book, "Transformer", *sizes)
    table_tf = model_tf.embedding.embeddings.numpy()
    for table in (model.embedding.weight.detach().numpy(), table_tf):
        assert np.isclose(table.std() * np.sqrt(d_model), 1, rtol=0.05)
        assert abs(table.mean()) < 0.1 / np.sqrt(d_model)


def test_a_model_works_on_the_device_of_its_input(book):
    ids = torch.ones(2, 5, dtype=torch.int64, device="meta")
    model = book["Transformer"](7, 1, 4, 2, 3).to("meta")
    logits = model(ids, ids[:, :3])
    assert logits.shape == (2, 3, 7) and logits.device.type == "meta"


def test_a_graph_knows_no_lengths(book):
    tf = book["tf"]
    model = book["TransformerTF"](7, 1, 4, 2, 3)
    unknown = tf.TensorSpec((None, None), tf.int32)
    graph = tf.function(model, input_signature=[unknown, unknown])
    for shape, longer in [((2, 3), (2, 5)), ((1, 6), (1, 2))]:
        ids = tf.ones(shape, tf.int32), tf.ones(longer, tf.int32)
        assert np.allclose(graph(*ids), model(*ids), atol=1e-6)


@pytest.mark.parametrize("norm_first", [False, True])
def test_epsilon_is_carried_and_the_checks_fit_every_size(book, norm_first):
    model = book["Transformer"](9, 3, 8, 2, 5, norm_first)
    book["draw_model"](model, 0)
    for part in model.modules():
        if hasattr(part, "epsilon"):
            part.epsilon = 0.5
    ids = torch.tensor([[1, 3, 4, 5, 2], [1, 6, 2, 0, 0]])
    rows = ids[:, 1:], ids[:, :-1]
    assert all(book["run_model_checks"](model, model, *rows).values())


# How it writes.


class Scripted:
    """A model of either framework that writes rows of ids, whatever it reads.

    steps: how often it was called.
    """

    def __init__(self, rows, tensor):
        self.rows, self.tensor, self.steps = np.array(rows), tensor, 0

    def encode(self, source_ids):
        return None, None

    def decode(self, input_ids, memory, memory_mask):
        self.steps += 1
        seq_len = input_ids.shape[1]
        right = self.rows[:, seq_len - 1, None] == np.arange(9)  # (B, N)
        logits = np.zeros((len(self.rows), seq_len, 9), np.float32)
        logits[:, -1] = right
        return self.tensor(logits)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("kind", ["", "_tf"])
@pytest.mark.parametrize("start", [1, 2])
def test_greedy_decoding_stops_when_all_rows_have_ended(
    book, dtype, kind, start
):
    """Also where the start is the end."""
    tf = book["tf"]
    tensor = tf.constant if kind else torch.tensor
    decode = book[f"greedy_decode{kind}"]
    model = Scripted([[5, 2, 7, 7, 7], [4, 3, 6, 2, 7]], tensor)
    source = tensor(np.ones((2, 3), dtype))
    written = decode(model, source, start, 2, 5).numpy()
    assert written.tolist() == [[start, 5, 2, 0, 0], [start, 4, 3, 6, 2]]
    assert written.dtype == dtype
    assert model.steps == 4
    cut = decode(model, source, start, 2, 2).numpy()
    assert cut.tolist() == [[start, 5, 2], [start, 4, 3]]


# How it writes names


def by_position(rows, tensor):
    """Return a model whose next id depends on the position alone.

    rows: the probabilities (T, N) after each position.
    """
    logits = np.log(np.maximum(np.float32(rows), 1e-30))

    def model(ids):
        shape = (*ids.shape, logits.shape[1])
        return tensor(np.broadcast_to(logits[: ids.shape[1]], shape).copy())

    return model


@pytest.fixture(params=["", "_tf"])
def writes(request, book):
    """Return write_names and what makes its framework's tensors."""
    tensor = book["tf"].constant if request.param else torch.tensor
    return book[f"write_names{request.param}"], tensor


def test_letters_are_drawn_by_their_probabilities(writes):
    write_names, tensor = writes
    shares = [0.0, 0.5, 0.3, 0.2]
    rows = write_names(by_position([shares], tensor), 4000, max_len=1)
    assert rows.shape == (4000, 2) and rows.dtype == np.int64
    assert not rows[:, 0].any()
    found = np.bincount(rows[:, 1], minlength=4) / 4000
    assert np.allclose(found, shares, atol=0.02) and found[0] == 0


def test_zeros_follow_the_end_whatever_the_model_says(writes):
    write_names, tensor = writes
    letters = np.eye(4)[[2, 0, 3, 3]]
    rows = write_names(by_position(letters, tensor), 2, max_len=4)
    assert rows.tolist() == [[0, 2, 0, 0, 0]] * 2


def test_a_row_is_the_same_in_a_longer_list_and_other_with_each_seed(writes):
    write_names, tensor = writes
    model = by_position(np.full((6, 9), 1 / 9), tensor)
    few, many = (write_names(model, count, 6) for count in (3, 50))
    assert np.array_equal(few, many[:3])
    assert not np.array_equal(few, write_names(model, 3, 6, seed=1))


def test_a_point_above_all_rounded_slices_gives_the_last_letter(
    writes, monkeypatch
):
    class Last:
        def random(self, shape):
            return np.full(shape, 1 - 1e-12)

    write_names, tensor = writes
    monkeypatch.setattr(np.random, "default_rng", lambda seed: Last())
    model = by_position(np.full((1, 30), 1 / 30), tensor)
    assert write_names(model, 1, 1).tolist() == [[0, 29]]


def test_a_model_that_writes_keeps_its_mode(book):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Embedding(5, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 5)
    )
    one, other = (book["write_names"](model, 20) for _ in range(2))
    assert np.array_equal(one, other)
    assert all(part.training for part in model.modules())
