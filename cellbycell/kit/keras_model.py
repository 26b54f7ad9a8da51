"""A Keras model as the kit asks it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import keras
import ml_dtypes
import numpy as np
import tensorflow as tf

from .keras_tools import kept, tensorflow_seed_kept
from .model import AskedModel, Ids, Pull, generators_kept, no_dropout, seed_all
from .outputs import as_rows, find_logits, masks_for, required


class KerasModel(AskedModel):
    """A Keras layer or model on TensorFlow, and what was noticed about it.

    Keras has no copy of a model that was subclassed. So `copy` gives the
    model itself, with the weights, the seeds and the attributes that it had
    at the beginning.
    """

    def __init__(
        self,
        model: keras.layers.Layer,
        ids: Ids,
        pad_id: int | None = 0,
        call: Callable | None = None,
    ) -> None:
        if keras.backend.backend() != "tensorflow":
            raise TypeError("The kit asks Keras on TensorFlow.")
        self.notes = []
        self.model, self.ids = model, ids
        self.pad_id, self.call = pad_id, call
        self.inputs = getattr(model, "_inputs_struct", None)
        signature = inspect.signature(model.call).parameters
        self.names, self.required = set(signature), required(signature)
        if isinstance(self.inputs, dict):
            self.names = self.required = set(self.inputs)
        self.takes_mask = bool(masks_for(self.names, (np.ones((1, 1)),), 0))
        self.eps = 2.0**-23
        self.draws = False

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Leave the model and all generators as they were, afterwards."""
        with ExitStack() as stack:
            stack.enter_context(generators_kept())
            stack.enter_context(tensorflow_seed_kept())
            if not self.model.built:
                self.note("The model was not built yet: a first call did it.")
                with suppress(Exception):  # each check will say it
                    self.outputs(self.ids)
            self.remember()
            stack.callback(self.restore, self.values, self.attributes)
            self.use_float32()
            self.remember()
            with suppress(Exception):
                self.draws = self.draws_from_tensorflow()
            yield

    def remember(self) -> None:
        """Remember the weights and the attributes of all layers."""
        self.values = [(v, v.numpy()) for v in self.model.variables]
        self.attributes = [
            (part, {k: kept(v) for k, v in vars(part).items()})
            for part in self.model._flatten_layers()
        ]

    def use_float32(self) -> None:
        """Have layers of mixed precision compute in float32."""
        parts = self.model._flatten_layers()
        for part in parts:
            if part.dtype_policy.name.startswith("mixed"):
                self.note(f"It is {part.dtype_policy.name}: asked in float32.")
                part.dtype_policy = "float32"
        types = {part.compute_dtype for part in parts}
        self.eps = max(
            float(ml_dtypes.finfo(t).eps) for t in types if "float" in t
        )
        if self.eps > 1e-4:
            self.note(f"It computes in half precision, eps {self.eps:.1e}.")

    def draws_from_tensorflow(self) -> bool:
        """Return whether two calls differ unless TensorFlow is seeded.

        Its seed throws away every compiled kernel, which is slow; Keras'
        own seeds do not.
        """
        self.draws = False
        for training in (False, True):
            one = self.copy().outputs(self.ids, training)
            two = self.copy().outputs(self.ids, training)
            if not np.array_equal(one, two, equal_nan=True):
                return True
        return False

    def restore(self, values: list, attributes: list) -> None:
        """Give the model the weights and attributes that it had."""
        for part, saved in attributes:
            vars(part).clear()
            vars(part).update({k: kept(v) for k, v in saved.items()})
        for variable, value in values:
            variable.assign(value)

    def copy(self) -> KerasModel:
        """Return the model itself, as it was at the beginning."""
        self.restore(self.values, self.attributes)
        return self

    def frozen(self) -> list[str]:
        """Return the names of the weights that are frozen."""
        named = self.named().items()
        return [name for name, v in named if not v.trainable]

    def run(
        self,
        ids: Ids,
        mask: bool = True,
        training: bool = False,
    ) -> Any:
        """Call the model; return what it returns."""
        tensors = [tf.constant(x, tf.int32) for x in ids]
        if self.call is not None:
            return self.call(self.model, *tensors)
        names = self.names if mask else self.required
        masks = masks_for(names, ids, self.pad_id)
        masks = {name: tf.constant(m) for name, m in masks.items()}
        if masks:
            given = ", ".join(masks)
            self.note(f"{given}: given, from pad_id={self.pad_id}.")
        if isinstance(self.inputs, dict):
            named = {
                name: masks.get(name, self.input_for(name, tensors))
                for name in self.inputs
            }
            return self.model(named, training=training)
        if isinstance(self.inputs, (list, tuple)) and len(self.inputs) > 1:
            return self.model(tensors, training=training)
        return self.model(*tensors, **masks, training=training)

    def input_for(self, name: str, tensors: list) -> Any:
        """Return what a model with a dict of inputs gets under a name."""
        if "segment" in name or "type" in name:
            return tf.zeros_like(tensors[0])
        return tensors[-1 if "decoder" in name else 0]

    def seeded(self, seed: int) -> None:
        """Seed every generator that the model may draw from."""
        if self.draws:
            keras.utils.set_random_seed(seed)
        seed_all(seed)
        for part in self.model._flatten_layers():
            for generator in part._seed_generators:
                generator.state.assign([seed, 0])

    def outputs(
        self,
        ids: Ids,
        training: bool = False,
        mask: bool = True,
        seed: int = 0,
    ) -> np.ndarray:
        self.seeded(seed)
        output = self.run(ids, mask, training)
        found, where = find_logits(output, ids[-1].shape)
        self.note_output(where)
        found = np.asarray(keras.ops.convert_to_numpy(found))
        return found.astype(np.promote_types(found.dtype, np.float32))

    def named(self) -> dict[str, Any]:
        """Return {name: weight}; of equal paths the later gets a number."""
        found: dict[str, Any] = {}
        for v in self.model.weights:
            if "float" in v.dtype:
                again = v.path in found
                found[f"{v.path} {len(found)}" if again else v.path] = v
        return found

    def weights(self) -> Iterator[tuple[str, np.ndarray]]:
        for name, v in self.named().items():
            yield name, v.numpy()

    def assign(self, name: str, values: np.ndarray) -> None:
        self.named()[name].assign(values)

    def gradients(
        self, ids: Ids, pull: Pull, everything: bool = False
    ) -> dict[str, np.ndarray | None]:
        self.seeded(0)
        named = self.named()
        weights = [*named.values()]
        with tf.GradientTape() as tape:
            tape.watch([v.value for v in weights])  # frozen ones, too
            output = self.run(ids)
            found, _ = find_logits(output, ids[-1].shape)
            numbers = tf.cast(pull(tuple(found.shape)), found.dtype)
            # Zero times minus infinity would be NaN.
            found = tf.where(numbers != 0, found, tf.zeros_like(found))
            total = tf.reduce_sum(tf.cast(found * numbers, tf.float32))
            for x in keras.tree.flatten(output) if everything else ():
                if hasattr(x, "dtype") and x.dtype.is_floating:
                    x = tf.where(tf.math.is_finite(x), x, tf.zeros_like(x))
                    total += tf.cast(tf.reduce_mean(x * x), total.dtype)
        grads = tape.gradient(total, [v.value for v in weights])
        return {
            name: None if g is None else tf.convert_to_tensor(g).numpy()
            for name, g in zip(named, grads, strict=True)
        }

    @contextmanager
    def spied(self, see: Callable[[Any, tuple, Any], None]) -> Iterator[None]:
        """Show each layer's arguments and output to a function."""
        parts = self.model._flatten_layers(include_self=False)

        def spy(part):
            call = part.call

            def called(*args, **named):
                output = call(*args, **named)
                see(part, args, output)
                return output

            return called

        for part in parts:
            vars(part)["call"] = spy(part)
        try:
            yield
        finally:
            for part in parts:
                del vars(part)["call"]

    def table(self, ids: Ids) -> str | None:
        found = []

        def look(part, args, output):
            if args and np.array_equal(np.asarray(args[0]), ids[-1]):
                found.extend(part._trainable_variables)

        with self.spied(look):
            self.outputs(ids)
        rows = ids[-1].max()
        fits = [v for v in found if len(v.shape) == 2 and v.shape[0] > rows]
        named = self.named().items()
        return next((n for n, v in named if any(v is x for x in fits)), None)

    def loss(
        self,
        ids: Ids,
        targets: np.ndarray,
        function: Callable | None,
        training: bool = False,
    ) -> Any:
        """Return the loss; the mean cross-entropy unless told otherwise."""
        found, _ = find_logits(self.run(ids, training=training), ids[-1].shape)
        targets = tf.constant(targets)
        if function is not None:
            return function(found, targets)
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, found)
        real = tf.cast(targets != self.pad_id, each.dtype)
        return tf.reduce_sum(each * real) / tf.reduce_sum(real)

    def decode(self, ids: np.ndarray, function: Callable) -> np.ndarray:
        """Return the ids that a function writes for ids (B, S)."""
        self.seeded(0)
        return as_rows(function(self.model, tf.constant(ids, tf.int32)))

    def train(
        self,
        ids: Ids,
        targets: np.ndarray,
        function: Callable | None,
        rate: float,
        steps: int,
        goal: float,
    ) -> float:
        """Train without dropout until the loss is below goal; return it."""
        self.seeded(0)
        for part in self.model._flatten_layers():
            no_dropout(vars(part), rate="rate")
        optimiser = keras.optimizers.Adam(rate)
        weights = self.model.trainable_variables
        for _ in range(steps):
            with tf.GradientTape() as tape:
                loss = self.loss(ids, targets, function, training=True)
            if float(loss) < goal:
                break
            grads = tape.gradient(loss, [v.value for v in weights])
            grads = [
                g if g is None else tf.convert_to_tensor(g) for g in grads
            ]
            optimiser.apply_gradients(zip(grads, weights, strict=True))
        return float(loss)

    def trace(self, ids: Ids) -> list[tuple[str, np.ndarray]]:
        """Return (name, output) of each layer, in the order of calls."""
        found = []

        def see(part, args, output):
            first = next(iter(keras.tree.flatten(output)), None)
            if hasattr(first, "dtype") and first.dtype.is_floating:
                found.append((part.path or part.name, np.float32(first)))

        with self.spied(see):
            self.outputs(ids)
        return found
