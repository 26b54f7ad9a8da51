"""A Keras model, and its state and TensorFlow's afterwards."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Self

import keras
import ml_dtypes
import numpy as np

from ..model_io import required
from .base import Ids, WrappedModel, generators_kept


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


class KerasState(WrappedModel):
    """A Keras layer or model on TensorFlow, with notes about it.

    Keras cannot copy a subclassed model. So `copy` returns the model itself,
    with the weights, seeds and attributes that it had at the beginning.
    """

    def __init__(
        self,
        model: keras.layers.Layer,
        ids: Ids,
        pad_id: int | None = None,
        call: Callable | None = None,
        step: Callable | None = None,
    ) -> None:
        self.notes, self.reinitialised = [], {}
        self.model, self.ids, self.pad_id = model, ids, pad_id
        self.call, self.step = call, step
        self.inputs = getattr(model, "_inputs_struct", None)
        signature = inspect.signature(model.call).parameters
        # Keras passes the argument mask to a layer by itself.
        self.names = {*signature} - {"mask"}
        self.required = required(signature)
        if isinstance(self.inputs, dict):
            self.names = self.required = set(self.inputs)
        self.eps = 2.0**-23
        self.draws = False

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Restore the model and all generators at the end."""
        with ExitStack() as stack:
            stack.enter_context(generators_kept())
            stack.enter_context(tensorflow_seed_kept())
            if not self.model.built:
                self.note("The model was not built: a first call built it.")
                with suppress(Exception):  # each check reports it
                    self.outputs(self.ids)
            self.remember()
            stack.callback(self.restore, self.values, self.attributes)
            self.use_float32()
            self.remember()
            with suppress(Exception):
                self.draws = self.draws_from_tensorflow()
            self.reinitialise_zero_weights()
            yield

    def remember(self) -> None:
        """Remember the weights and the attributes of all layers."""
        self.values = [(v, v.numpy()) for v in self.model.variables]
        self.attributes = [
            (part, {k: kept(v) for k, v in vars(part).items()})
            for part in self.model._flatten_layers()
        ]

    def use_float32(self) -> None:
        """Make layers of half precision compute in float32."""
        parts = self.model._flatten_layers()
        for part in parts:
            name = part.dtype_policy.name
            if name.endswith("float16"):
                self.note(f"The model is {name}: the kit tests it in float32.")
                part.dtype_policy = "float32"
        types = {part.compute_dtype for part in parts}
        self.eps = max(
            float(ml_dtypes.finfo(t).eps) for t in types if "float" in t
        )
        if self.eps > 1e-4:
            self.note(
                f"A layer computes in half precision, eps {self.eps:.1e}."
            )

    def draws_from_tensorflow(self) -> bool:
        """Return whether two calls differ unless TensorFlow is seeded.

        Seeding TensorFlow discards every compiled kernel, which is slow;
        Keras' own seeds do not.
        """
        self.draws = False
        for training in (False, True):
            one = self.copy().outputs(self.ids, training)
            two = self.copy().outputs(self.ids, training)
            if not np.array_equal(one, two, equal_nan=True):
                return True
        return False

    def restore(self, values: list, attributes: list) -> None:
        """Restore the weights and attributes of the model."""
        for part, saved in attributes:
            vars(part).clear()
            vars(part).update({k: kept(v) for k, v in saved.items()})
        for variable, value in values:
            variable.assign(value)

    def copy(self, as_is: bool = False) -> Self:
        """Return the model itself, as it was at the beginning."""
        self.restore(self.values, self.attributes)
        for name, values in ({} if as_is else self.reinitialised).items():
            self.assign(name, values)
        return self

    def frozen(self) -> list[str]:
        named = self.named().items()
        return [name for name, v in named if not v.trainable]

    def named(self) -> dict[str, Any]:
        """Return {name: weight}; a repeated path gets a number."""
        found: dict[str, Any] = {}
        for v in self.model.weights:
            if "float" in v.dtype:
                again = v.path in found
                found[f"{v.path} {len(found)}" if again else v.path] = v
        return found
