"""Check a Transformer, in PyTorch or Keras, for common bugs.

    report = check_model(model, token_ids, pad_id=0, causal=True)
    print(report)
    report.raise_if_failed()

The chapter testing.ipynb explains the checks. `report.explain("future")`, or
`python -m cellbycell.kit --explain future` in a shell, prints the causes of a
failure.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from . import invariance, losses, weights
from .cached import cached
from .case import Case, Check, Failed, Lacks, NotRun, Warned, first_line
from .differ import Difference, differences
from .order import order
from .outputs import as_rows
from .pytest_checks import parametrize_with_checks
from .report import EXPECTED, CheckFailed, Report, Result
from .weights import listed

__all__ = [
    "CHECKS",
    "CheckFailed",
    "Difference",
    "Report",
    "Result",
    "check_model",
    "parametrize_with_checks",
    "where_it_differs",
]

# Each check, and the section of *Symptoms* that has its causes.
CHECKS: dict[str, tuple[Check, str]] = {
    "shape": (weights.shape, "the-loss-or-a-gradient-is-nan"),
    "future": (invariance.future, "the-loss-is-too-good"),
    "future_train": (invariance.future_train, "the-loss-is-too-good"),
    "future_grad": (weights.future_grad, "the-loss-is-too-good"),
    "steps": (invariance.steps, "it-trains-and-it-is-still-wrong"),
    "cached": (cached, "the-cache-changes-the-output"),
    "pads": (invariance.pads, "padding-changes-the-output"),
    "alone": (invariance.alone, "the-batch-changes-the-output"),
    "calls": (invariance.calls, "two-calls-give-two-answers"),
    "context": (invariance.context, "padding-changes-the-output"),
    "reach": (invariance.reach, "it-trains-and-it-is-still-wrong"),
    "order": (order, "the-order-of-the-tokens-does-not-matter"),
    "source": (invariance.source, "it-trains-and-it-is-still-wrong"),
    "gradients": (
        weights.gradients,
        "parameters-are-missing-or-never-change",
    ),
    "layers": (weights.layers, "parameters-are-missing-or-never-change"),
    "count": (weights.count, "parameters-are-missing-or-never-change"),
    "reference": (
        weights.reference,
        "logits-differ-from-another-library",
    ),
    "aim": (losses.aim, "the-loss-is-too-good"),
    "loss": (losses.loss, "the-loss-is-too-good"),
    "start": (losses.start, "the-loss-stays-high"),
    "writes": (losses.writes, "it-trains-and-it-is-still-wrong"),
    "overfit": (losses.overfit, "the-loss-stays-high"),
}
# One of these needs no outputs, and the other one judges them.
OF_WEIGHTS = {"shape", "count"}
# All threads share the generators, so one thread runs at a time.
ONE_AT_A_TIME = threading.RLock()


def check_model(
    model: Any,
    token_ids: Any,
    decoder_ids: Any = None,
    *,
    pad_id: int | None = None,
    causal: bool = True,
    targets: Any = None,
    loss: Callable | None = None,
    decode: Callable | None = None,
    step: Callable | None = None,
    reference: Any = None,
    count: int | None = None,
    vocab_size: int | None = None,
    untrained: bool = False,
    overfit: bool | int = False,
    pad_left: bool = False,
    call: Callable | None = None,
    only: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    expected_failures: Mapping[str, str] | None = None,
) -> Report:
    """Run every check that the arguments allow on a model.

    The checks run on a copy, which takes as much memory as the model. The
    model, its modes and gradients, and all generators do not change. A small
    configuration takes less than a second; long rows cost most, because
    attention grows with their square, then large vocabularies. `only` saves
    time.

    Weights that hide the layers before them, such as a last layer of zeros,
    are initialised in the copy. Only one thread runs checks at a time.

    Parameters
    ----------
    model
        An nn.Module or a Keras model.
    token_ids
        (B, T), or (B, S) for the source of an encoder-decoder: a list, an
        array, a tensor, or the result of a tokenizer. Give two sequences or
        more, of different tokens and lengths, with pads on the right. The
        model gets no longer rows.
    decoder_ids
        (B, T): the decoder's input of an encoder-decoder.
    pad_id
        The id of pads; None if there are none.
    causal
        Whether a token may attend only to itself and to earlier ones; for an
        encoder-decoder, in the decoder.
    targets
        (B, T): the ids to predict, -100 or pad_id where there are none, for
        *aim*, and with other arguments for *loss*, *start* and *overfit*. A
        model that takes labels= gets them as labels, unless `loss` is given.
    loss
        A function of logits (B, T, N) and targets (B, T), for *loss*.
    decode
        A function of the model and its source ids that returns the ids of
        greedy decoding, for *writes*. Without a source, it gets the first
        token_ids of each sequence.
    step
        A function of the model, its new ids (B, T) and the cache (None at
        first) that returns the logits of the new ids and the cache, for
        *cached*, if the kit does not find the cache. For an encoder-decoder,
        the source comes before the new ids.
    reference
        Another model with the same weights, of either framework, for
        *reference*.
    count
        The expected number of parameters, for *count*.
    vocab_size
        The expected number of logits, for *shape*.
    untrained
        Whether the weights are new, for *start*, which needs targets. In
        *layers*, equal weights are then a warning.
    overfit
        Whether to train a copy on the batch, or for how many steps at most at
        each of three rates, for *overfit*, which needs targets.
    pad_left
        Whether *pads* tests pads on the left, too; it also does so if a row
        begins with pads.
    call
        A function that calls the model with its ids, for a model that needs
        more arguments or hides its logits.
    only, skip
        The names of the checks to run, or to leave out.
    expected_failures
        {name: reason} for checks that may fail: their failures are warnings,
        and so are their passes.

    Returns
    -------
    Report
        A result for each check, by name.

    Raises
    ------
    TypeError
        If the model is of neither framework, or a flag is not True or False.
    ValueError
        If there are too few ids, shapes do not fit, or there is no check of
        a name.
    """
    expected = expected_failures or {}
    if not isinstance(expected, Mapping):
        raise TypeError(
            "expected_failures should be {name of a check: reason}"
        )
    chosen = choose_checks(only, skip, expected)
    flags = {"causal": causal, "untrained": untrained, "pad_left": pad_left}
    for name, flag in flags.items():
        if not isinstance(flag, (bool, np.bool_)):
            raise TypeError(f"{name} should be True or False, not {flag!r}")
    ids, wanted = rows_of(token_ids, decoder_ids, targets, pad_id)
    with ONE_AT_A_TIME, ExitStack() as stack:
        wrapped = wrap("model", model, ids, pad_id, call, step, stack)
        other = reference
        if reference is not None:
            other = wrap(
                "reference", reference, ids, pad_id, None, None, stack
            )
        case = Case(
            wrapped,
            ids,
            pad_id,
            bool(causal),
            targets=wanted,
            loss=loss,
            decode=decode,
            step=step,
            reference=other,
            count=count,
            vocab_size=vocab_size,
            untrained=untrained,
            overfit=overfit,
            pad_left=pad_left,
        )
        note_assumed(case)
        settle_masks(case)
        results: list[Result] = []
        for name in progress(chosen):
            result = run_check(case, name, results)
            if name in expected:
                result = as_expected(result, expected[name])
            results.append(result)
    return Report(results, wrapped.notes)


def where_it_differs(
    model: Any,
    reference: Any,
    token_ids: Any,
    decoder_ids: Any = None,
    *,
    pad_id: int | None = None,
) -> list[Difference]:
    """Return how far each module's output is from the reference's.

    Modules are matched by name or, if names differ, by shape and nearest
    outputs. Each call of a module counts.

    Parameters
    ----------
    model, reference
        Two models with the same weights, of either framework.
    token_ids, decoder_ids, pad_id
        As in `check_model`.

    Returns
    -------
    list of Difference
        One for each call of a module, in their order.
    """
    ids, _ = rows_of(token_ids, decoder_ids, None, pad_id)
    with ONE_AT_A_TIME, ExitStack() as stack:
        ours, theirs = (
            wrap(name, given, ids, pad_id, None, None, stack)
            for name, given in [("model", model), ("reference", reference)]
        )
        return differences(ours, theirs, ids)


def choose_checks(
    only: Iterable[str] | None, skip: Iterable[str], expected: Iterable[str]
) -> list[str]:
    """Return the names of the checks to run; raise ValueError if unknown."""
    only = CHECKS if only is None else only
    only, skip = ([x] if isinstance(x, str) else [*x] for x in (only, skip))
    for name in [*only, *skip, *expected]:
        if name not in CHECKS:
            raise ValueError(
                f"there is no check {name!r}; the checks are "
                f"{', '.join(CHECKS)}"
            )
    chosen = [name for name in CHECKS if name in only and name not in skip]
    if not chosen:
        raise ValueError("only= and skip= leave no check")
    return chosen


def rows_of(
    token_ids: Any, decoder_ids: Any, targets: Any, pad_id: int | None
) -> tuple[tuple[np.ndarray, ...], np.ndarray | None]:
    """Return the ids and targets as arrays; raise an error if they misfit."""
    whole = isinstance(pad_id, (int, np.integer)) and not isinstance(
        pad_id, bool
    )
    if pad_id is not None and not whole:
        raise TypeError(f"pad_id should be a whole number, not {pad_id!r}")
    given = {"token_ids": token_ids, "decoder_ids": decoder_ids}
    ids = tuple(as_rows(x, n) for n, x in given.items() if x is not None)
    if len({len(x) for x in ids}) > 1:
        raise ValueError(
            f"token_ids has {len(ids[0])} rows and decoder_ids "
            f"{len(ids[1])}: give a row of each for every sequence"
        )
    if min(x.min() for x in ids) < 0:
        raise ValueError("there are negative ids: -100 is only for targets")
    wanted = None if targets is None else as_rows(targets, "targets")
    if wanted is not None and wanted.shape != ids[-1].shape:
        raise ValueError(
            f"targets are {wanted.shape}, but the ids are {ids[-1].shape}: "
            "give a target for each id, -100 where there is none"
        )
    return ids, wanted


def wrap(
    argument: str,
    model: Any,
    ids: tuple[np.ndarray, ...],
    pad_id: int | None,
    call: Callable | None,
    step: Callable | None,
    stack: ExitStack,
) -> Any:
    """Return the model, wrapped for the checks and opened on the stack.

    A framework is imported only if the model's own code has imported it.
    """
    torch, keras = sys.modules.get("torch"), sys.modules.get("keras")
    if torch is not None and isinstance(model, torch.nn.Module):
        from .torch_model import TorchModel as Wrapped
    elif keras is not None and isinstance(model, keras.layers.Layer):
        from .keras_model import KerasModel as Wrapped
    else:
        kind = f"a {type(model).__name__}"
        advice = (
            "For a function around a model, give the model, and the "
            "function as call=; for weights, load them into a model."
        )
        if isinstance(model, type):
            kind, advice = f"the class {model.__name__}", "Make an instance."
        raise TypeError(
            f"{argument} should be an nn.Module or a Keras model; it is "
            f"{kind}. {advice}"
        )
    wrapped: Any = Wrapped(model, ids, pad_id, call, step)
    decoders = {"decoder_input_ids", "decoder_token_ids"} & {*wrapped.names}
    if decoders and len(ids) == 1:
        raise ValueError(
            f"{argument} is an encoder-decoder, which takes {decoders.pop()}: "
            "give decoder_ids, the input of its decoder, after token_ids"
        )
    stack.enter_context(wrapped.opened())
    return wrapped


def note_assumed(case: Case) -> None:
    """Note what is assumed about pads, and which weights are replaced."""
    if case.model.redrawn:
        case.model.note(
            f"Initialised in the copy: {listed([*case.model.redrawn])}, which "
            "would hide the layers before."
        )
    if case.pad_id is not None:
        return
    said = "pad_id=None: every id counts as a token."
    tails = [row[-1] for row in case.ids[0] if row[-1] == row[-2]]
    if tails and len(tails) < len(case.ids[0]):
        said += f" If {tails[0]} at the end of a row is a pad, pass pad_id="
        said += f"{tails[0]}."
    case.model.note(said)


def settle_masks(case: Case) -> None:
    """Find out what True means in masks whose names do not tell.

    They get True at tokens, or at pads, whichever makes pads change nothing.
    If neither does, the model gets no such mask, and `pads` reports it.
    """
    model = case.model
    is_keras = type(model).__name__ == "KerasModel"  # True at tokens
    if is_keras or case.pad_id is None or not model.unsure_masks:
        return
    model.either_was_tried = True
    notes = [*model.notes]
    for model.either in ("tokens", "pads"):
        try:
            invariance.pads_on_the_right(
                Case(model, case.ids, case.pad_id, case.causal)
            )
        except Lacks:
            break
        except Exception:
            continue
        break
    else:
        model.either = None
    model.notes[:] = notes  # without those of wrong guesses
    case.__dict__.pop("first", None)


def run_check(case: Case, name: str, before: list[Result]) -> Result:
    """Return the result of one check; an error is no verdict.

    before: the results so far. The same error is reported only once.
    """
    check, symptom = CHECKS[name]
    try:
        if name not in OF_WEIGHTS:
            case.ready()
        return Result(name, "passed", check(case), symptom)
    except Failed as verdict:
        return Result(name, "failed", str(verdict), symptom)
    except Warned as verdict:
        return Result(name, "warning", str(verdict), symptom)
    except NotRun as reason:
        lacks = isinstance(reason, Lacks)
        return Result(name, "not run", str(reason), symptom, lacks=lacks)
    except Exception as error:
        sentence = f"{type(error).__name__}: {first_line(error)}"
        for result in before:
            if result.sentence == sentence:
                said = f"the model raises the same error as in {result.name}."
                return Result(name, "not run", said, symptom)
        return Result(name, "error", sentence, symptom, error)


def as_expected(result: Result, reason: str) -> Result:
    """Return a warning if a check failed as expected, or passed."""
    if result.status in ("failed", "warning"):
        said = f"{EXPECTED}{reason}): {result.sentence}"
    elif result.status == "passed":
        said = f"Expected to fail ({reason}), but passed: {result.sentence}"
    else:
        return result
    return Result(result.name, "warning", said, result.symptom)


def progress(names: list[str]) -> Iterable[str]:
    """Return the names; a terminal shows a progress bar after two seconds."""
    try:
        from tqdm import tqdm
    except ImportError:
        return names
    if "PYTEST_CURRENT_TEST" in os.environ:
        return names
    return tqdm(names, "checks", leave=False, disable=None, delay=2)
