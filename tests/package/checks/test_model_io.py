"""What goes into a model, and where the kit finds what comes out."""

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from cellbycell.checks.model_io import as_rows, find_logits

LOGITS, POOLED = np.zeros((2, 8, 20)), np.zeros((2, 20))
IDS = [[3, 4, 5], [6, 0, 0]]


@dataclass
class Output:
    loss: float | None
    logits: np.ndarray


class ModelOutput(OrderedDict):
    """As in Transformers: a dict whose keys are attributes, too."""


@pytest.mark.parametrize(
    ("output", "where"),
    [
        (LOGITS, "output"),
        ({"logits": LOGITS}, "output['logits']"),
        ((0.5, LOGITS), "output[1]"),
        ((POOLED, LOGITS), "output[1]"),
        ([LOGITS, None], "output[0]"),
        (Output(None, LOGITS), "output.logits"),
        (
            namedtuple("Named", "pooled logits")(POOLED, LOGITS),
            "output.logits",
        ),
        (
            ModelOutput(cache=SimpleNamespace(values=LOGITS), logits=LOGITS),
            "output['logits']",
        ),
        (
            {"pooled": POOLED, "last_hidden_state": LOGITS},
            "output['last_hidden_state']",
        ),
        ({"hidden": LOGITS + 1, "lm_logits": LOGITS}, "output['lm_logits']"),
    ],
)
def test_the_logits_are_found(output, where):
    found, label = find_logits(output, (2, 8))
    assert found is LOGITS and label == where


def test_an_output_without_logits_is_refused():
    with pytest.raises(TypeError, match="finds no logits; give call="):
        find_logits(SimpleNamespace(values=LOGITS), (2, 8))


@pytest.mark.parametrize(
    "ids",
    [IDS, tuple(map(tuple, IDS)), np.array(IDS, np.int32)],
)
def test_ids_of_any_kind(ids):
    assert as_rows(ids).dtype == np.int64 and as_rows(ids).tolist() == IDS


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_ids_of_a_framework(framework, dtype):
    module = pytest.importorskip(framework)
    make = getattr(module, "tensor" if framework == "torch" else "constant")
    test_ids_of_any_kind(make(IDS, dtype=getattr(module, dtype)))
