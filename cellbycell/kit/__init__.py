"""Ask a Transformer, in PyTorch or Keras, the questions that find its bugs.

    report = check_model(model, token_ids, pad_id=0, causal=True)
    print(report)
    report.raise_if_failed()

The chapter that teaches it: testing.ipynb. The page that leads from a check
that fails to its causes: symptoms.html.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from . import invariance, losses, weights
from .asked import Asked, Check, Failed, NotAsked
from .differ import Difference, differences
from .order import order
from .outputs import as_rows
from .report import SYMPTOMS, CheckFailed, Report, Result

__all__ = [
    "CHECKS",
    "CheckFailed",
    "Difference",
    "Report",
    "Result",
    "check_model",
    "where_it_differs",
]

# Each check, and the section of the page of symptoms that it leads to.
CHECKS: dict[str, tuple[Check, str]] = {
    "shape": (weights.shape, "the-loss-or-a-gradient-is-nan"),
    "future": (invariance.future, "the-loss-is-too-good"),
    "training": (invariance.future_in_training, "the-loss-is-too-good"),
    "causal": (weights.causal, "the-loss-is-too-good"),
    "steps": (invariance.steps, "it-trains-and-it-is-still-wrong"),
    "pads": (invariance.pads, "padding-changes-my-output"),
    "alone": (
        invariance.alone,
        "it-works-at-batch-size-1-or-depends-on-the-rest-of-the-batch",
    ),
    "calls": (invariance.calls, "two-calls-give-two-answers"),
    "context": (invariance.context, "padding-changes-my-output"),
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
    "shift": (losses.shift, "the-loss-is-too-good"),
    "loss": (losses.loss, "the-loss-is-too-good"),
    "start": (losses.start, "it-trains-and-it-is-still-wrong"),
    "writes": (losses.writes, "it-trains-and-it-is-still-wrong"),
    "overfit": (losses.overfit, "it-trains-and-it-is-still-wrong"),
}
# The check that needs no outputs, and the one that judges them.
OF_WEIGHTS = {"shape", "count"}


def check_model(
    model: Any,
    token_ids: Any,
    decoder_ids: Any = None,
    *,
    pad_id: int | None = 0,
    causal: bool = True,
    targets: Any = None,
    loss: Callable | None = None,
    decode: Callable | None = None,
    reference: Any = None,
    count: int | None = None,
    vocab_size: int | None = None,
    untrained: bool = False,
    overfit: bool | int = False,
    pad_left: bool = False,
    call: Callable | None = None,
) -> Report:
    """Ask a model all questions that its arguments allow.

    Each question is asked of a copy, so that the model, its modes and
    gradients, and all generators are afterwards what they were; a small
    configuration is answered sooner than a large model.

    Parameters
    ----------
    model
        An nn.Module or a Keras model.
    token_ids
        (B, T), or (B, S) of an encoder-decoder's source: a list, an array or
        a tensor. Best are two sequences or more, of different tokens and
        lengths, pads on the right. No longer rows are given to the model.
    decoder_ids
        (B, T): what the decoder of an encoder-decoder reads.
    pad_id
        The id of pads; None if there are none.
    causal
        Whether a token may attend to earlier ones only; for an
        encoder-decoder, in the decoder.
    targets
        (B, T): the ids to be predicted. Asks *shift*, and with other
        arguments *loss*, *start* and *overfit*.
    loss
        A function of logits (B, T, N) and targets (B, T). Asks *loss*.
    decode
        A function of the model and token_ids, a part of them if the model has
        no source, that returns the ids that greedy decoding writes. Asks
        *writes*.
    reference
        Another model with the same weights, of either framework. Asks
        *reference*.
    count
        How many parameters there should be. Asks *count*.
    vocab_size
        How many logits there should be, for *shape*.
    untrained
        Whether the weights are new. Asks *start*, with targets.
    overfit
        Whether to train a copy on the batch, or for how many steps at most, at
        each of three rates. Asks *overfit*, with targets.
    pad_left
        Whether pads on the left may change nothing, either, for *pads*.
    call
        A function of the model and its ids that calls it, for a model that
        needs more arguments or hides its logits.

    Returns
    -------
    Report
        A result for each check, by name.

    Raises
    ------
    TypeError
        If the model is of neither framework.
    ValueError
        If the ids are too few to ask anything.
    """
    ids = tuple(as_rows(x) for x in (token_ids, decoder_ids) if x is not None)
    with ExitStack() as stack:
        wrapped = wrap(model, ids, pad_id, call, stack)
        other = reference
        if reference is not None:
            other = wrap(reference, ids, pad_id, None, stack)
        asked = Asked(
            wrapped,
            ids,
            pad_id,
            causal,
            targets=None if targets is None else as_rows(targets),
            loss=loss,
            decode=decode,
            reference=other,
            count=count,
            vocab_size=vocab_size,
            untrained=untrained,
            overfit=overfit,
            pad_left=pad_left,
        )
        results = [ask(asked, name) for name in CHECKS]
    return Report(results, wrapped.notes)


def where_it_differs(
    model: Any,
    reference: Any,
    token_ids: Any,
    decoder_ids: Any = None,
    *,
    pad_id: int | None = 0,
) -> list[Difference]:
    """Return how far each module's output is from the reference's.

    Modules are matched by name, or, where the names differ, by shape and
    nearest numbers.

    Parameters
    ----------
    model, reference
        Two models with the same weights, of either framework.
    token_ids, decoder_ids, pad_id
        As in `check_model`.

    Returns
    -------
    list of Difference
        One for each module of the model, in the order of their calls.
    """
    ids = tuple(as_rows(x) for x in (token_ids, decoder_ids) if x is not None)
    with ExitStack() as stack:
        ours = wrap(model, ids, pad_id, None, stack)
        theirs = wrap(reference, ids, pad_id, None, stack)
        return differences(ours.copy(), theirs.copy(), ids)


def wrap(
    model: Any,
    ids: tuple[np.ndarray, ...],
    pad_id: int | None,
    call: Callable | None,
    stack: ExitStack,
) -> Any:
    """Return the model as the checks ask it, opened on the stack.

    A framework is imported only if the model's own code has imported it.
    """
    torch, keras = sys.modules.get("torch"), sys.modules.get("keras")
    if torch is not None and isinstance(model, torch.nn.Module):
        from .torch_model import TorchModel

        wrapped: Any = TorchModel(model, pad_id, call)
    elif keras is not None and isinstance(model, keras.layers.Layer):
        from .keras_model import KerasModel

        wrapped = KerasModel(model, ids, pad_id, call)
    else:
        raise TypeError(
            "model should be an nn.Module or a Keras model; it is a "
            f"{type(model).__name__}. For a function around a model, give "
            "the model, and the function as call=."
        )
    stack.enter_context(wrapped.opened())
    return wrapped


def ask(asked: Asked, name: str) -> Result:
    """Return the result of one check; an error is no verdict."""
    check, section = CHECKS[name]
    symptom = f"{SYMPTOMS}#{section}"
    try:
        if name not in OF_WEIGHTS:
            asked.ready()
        return Result(name, "passed", check(asked), symptom)
    except Failed as verdict:
        return Result(name, "failed", str(verdict), symptom)
    except NotAsked as reason:
        return Result(name, "not asked", str(reason), symptom)
    except Exception as error:
        text = (str(error).strip().splitlines() or [""])[0]
        sentence = f"{type(error).__name__}: {text}"
        return Result(name, "error", sentence, symptom)
