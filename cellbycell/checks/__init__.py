"""Check a Transformer, in PyTorch or Keras, for common bugs.

    report = check_model(model, token_ids, pad_id=0, causal=True)
    print(report)
    report.raise_if_failed()

The chapter testing.ipynb explains the checks. `report.explain("causality")`,
or `python -m cellbycell.checks --explain causality` in a shell, prints the
causes of a failure.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from .arguments import (
    choose_checks,
    expected_of,
    known_checks,
    note_assumed,
    progress,
    refuse_words,
    rows_of,
    tagged,
)
from .backends import open_model
from .context import Check, CheckContext
from .padding import infer_mask_polarity
from .pixels import PAD, Pixels
from .pytest_checks import parametrize_with_checks
from .reference import Difference, differences
from .registry import CHECKS, expect_failure, run_named
from .report import CheckFailed, Report, Result
from .verdicts import Failed, NotRun, Warned

__all__ = [
    "CHECKS",
    "CheckFailed",
    "Difference",
    "Failed",
    "NotRun",
    "Report",
    "Result",
    "Warned",
    "check_model",
    "parametrize_with_checks",
    "where_it_differs",
]

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
    optimizer: Callable | None = None,
    decode: Callable | None = None,
    step: Callable | None = None,
    reference: Any = None,
    count: int | None = None,
    vocab_size: int | None = None,
    untrained: bool = False,
    overfit: bool | int = False,
    pad_left: bool = False,
    call: Callable | None = None,
    patch: int | None = None,
    patch_mask: Any = None,
    only: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    also: Iterable[Check] = (),
    expected_failures: Mapping[str, str] | Callable | None = None,
) -> Report:
    """Run every check that the arguments allow on a model.

    The checks run on a copy, which takes as much memory as the model. The
    model, its modes and gradients, and all generators do not change. A small
    configuration takes less than a second; long rows cost most, because
    attention grows with their square, then large vocabularies. `only` saves
    time.

    Weights that hide the layers before them, such as a last layer of zeros,
    are initialised in the copy. Only one thread runs checks at a time.

    A model may say of itself what a call would else say each time, in an
    attribute: check_tags = {"causal": False, "pad_id": 0}. It may have pad_id,
    causal, call, step and expected_failures, and counts where the call leaves
    the default.

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
        (B, T): the ids to predict, -100 (what `loss` gets), -1 or pad_id
        where there are none, for
        *target_alignment*, and with other arguments for
        *loss_padding_invariance*, *initial_loss* and *overfit_one_batch*. A
        model that takes labels=, or nanoGPT's targets=, gets them there,
        unless `loss` is given.
    loss
        A function of logits (B, T, N) and targets (B, T), for
        *loss_padding_invariance*.
    optimizer
        A function of the trainable parameters that returns an optimizer, for
        *weights_move*; AdamW at a rate of 3e-4 if None.
    decode
        A function of the model and its source ids that returns the ids of
        greedy decoding, for *greedy_decoding*. Without a source, it gets the
        first token_ids of each sequence.
    step
        A function of the model, its new ids (B, T) and the cache (None at
        first) that returns the logits of the new ids and the cache, for
        *cache_consistency*, if the kit does not find the cache. For an
        encoder-decoder, the source comes before the new ids.
    reference
        Another model with the same weights, of either framework, for
        *reference_parity*.
    count
        The expected number of parameters, for *parameter_count*.
    vocab_size
        The expected number of logits, for *output_shape*.
    untrained
        Whether the weights are new, for *initial_loss*, which needs targets.
        In *duplicate_weights*, equal weights are then a warning.
    overfit
        Whether to train a copy on the batch, or for how many steps at most at
        each of three rates, for *overfit_one_batch*, which needs targets.
    pad_left
        Whether *padding_invariance* tests pads on the left, too; it also does
        so if a row begins with pads.
    call
        A function that calls the model with its ids, for a model that needs
        more arguments or hides its logits.
    patch
        For a model of pictures: the side of a patch, in pixels. token_ids are
        then pictures, (batch, colours, height, width) for PyTorch, colours
        last for Keras; patches stand for tokens, and the model looks both
        ways (causal=False). It returns one output for each patch, after
        others such as the class token's. What makes no sense for pictures is
        not run, and says so.
    patch_mask
        (B, T): True at patches, False at pads, for *padding_invariance*.
        `call` is then a function of the model, the pictures and this mask.
    only, skip
        The names of the checks to run, or to leave out; one name or several.
    also
        Checks of your own: functions of a CheckContext that return a sentence,
        or raise Failed, Warned or NotRun with one. They are asked like others,
        by their names.
    expected_failures
        {name: reason} for checks that may fail, or a function of a name that
        returns the reason, or None: their failures are warnings, and so are
        their passes.

    Returns
    -------
    Report
        A result for each check, by name.

    Raises
    ------
    TypeError
        If the model is of neither framework, a flag is not True or False, or
        what should be a function is none.
    ValueError
        If there are too few ids, shapes do not fit, there is no check of a
        name, or check_tags has something else.
    """
    pad_id, causal, call, step, expected_failures = tagged(
        model,
        pad_id=pad_id,
        causal=causal,
        call=call,
        step=step,
        expected_failures=expected_failures,
    )
    checks = known_checks(also)
    chosen = choose_checks(checks, only, skip)
    expected = expected_of(checks, expected_failures)
    flags = {"causal": causal, "untrained": untrained, "pad_left": pad_left}
    functions = {"loss": loss, "decode": decode, "step": step, "call": call}
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise TypeError(f"{name} should be a function, not {function!r}")
    for name, flag in flags.items():
        if not isinstance(flag, (bool, np.bool_)):
            raise TypeError(f"{name} should be True or False, not {flag!r}")
    pixels = None
    if patch is not None or patch_mask is not None:
        words = {"decoder_ids": decoder_ids, "targets": targets}
        refuse_words(
            words | {"pad_id": pad_id, "step": step, "decode": decode}
        )
        pixels = Pixels(model, token_ids, patch, patch_mask, call)
        token_ids, call, causal = pixels.ids, pixels, False
        pad_id = None if patch_mask is None else PAD
    ids, wanted = rows_of(token_ids, decoder_ids, targets, pad_id)
    with ONE_AT_A_TIME, ExitStack() as stack:
        wrapped = stack.enter_context(
            open_model("model", model, ids, pad_id, call, step)
        )
        if reference is not None:
            reference = stack.enter_context(
                open_model("reference", reference, ids, pad_id, pixels)
            )
        context = CheckContext(
            wrapped,
            ids,
            pad_id,
            bool(causal),
            targets=wanted,
            loss=loss,
            optimizer=optimizer,
            decode=decode,
            step=step,
            reference=reference,
            count=count,
            vocab_size=vocab_size,
            untrained=bool(untrained),
            overfit=overfit,
            pad_left=bool(pad_left),
            pixels=pixels,
        )
        note_assumed(context)
        infer_mask_polarity(context)
        results: list[Result] = []
        for name in progress(chosen):
            result = run_named(context, name, checks[name], results)
            if name in expected:
                result = expect_failure(result, expected[name])
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
    with (
        ONE_AT_A_TIME,
        open_model("model", model, ids, pad_id) as ours,
        open_model("reference", reference, ids, pad_id) as theirs,
    ):
        return differences(ours, theirs, ids)
