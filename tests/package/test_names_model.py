"""The small Llama of the page: its weights, and what it gives in NumPy."""

import base64
import hashlib
import json

import numpy as np
import pytest

from cellbycell import names
from cellbycell.common import LlamaConfig
from cellbycell.figures import names_model as live
from cellbycell.figures import names_pictures

STORED = json.loads(live.FILE.read_text("utf-8"))


def digest(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def llama():
    """Return the stored Llama, in PyTorch."""
    torch = pytest.importorskip("torch")
    from cellbycell.pytorch import Llama, llama_weights

    model, stored = Llama(live.stored_config()), live.stored_weights()
    for name, weight in llama_weights(model).items():
        weight.data = torch.tensor(stored[name])
    return model.requires_grad_(False)


def test_the_file_has_the_rows_and_the_weights_that_it_names():
    rows = names.split_names(names.read_names())
    data = b"".join(part.astype("<i8").tobytes() for part in rows)
    assert digest(data) == STORED["rows_sha256"]
    data = base64.b64decode(STORED["weights"])
    assert digest(data) == STORED["weights_sha256"]
    assert STORED["command"] == "python -m benchmarks.names llama"


def test_the_stored_weights_have_the_stored_loss(llama):
    from cellbycell.pytorch import name_loss

    _, held_rows = names.split_names(names.read_names())
    loss = name_loss(llama, held_rows).item()
    assert abs(loss - 2.140) < 0.001
    assert abs(loss - STORED["held_out"]) < 0.001  # before it was rounded


def test_packing_stored_weights_gives_them_again(llama):
    told = {name: STORED[name] for name in ("sizes", "weights")}
    assert live.pack(llama) == told


def test_packing_reads_keras_too():
    pytest.importorskip("tensorflow")
    from cellbycell.tensorflow import LlamaTF, llama_weights_tf

    model, stored = LlamaTF(live.stored_config()), live.stored_weights()
    for name, weight in llama_weights_tf(model).items():
        weight.assign(stored[name] if "embed" in name else stored[name].T)
    assert live.pack(model)["weights"] == STORED["weights"]


def test_packing_moves_an_entry_by_half_a_step_at_most():
    torch = pytest.importorskip("torch")
    from cellbycell.pytorch import Llama, llama_weights

    sizes = dict(num_layers=3, d_model=8, num_heads=2, key_heads=1, d_head=6)
    model = Llama(LlamaConfig(vocab_size=30, d_ff=10, **sizes))
    with torch.no_grad():
        model.linear.weight[4] = 0  # a row of zeros stays one
    packed = live.pack(model)
    assert packed["sizes"] == dict(vocab_size=30, d_ff=10, **sizes)
    given = {n: w.detach().numpy() for n, w in llama_weights(model).items()}
    for name, found in live._unpacked(packed).items():
        step = np.abs(given[name]).max(-1, keepdims=True) / 127
        assert np.all(np.abs(found - given[name]) <= 0.6 * step)
    logits, looks = live.read_name("ada", packed)
    assert logits.shape == (4, 30) and looks.shape == (3, 2, 4, 4)
    assert '"name": "layer2"' in names_pictures.show_look(model).data


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"vocab_size": 31}, "vocab_size=31 instead of 30"),
        ({"base": 500.0}, "base=500.0"),
        ({"tied": True}, "tied=True"),
        ({"epsilon": 1e-5}, "epsilon=1e-05"),
    ],
)
def test_a_model_that_the_page_does_not_show_is_refused(changed, says):
    pytest.importorskip("torch")
    from cellbycell.pytorch import Llama

    sizes = {**STORED["sizes"], **changed}
    with pytest.raises(ValueError, match=says):
        live.pack(Llama(LlamaConfig(**sizes)))


def test_numpy_gives_what_pytorch_does(llama):
    torch = pytest.importorskip("torch")
    for name in ("", "moldavia", "sri lanka", "a-'"):
        ids = [names.LETTERS.index(letter) for letter in f".{name}"]
        logits, looks = live.read_name(name)
        wanted = llama(torch.tensor([ids]))[0]
        np.testing.assert_allclose(logits, wanted, atol=2e-5)
        assert np.allclose(looks.sum(-1), 1) and not np.triu(looks, 1).any()


def test_what_is_off_is_off():
    plain = live.read_name("moldavia")
    for off in [{"off": [(1, 3)]}, {"rotary": False}, {"sees": 3}]:
        assert not np.allclose(live.read_name("moldavia", **off)[0], plain[0])
    _, looks = live.read_name("moldavia", sees=3)
    assert not np.tril(looks, -3).any()
    every = live.read_name("moldavia", off=(), rotary=True, sees=20)
    assert np.array_equal(every[0], plain[0])


def test_a_name_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="'é' in 'café'"):
        names_pictures.show_look(name="café")
    for name in ("", "abcdefghijklm"):
        with pytest.raises(ValueError, match="should have 1 to 12 letters"):
            names_pictures.show_look(name=name)


def test_all_heads_look_a_few_letters_back():
    """The book says so, and that none has a job that has a name."""
    _, held_rows = names.split_names(names.read_names())
    backs = np.zeros((2, 4, 21))
    for name in names.decode_names(held_rows[:300]):
        _, looks = live.read_name(name)
        for t in range(5, len(name) + 1):
            backs[..., : t + 1] += looks[:, :, t, t::-1]
    backs /= backs.sum(-1, keepdims=True)  # (L, H, distance)
    assert (backs[..., :5].sum(-1) > 0.5).all() and backs.max() < 0.55
