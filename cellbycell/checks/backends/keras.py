"""A Keras model, wrapped for the checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import keras
import numpy as np
import tensorflow as tf

from ..model_io import IGNORED, as_rows, find_cache, find_logits
from ..verdicts import NotRun
from .base import (
    NO_RATE,
    RATE,
    Cotangent,
    Ids,
    random_mean,
    seed_all,
    set_dropout,
)
from .keras_state import KerasState


class KerasModel(KerasState):
    """A Keras layer or model on TensorFlow: calls, gradients, losses."""

    gives_logits = False  # often probabilities, with from_logits=False
    ambiguous_masks: list[str] = []  # Keras' own masks are True at tokens

    def run(
        self,
        ids: Ids,
        mask: bool = True,
        training: bool = False,
        **named: Any,
    ) -> Any:
        """Call the model; return its output."""
        tensors = [tf.constant(x, tf.int32) for x in ids]
        if self.call is not None:
            return self.call(self.model, *tensors)
        masks = self.masks(ids, mask)
        masks = {name: tf.constant(m) for name, m in masks.items()}
        if isinstance(self.inputs, dict):
            named = {
                name: masks.get(name, self.input_for(name, tensors))
                for name in self.inputs
            }
            return self.model(named, training=training)
        if isinstance(self.inputs, (list, tuple)) and len(self.inputs) > 1:
            return self.model(tensors, training=training)
        return self.model(*tensors, **masks, **named, training=training)

    def cached_part(
        self, ids: Ids, start: int, cache: Any, mask: bool, positions: bool
    ) -> tuple[np.ndarray, Any]:
        self.seeded(0)
        *rest, rows = (tf.constant(x, tf.int32) for x in ids)
        new = rows[:, start:]
        if self.step is not None:
            output, cache = self.step(self.model, *rest, new, cache)
        elif self.hub_cache:
            if cache is None:
                _, made = self.model._build_cache(
                    tf.constant(self.ids[-1], tf.int32)
                )
                cache = tf.zeros_like(made)
            output, _, cache = self.model.call_with_cache(new, cache, start)
        else:
            # The masks cover all ids so far.
            masks = self.masks(ids) if mask else {}
            masks = {name: tf.constant(m) for name, m in masks.items()}
            begin = [] if cache is None else cache
            named = {self.cache_name: begin, **masks}
            output = self.model(*rest, new, **named, training=False)
            cache = find_cache(output, self.cache_name)
        found, _ = find_logits(output, tuple(new.shape))
        return self.as_array(found), cache

    def reordered(self, cache: Any, order: np.ndarray) -> Any:
        def moved(x):
            if not hasattr(x, "shape") or not x.shape:
                return x  # such as a number of positions
            if x.shape[0] != len(order):
                raise NotRun("the rows of the cache are not its first axis.")
            return tf.gather(x, order)

        return keras.tree.map_structure(moved, cache)

    @property
    def hub_cache(self) -> bool:
        """Whether it is a KerasHub model that generates with a cache."""
        return hasattr(self.model, "call_with_cache") and hasattr(
            self.model, "_build_cache"
        )

    @property
    def cache_name(self) -> str | None:
        return "call_with_cache" if self.hub_cache else super().cache_name

    def as_array(self, x: Any) -> np.ndarray:
        """Return a tensor as an array, float32 or float64."""
        x = np.asarray(keras.ops.convert_to_numpy(x))
        return x.astype(np.promote_types(x.dtype, np.float32))

    def input_for(self, name: str, tensors: list) -> Any:
        """Return the input of this name for a model with a dict of inputs."""
        if "segment" in name or "type" in name:
            return tf.zeros_like(tensors[0])
        return tensors[-1 if "decoder" in name else 0]

    def seeded(self, seed: int) -> None:
        """Seed every generator that the model may use."""
        if self.draws:
            keras.utils.set_random_seed(seed)
        seed_all(seed)
        for part in self.model._flatten_layers():
            for generator in part._seed_generators:
                generator.state.assign([seed, 0])

    def outputs(
        self, ids: Ids, training: bool = False, seed: int = 0, **options: bool
    ) -> np.ndarray:
        self.seeded(seed)
        output = self.run(ids, options.get("mask", True), training)
        found, where = find_logits(output, ids[-1].shape)
        self.note_output(where)
        return self.as_array(found)

    def weights(self) -> Iterator[tuple[str, np.ndarray]]:
        for name, v in self.named().items():
            yield name, self.as_array(v.value)

    def assign(self, name: str, values: np.ndarray) -> None:
        self.named()[name].assign(values)

    def gradients_of(
        self, ids: Ids, cotangent: Cotangent, weights: list, rest: bool
    ) -> list:
        """Return the gradients of weights; rest: of all outputs."""
        self.seeded(0)
        with tf.GradientTape() as tape:
            tape.watch([v.value for v in weights])  # frozen ones, too
            output = self.run(ids)
            found, _ = find_logits(output, ids[-1].shape)
            numbers = tf.cast(cotangent(tuple(found.shape)), found.dtype)
            # Zero times minus infinity would be NaN.
            found = tf.where(numbers != 0, found, tf.zeros_like(found))
            total = tf.reduce_sum(tf.cast(found * numbers, tf.float32))
            for x in keras.tree.flatten(output) if rest else ():
                if hasattr(x, "dtype") and x.dtype.is_floating:
                    x = tf.where(tf.math.is_finite(x), x, tf.zeros_like(x))
                    total += tf.cast(tf.reduce_mean(x * x), total.dtype)
        grads = tape.gradient(total, [v.value for v in weights])
        return [
            None if g is None else self.as_array(tf.convert_to_tensor(g))
            for g in grads
        ]

    def gradient(
        self, name: str, ids: Ids, cotangent: Cotangent
    ) -> np.ndarray | None:
        return self.gradients_of(
            ids, cotangent, [self.named()[name]], rest=False
        )[0]

    def gradients(self, ids: Ids, cotangent: Cotangent) -> dict[str, str]:
        named = self.named()
        grads = self.gradients_of(ids, cotangent, [*named.values()], rest=True)
        states = [
            "none"
            if g is None
            else "wild"
            if not np.isfinite(g).all()
            else "right"
            if g.any()
            else "zero"
            for g in grads
        ]
        return dict(zip(named, states, strict=True))

    def training_copy(self) -> Self:
        return self.copy()

    def trained(self) -> dict[str, Any]:
        """Return {name: weight} of those that are trainable."""
        return {n: v for n, v in self.named().items() if v.trainable}

    def slope(
        self, ids: Ids, cotangent: Cotangent, gradients: bool = True
    ) -> tuple[float, dict[str, np.ndarray | None]]:
        self.seeded(0)
        named = self.trained() if gradients else {}
        with tf.GradientTape() as tape:
            total = self.weighted(ids, cotangent)
        grads = tape.gradient(total, [v.value for v in named.values()])
        return float(total), {
            name: None if g is None else self.as_array(tf.convert_to_tensor(g))
            for name, g in zip(named, grads, strict=True)
        }

    def weighted(self, ids: Ids, cotangent: Cotangent) -> Any:
        """Return the sum of the logits in training mode times factors, ()."""
        found, _ = find_logits(self.run(ids, training=True), ids[-1].shape)
        numbers = tf.cast(cotangent(tuple(found.shape)), found.dtype)
        # Zero times minus infinity would be NaN.
        found = tf.where(numbers != 0, found, tf.zeros_like(found))
        return tf.reduce_sum(tf.cast(found * numbers, tf.float64))

    def one_step(
        self,
        ids: Ids,
        targets: np.ndarray | None,
        function: Callable | None,
        optimizer: Callable | None,
    ) -> tuple[dict[str, np.ndarray], ...]:
        twin = self.copy(as_is=True)
        twin.seeded(0)
        named = twin.trained()
        variables = [*named.values()]
        if optimizer is None:
            stepper = keras.optimizers.AdamW(RATE)
        else:
            stepper = optimizer(variables)
        with tf.GradientTape() as tape:
            if targets is None:
                loss = twin.weighted(ids, random_mean)
            else:
                loss = twin.loss(ids, targets, function, training=True)
        grads = {
            name: tf.convert_to_tensor(g)
            for name, g in zip(
                named,
                tape.gradient(loss, [v.value for v in variables]),
                strict=True,
            )
            if g is not None
        }
        before = {n: self.as_array(v.value).copy() for n, v in named.items()}
        pairs = [(g, named[n]) for n, g in grads.items()]
        stepper.apply_gradients(pairs)
        after = {n: self.as_array(v.value) for n, v in named.items()}
        return before, after, {n: self.as_array(g) for n, g in grads.items()}

    @contextmanager
    def spied(self, see: Callable[[Any, tuple, Any], None]) -> Iterator[None]:
        """Pass each layer's arguments and output to a function."""
        parts = self.model._flatten_layers(include_self=False)

        def spy(part):
            call = part.call

            def called(*args, **named):
                output = call(*args, **named)
                see(part, (*args, *named.values()), output)
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

    def tables(self) -> set[str]:
        found = [
            v
            for part in self.model._flatten_layers()
            if isinstance(part, keras.layers.Embedding)
            for v in part._trainable_variables
        ]
        named = self.named().items()
        return {n for n, v in named if any(v is x for x in found)}

    def kind(self, name: str) -> str:
        parts = self.model._flatten_layers()
        named = {part.path or part.name: type(part) for part in parts}
        return named[name].__name__

    def has_labels(self) -> bool:
        """Return whether the model computes a loss itself."""
        return False

    def loss_of(
        self, logits: Any, targets: np.ndarray, function: Callable | None
    ) -> Any:
        """Return a loss of logits; the mean cross-entropy by default."""
        wanted = tf.constant(targets)
        if function is not None:
            return function(logits, wanted)
        real = wanted != IGNORED
        if self.pad_id is not None:
            real &= wanted != self.pad_id
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(
            tf.where(real, wanted, 0), logits
        )
        real = tf.cast(real, each.dtype)
        return tf.reduce_sum(each * real) / tf.reduce_sum(real)

    def loss(
        self,
        ids: Ids,
        targets: np.ndarray,
        function: Callable | None,
        training: bool = False,
    ) -> Any:
        """Return the loss of targets (B, T)."""
        found, _ = find_logits(self.run(ids, training=training), ids[-1].shape)
        return self.loss_of(found, targets, function)

    def loss_at(
        self, logits: np.ndarray, targets: np.ndarray, function: Callable
    ) -> tuple[Any, np.ndarray | None]:
        """Return the loss of logits (B, T, N), and its gradient."""
        x = tf.constant(logits, tf.float32)
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = self.loss_of(x, targets, function)
        grad = tape.gradient(loss, x)
        return loss, None if grad is None else self.as_array(grad)

    def disable_dropout(self) -> None:
        for part in self.model._flatten_layers():
            set_dropout(vars(part), NO_RATE, rate="rate")

    def decode(self, ids: np.ndarray, function: Callable) -> np.ndarray:
        """Return the ids that a function generates for ids (B, S)."""
        self.seeded(0)
        written = function(self.model, tf.constant(ids, tf.int32))
        return as_rows(written, "the result of decode=")

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
            set_dropout(vars(part), 0.0, rate="rate")
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

    def trace(
        self, ids: Ids, run: Callable | None = None, **options: Any
    ) -> list[tuple]:
        found = []

        def floating(x):
            parts = (y for y in keras.tree.flatten(x) if hasattr(y, "dtype"))
            return next((y for y in parts if y.dtype.is_floating), None)

        def see(part, args, output):
            after, before = floating(output), floating(args)
            if after is not None:
                before = None if before is None else np.float32(before)
                name = part.path or part.name
                found.append((name, np.float32(after), before))

        with self.spied(see):
            (run or partial(self.outputs, ids, **options))()
        return found
