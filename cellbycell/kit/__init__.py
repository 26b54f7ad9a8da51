"""Ask a Transformer, in PyTorch or Keras, the questions that find its bugs.

    report = check_model(model, token_ids, pad_id=0, causal=True)
    print(report)
    report.raise_if_failed()

The chapter that teaches it: testing.ipynb. The page that leads from a check
that fails to its causes: `report.explain("future")`, or, in a shell,
`python -m cellbycell.kit --explain future`.
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
from .asked import Asked, Check, Failed, Lacks, NotAsked, Warned, first_line
from .cached import cached
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

# Each check, and the section of the page of symptoms that it leads to.
CHECKS: dict[str, tuple[Check, str]] = {
    "shape": (weights.shape, "the-loss-or-a-gradient-is-nan"),
    "future": (invariance.future, "the-loss-is-too-good"),
    "future_train": (invariance.future_train, "the-loss-is-too-good"),
    "future_grad": (weights.future_grad, "the-loss-is-too-good"),
    "steps": (invariance.steps, "it-trains-and-it-is-still-wrong"),
    "cached": (cached, "it-writes-well-without-a-cache-and-badly-with-it"),
    "pads": (invariance.pads, "padding-changes-my-output"),
    "alone": (
        invariance.alone,
        "it-works-at-batch-size-1-or-depends-on-the-rest-of-the-batch",
    ),
    "calls": (invariance.calls, "two-calls-give-two-answers"),
    "context": (invariance.context, "padding-changes-my-output"),
    "reach": (invariance.reach, "it-trains-and-it-is-still-wrong"),
    "order": (order, "the-order-of-the-tokens-does-not-matter"),
    "source": (invariance.source, "it-trains-and-it-is-still-wrong"),
    "gradients": (
        weights.gradients,
        "too-many-parameters-too-few-or-parameters-that-never-change",
    ),
    "layers": (
        weights.layers,
        "too-many-parameters-too-few-or-parameters-that-never-change",
    ),
    "count": (
        weights.count,
        "too-many-parameters-too-few-or-parameters-that-never-change",
    ),
    "reference": (
        weights.reference,
        "the-output-differs-between-libraries-or-loaded-weights-give-nonsense",
    ),
    "aim": (losses.aim, "the-loss-is-too-good"),
    "loss": (losses.loss, "the-loss-is-too-good"),
    "start": (losses.start, "it-trains-and-it-is-still-wrong"),
    "writes": (losses.writes, "it-trains-and-it-is-still-wrong"),
    "overfit": (losses.overfit, "it-trains-and-it-is-still-wrong"),
}
# The check that needs no outputs, and the one that judges them.
OF_WEIGHTS = {"shape", "count"}
# Generators are the process's: one thread asks at a time.
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
    """Ask a model all questions that its arguments allow.

    Each question is asked of a copy, so that the model, its modes and
    gradients, and all generators are afterwards what they were. The copy's
    weights take as much memory as the model's. A small configuration is
    answered in less than a second; long rows cost most, since attention
    grows with their square, then large vocabularies. `only` saves the rest.

    Weights behind which nothing moves, a last layer of zeros for example,
    are initialised in the copy. Threads are asked one after the other.

    Parameters
    ----------
    model
        An nn.Module or a Keras model.
    token_ids
        (B, T), or (B, S) of an encoder-decoder's source: a list, an array, a
        tensor, or what a tokenizer returns. Best are two sequences or more,
        of different tokens and lengths, pads on the right. No longer rows
        are given to the model.
    decoder_ids
        (B, T): what the decoder of an encoder-decoder reads.
    pad_id
        The id of pads; None if there are none.
    causal
        Whether a token may attend to earlier ones only; for an
        encoder-decoder, in the decoder.
    targets
        (B, T): the ids to be predicted, -100 or pad_id where there are none.
        Asks *aim*, and with other arguments *loss*, *start* and *overfit*. A
        model that takes labels= gets them as labels, unless `loss` is given.
    loss
        A function of logits (B, T, N) and targets (B, T). Asks *loss*.
    decode
        A function of the model and token_ids, a part of them if the model has
        no source, that returns the ids that greedy decoding writes. Asks
        *writes*.
    step
        A function of the model, its new ids (B, T) and the cache, None at
        first, that returns the logits of the new ids and the cache; of an
        encoder-decoder, the source comes before the new ids. Asks *cached*
        of a model whose cache the kit does not find.
    reference
        Another model with the same weights, of either framework. Asks
        *reference*.
    count
        How many parameters there should be. Asks *count*.
    vocab_size
        How many logits there should be, for *shape*.
    untrained
        Whether the weights are new. Asks *start*, with targets, and takes
        weights that begin alike for no mistake, in *layers*.
    overfit
        Whether to train a copy on the batch, or for how many steps at most, at
        each of three rates. Asks *overfit*, with targets.
    pad_left
        Whether pads on the left may change nothing, either, for *pads*; rows
        that begin with pads ask it, too.
    call
        A function of the model and its ids that calls it, for a model that
        needs more arguments or hides its logits.
    only, skip
        The names of the checks to ask, or to leave out.
    expected_failures
        {name: reason} of the checks that may fail: if they do, that is a
        warning, and if they pass, that is one, too.

    Returns
    -------
    Report
        A result for each check, by name.

    Raises
    ------
    TypeError
        If the model is of neither framework, or a flag is not True or False.
    ValueError
        If the ids are too few to ask anything, shapes do not fit, or there
        is no check of a name.
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
        asked = Asked(
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
        note_assumed(asked)
        settle_masks(asked)
        results: list[Result] = []
        for name in progress(chosen):
            result = ask(asked, name, results)
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

    Modules are matched by name, or, where the names differ, by shape and
    nearest numbers; a module that is called more than once, call by call.

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
    """Return the names of the checks to ask; raise ValueError if unknown."""
    only = CHECKS if only is None else only
    only, skip = ([x] if isinstance(x, str) else [*x] for x in (only, skip))
    for name in [*only, *skip, *expected]:
        if name not in CHECKS:
            raise ValueError(
                f"there is no check {name!r}; there are {', '.join(CHECKS)}"
            )
    chosen = [name for name in CHECKS if name in only and name not in skip]
    if not chosen:
        raise ValueError("only= and skip= leave no check")
    return chosen


def rows_of(
    token_ids: Any, decoder_ids: Any, targets: Any, pad_id: int | None
) -> tuple[tuple[np.ndarray, ...], np.ndarray | None]:
    """Return the ids and the targets as arrays; raise what does not fit."""
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
        raise ValueError("there are negative ids: -100 is for targets alone")
    wanted = None if targets is None else as_rows(targets, "targets")
    if wanted is not None and wanted.shape != ids[-1].shape:
        raise ValueError(
            f"targets are {wanted.shape}, and the ids that the outputs belong "
            f"to {ids[-1].shape}: a target for each, -100 where there is none"
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
    """Return the model as the checks ask it, opened on the stack.

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
            "give decoder_ids, what its decoder reads, behind token_ids"
        )
    stack.enter_context(wrapped.opened())
    return wrapped


def note_assumed(asked: Asked) -> None:
    """Say what was assumed of pads, and which weights are others."""
    if asked.model.redrawn:
        asked.model.note(
            f"Redrawn in the copy: {listed([*asked.model.redrawn])}, behind "
            "which nothing would move."
        )
    if asked.pad_id is not None:
        return
    said = "pad_id=None: every id counts as a token."
    tails = [row[-1] for row in asked.ids[0] if row[-1] == row[-2]]
    if tails and len(tails) < len(asked.ids[0]):
        said += f" If {tails[0]} at the end of a row is a pad, say so."
    asked.model.note(said)


def settle_masks(asked: Asked) -> None:
    """Find out what True means in masks whose names do not tell.

    Where it stands at tokens, or at pads, so that pads move nothing, it is
    given there; if neither holds, no such mask is given, and `pads` says so.
    """
    model = asked.model
    is_keras = type(model).__name__ == "KerasModel"  # at tokens, by custom
    if is_keras or asked.pad_id is None or not model.unsure_masks:
        return
    model.either_was_tried = True
    notes = [*model.notes]
    for model.either in ("tokens", "pads"):
        try:
            invariance.pads_on_the_right(
                Asked(model, asked.ids, asked.pad_id, asked.causal)
            )
        except Lacks:
            break
        except Exception:
            continue
        break
    else:
        model.either = None
    model.notes[:] = notes  # what was noted of the readings that are wrong
    asked.__dict__.pop("first", None)


def ask(asked: Asked, name: str, before: list[Result]) -> Result:
    """Return the result of one check; an error is no verdict.

    before: the results so far. An error that was told already is not told
    again.
    """
    check, symptom = CHECKS[name]
    try:
        if name not in OF_WEIGHTS:
            asked.ready()
        return Result(name, "passed", check(asked), symptom)
    except Failed as verdict:
        return Result(name, "failed", str(verdict), symptom)
    except Warned as verdict:
        return Result(name, "warning", str(verdict), symptom)
    except NotAsked as reason:
        lacks = isinstance(reason, Lacks)
        return Result(name, "not asked", str(reason), symptom, lacks=lacks)
    except Exception as error:
        sentence = f"{type(error).__name__}: {first_line(error)}"
        for result in before:
            if result.sentence == sentence:
                said = f"the error is that of {result.name}."
                return Result(name, "not asked", said, symptom)
        return Result(name, "error", sentence, symptom, error)


def as_expected(result: Result, reason: str) -> Result:
    """Return a warning where a check failed as expected, or passed."""
    if result.status in ("failed", "warning"):
        said = f"{EXPECTED}{reason}): {result.sentence}"
    elif result.status == "passed":
        said = f"Expected to fail ({reason}), and passed: {result.sentence}"
    else:
        return result
    return Result(result.name, "warning", said, result.symptom)


def progress(names: list[str]) -> Iterable[str]:
    """Return the names, with a bar in a terminal if it takes seconds."""
    try:
        from tqdm import tqdm
    except ImportError:
        return names
    if "PYTEST_CURRENT_TEST" in os.environ:
        return names
    return tqdm(names, "checks", leave=False, disable=None, delay=2)
