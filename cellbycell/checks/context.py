"""What the checks are given: a model, its ids, and how outputs compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .backends.base import WrappedModel
from .influence import Influence, measure_influence
from .model_io import tokens_in
from .pixels import Pixels
from .verdicts import MissingArgument, NotRun, first_line

# Logits below this are masked columns, where rounding does not count.
MASKED = -1e4
# The most logits, and the most tokens, that one call computes.
MAX_NUMBERS, MAX_TOKENS = 2**24, 2**13
# If rounding changes outputs by more, small changes prove nothing.
COARSE = 1e-3


def as_3d(found: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Return outputs for ids (B, T) as (B, T, C).

    Raises NotRun if they have other axes, which `output_shape` reports.
    """
    if found.shape[:2] != ids.shape:
        raise NotRun("the outputs have the wrong shape; see output_shape.")
    return found.reshape(*ids.shape, -1)


@dataclass(eq=False)
class CheckContext:
    """A model under test, its ids, and the arguments of `check_model`.

    ids: (token_ids,) or (source_ids, decoder_ids); the outputs belong to the
    last, of shape (B, T).
    """

    model: WrappedModel
    ids: tuple[np.ndarray, ...]
    pad_id: int | None = None
    causal: bool = True
    targets: np.ndarray | None = None
    loss: Callable | None = None
    optimizer: Callable | None = None
    decode: Callable | None = None
    step: Callable | None = None
    reference: WrappedModel | None = None
    count: int | None = None
    vocab_size: int | None = None
    untrained: bool = False
    overfit: bool | int = False
    pad_left: bool = False
    pixels: Pixels | None = None  # where patches stand for tokens
    error: Exception | None = None  # raised by the model's first call
    leaks: bool = False  # whether a later token changed an output

    def __post_init__(self) -> None:
        self.rows = self.ids[-1]  # (B, T)
        self.real = self.real_tokens(self.rows)  # (B, T)
        # The tokens of the source may be too many for the decoder's table.
        self.known = [
            np.unique(x[self.real_tokens(x, number)])
            for number, x in enumerate(self.ids)
        ]
        if min(map(len, self.known)) < 2 or not (self.real.sum(1) > 1).any():
            raise ValueError(
                "give at least one sequence with two different tokens that "
                f"are not pads (pad_id={self.pad_id}); a source needs one, too"
            )

    def real_tokens(self, ids: np.ndarray, number: int = -1) -> np.ndarray:
        """Return which ids are tokens and not pads, (B, T).

        number: 0 for the source.
        """
        is_decoder = len(self.ids) > 1 and number != 0
        return tokens_in(ids, self.pad_id, is_decoder)

    def copy(self, training: bool = False) -> WrappedModel:
        """Return a copy of the model, valid until the next copy is made.

        training: whether it will run in training mode. Then dropout still
        draws, at a rate that drops nothing.
        """
        copy = self.model.copy()
        if training:
            copy.disable_dropout()
        return copy

    def outputs(
        self, *ids: np.ndarray, scale: bool = False, **options: bool
    ) -> np.ndarray:
        """Return the outputs of a copy of the model, (B, T, C).

        scale: whether to scale up its small matrices. Raises NotRun if the
        model raises an error for rows of another length.
        """
        copy = self.copy(options.get("training", False))
        if scale:
            copy.scale_up()
        try:
            return as_3d(copy.outputs(ids, **options), ids[-1])
        except NotRun:
            raise
        except Exception as error:
            lengths = [x.shape[1] for x in ids]
            if lengths == [x.shape[1] for x in self.ids]:
                raise
            raise NotRun(
                f"rows of {lengths[-1]} tokens raise {type(error).__name__}, "
                f"rows of {self.rows.shape[1]} do not: {first_line(error)}"
            ) from error

    @cached_property
    def first(self) -> np.ndarray:
        """The outputs for the given ids, of any shape."""
        try:
            return self.model.copy(as_is=True).outputs(self.ids)
        except Exception as error:
            self.error = error
            raise

    @cached_property
    def base(self) -> np.ndarray:
        """The outputs for the given ids to compare with, (B, T, C).

        Weights that hide the layers before them are initialised anew. Raises
        NotRun if `output_shape` fails, because nothing can be compared.
        """
        found = self.first
        if self.model.reinitialised:
            found = self.model.copy().outputs(self.ids)
        base = as_3d(found, self.rows)
        if np.isnan(base[self.real]).any():
            raise NotRun("the outputs are not finite; see output_shape.")
        return base

    def ready(self) -> None:
        """Raise NotRun if there are no outputs to compare."""
        if self.error is not None:
            raise NotRun("the model raises an error; see output_shape.")
        _ = self.tolerance, self.is_random  # these raise NotRun

    @cached_property
    def influence(self) -> Influence:
        """How each token of the given ids moves the outputs."""
        return measure_influence(self, self.ids, self.real)

    @cached_property
    def columns(self) -> np.ndarray:
        """Which columns of the outputs are compared, (C,).

        Columns that are masked everywhere, by -1e9 or minus infinity, would
        hide changes in the others.
        """
        masked = self.base[self.real].max(axis=0) < MASKED
        if masked.all():
            return ~masked | True
        if masked.any():
            self.model.note(
                f"{masked.sum()} of {masked.size} columns of the logits are "
                "masked and left out of all comparisons."
            )
        return ~masked

    @cached_property
    def size(self) -> float:
        """The largest output at a token: changes are relative to it."""
        kept = self.base[self.real][:, self.columns]
        kept = np.abs(kept[np.isfinite(kept)])
        return float(kept.max(initial=np.finfo(np.float32).tiny))

    @cached_property
    def tolerance(self) -> float:
        """The largest relative change that may be rounding.

        It is measured: each weight of a copy is changed by the smallest
        relative step of its type, as rounding changes each product.
        """
        copy = self.model.copy()
        copy.perturb_weights()
        perturbed = as_3d(copy.outputs(self.ids), self.rows)
        noise = self.change(self.base, perturbed)[self.real]
        noise = noise[np.isfinite(noise)]
        usual = float(np.quantile(noise, 0.9)) if noise.size else 0.0
        found = max(100 * self.model.eps, 50 * usual)
        said = f"Changes up to {found:.0e} of the largest output count as "
        said += "rounding"
        if found > COARSE:
            said += ": the model rounds to half precision inside"
        self.model.note(f"{said}.")
        return found

    def refuse_coarse(self, change: float) -> None:
        """Raise NotRun if rounding is coarse and may be the change."""
        if self.tolerance > COARSE and change > 0:
            raise NotRun(
                f"outputs change by {change:.0e} of the largest, and rounding "
                f"alone may change them by {self.tolerance:.0e}: the model "
                "computes in half precision inside. Test it in float32."
            )

    @cached_property
    def is_random(self) -> bool:
        """Whether the model draws random numbers in evaluation mode."""
        other = self.outputs(*self.ids, seed=1)
        found = bool((self.change(self.base, other)[self.real] > 0).any())
        if found:
            self.model.note(
                "The model draws random numbers in evaluation mode, so the "
                "kit runs it with a fixed seed."
            )
        return found

    @cached_property
    def looks_both_ways(self) -> bool:
        """Whether a model that says it is an encoder sees later tokens."""
        if not self.model.is_encoder():
            return False
        changes, moves = self.influence.changes, self.influence.moves
        past = self.real[changes[:, 0]] & (
            np.arange(moves.shape[1]) < changes[:, 1:]
        )
        moved = np.where(past, moves, 0).max(axis=1) > self.tolerance
        return bool(moved[past.any(axis=1)].all())

    def refuse_two_way(self, told: bool = True) -> None:
        """Raise NotRun for a model that may look both ways.

        told: whether `causality` has said so of an encoder.
        """
        if told and self.causal and self.looks_both_ways:
            raise NotRun("an encoder, it seems: see causality.")
        if not self.causal:
            raise MissingArgument(
                "causal=False: a token may attend to all others.",
                "causal=True",
            )

    def refuse_random(self) -> None:
        """Raise NotRun for a model that draws random numbers."""
        if self.is_random:
            raise NotRun(
                "the model draws random numbers in evaluation mode, other "
                "ones for other shapes; see determinism."
            )

    def needs_targets(self) -> np.ndarray:
        """Return the targets, (B, T), or raise NotRun."""
        if self.targets is None:
            raise MissingArgument(
                "give targets=, the ids to predict, (B, T).", "targets="
            )
        return self.targets

    def change(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Return the relative change of outputs (B, T, C), (B, T).

        It is relative to the largest output; NaN counts as infinite.
        """
        if not self.columns.all():
            before, after = before[..., self.columns], after[..., self.columns]
        with np.errstate(invalid="ignore"):
            gap = np.abs(before - after)
            gap[before == after] = 0  # also where both are infinite
        return np.nan_to_num(gap.max(axis=-1), nan=np.inf) / self.size

    def say_change(
        self, before: np.ndarray, after: np.ndarray, where: np.ndarray
    ) -> str:
        """Describe the largest change of outputs (B, T, C), if any.

        where: the positions to compare, (B, T). Returns "" if the change is
        rounding.
        """
        change = np.where(where, self.change(before, after), 0)
        if not change.size:
            return ""
        if change.max() <= self.tolerance:
            self.refuse_coarse(change.max())
            return ""
        row, position = divmod(int(change.argmax()), change.shape[1])
        return self.say(row, position, change.max())

    def say(self, row: int, position: int, amount: float) -> str:
        """Return "sequence 0, position 3, by 1.2e-02 of the largest ..."."""
        return (
            f"the output of sequence {row}, position {position}, by "
            f"{amount:.1e} of the largest output"
        )

    def exchange(
        self, ids: np.ndarray, where: np.ndarray, number: int = -1
    ) -> np.ndarray:
        """Return ids with other known tokens where `where` is True.

        number: 0 for the source.
        """
        known = self.known[number]
        return np.where(
            where, known[(np.searchsorted(known, ids) + 1) % len(known)], ids
        )

    def fill_pads(self, ids: np.ndarray, number: int = -1) -> np.ndarray:
        """Return ids with known tokens in place of pads."""
        known = self.known[number]
        order = np.arange(ids.size).reshape(ids.shape) % len(known)
        return np.where(self.real_tokens(ids, number), ids, known[order])

    def left_padded(self) -> list[np.ndarray]:
        """Return the tokens of each row, cut to leave room for left pads.

        No two rows get the same number of pads.
        """
        found, counts = [], set()
        first = self.ids[0]
        for row, real in zip(first, self.real_tokens(first, 0), strict=True):
            count = max(1, int((~real).sum()))
            while count in counts:
                count += 1
            counts.add(count)
            found.append(row[real][: max(2, first.shape[1] - count)])
        return found

    def in_chunks(self, count: int) -> Iterable[slice]:
        """Yield slices of `count` rows, each small enough for one call."""
        length = self.rows.shape[1]
        numbers = max(1, length * self.base.shape[-1])
        most = min(256, MAX_NUMBERS // numbers, MAX_TOKENS // length)
        step = max(1, most)
        return (slice(i, i + step) for i in range(0, count, step))


# A check returns a sentence if the model passes.
Check = Callable[[CheckContext], str]
