"""State of Keras and TensorFlow that the kit saves and restores."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


def kept(value: Any) -> Any:
    """Return a copy of an array, safe from edits; other values as is."""
    return value.copy() if isinstance(value, np.ndarray) else value


@contextmanager
def tensorflow_seed_kept() -> Iterator[None]:
    """Restore TensorFlow's and Keras' global seeds at the end."""
    from keras.src.backend.common import global_state
    from tensorflow.python.eager import context

    names = ["global_seed_generator", "global_random_seed"]
    values = [global_state.get_global_attribute(name) for name in names]
    own = context.context()
    seed, rng = own._seed, copy.deepcopy(getattr(own, "_rng", None))
    try:
        yield
    finally:
        own._set_global_seed(seed)
        own._rng = rng
        for name, value in zip(names, values, strict=True):
            global_state.set_global_attribute(name, value)
