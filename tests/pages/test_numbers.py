"""The numbers and the calls on the pages are those of the libraries."""

import numpy as np
import pytest

from tools.notebooks import Notebook, label
from tools.run.calls import check_calls
from tools.run.claims import check_claims
from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.mark.parametrize("name", ["notation", "symptoms"])
def test_every_number_on_the_pages_is_computed(name):
    import torch

    def first_equal(dtype):
        """Return the first whole number that its follower equals."""
        numbers = torch.arange(5000.0).to(dtype)
        return (numbers[1:] == numbers[:-1]).int().argmax()

    causal_mask, key_mask = np.tri(5, dtype=bool), np.arange(5) < 3
    numbers = {
        "pairs_in_all": causal_mask.size,
        "pairs_causal": causal_mask.sum(),
        "pairs_joined": (causal_mask & key_mask).sum(),
        "positions_equal_in_bfloat16": first_equal(torch.bfloat16),
        "positions_equal_in_float16": first_equal(torch.float16),
    }
    page = (BOOK / f"{name}.md").read_text("utf-8")
    messages = check_claims(page, numbers)
    assert not messages, "\n".join(messages)


@pytest.mark.parametrize("name", ["notation", "symptoms", "topics", "index"])
def test_calls_have_the_arguments_that_the_libraries_take(name):
    import keras
    import tensorflow
    import torch
    from torch.nn import functional

    libraries = {"np": np, "keras": keras, "tf": tensorflow}
    libraries |= {"torch": torch, "nn": torch.nn, "F": functional}
    page = Notebook.page(BOOK / f"{name}.md")
    messages = [
        f"{label(page.path)}: {message}"
        for cell in page.markdown
        for message in check_calls(cell.source, libraries)
    ]
    assert not messages, "\n".join(messages)
