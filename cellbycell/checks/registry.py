"""The checks by name, and how one of them is run."""

from __future__ import annotations

import time
from dataclasses import replace

from .batch import batch_invariance, determinism
from .cache import cache_consistency
from .causality import (
    causality,
    causality_grad,
    causality_train,
    prefix_consistency,
)
from .context import Check, CheckContext
from .decoding import greedy_decoding
from .dependence import (
    context_dependence,
    source_dependence,
    token_influence,
)
from .gradients import gradient_flow
from .loss import (
    initial_loss,
    loss_padding_invariance,
    overfit_one_batch,
    target_alignment,
)
from .padding import padding_invariance
from .parameters import duplicate_weights, parameter_count
from .pixels import OF_WORDS
from .positions import position_dependence
from .reference import reference_parity
from .report import EXPECTED, Result
from .shape import output_shape
from .training import training_gradients, weights_move
from .verdicts import NotRun, run_check

# Each check, and the section of *Symptoms* that has its causes.
CHECKS: dict[str, tuple[Check, str]] = {
    check.__name__: (check, symptom)
    for check, symptom in [
        (output_shape, "the-loss-or-a-gradient-is-nan"),
        (causality, "the-loss-is-too-good"),
        (causality_train, "the-loss-is-too-good"),
        (causality_grad, "the-loss-is-too-good"),
        (prefix_consistency, "it-trains-and-it-is-still-wrong"),
        (cache_consistency, "the-cache-changes-the-output"),
        (padding_invariance, "padding-changes-the-output"),
        (batch_invariance, "the-batch-changes-the-output"),
        (determinism, "two-calls-give-two-answers"),
        (context_dependence, "padding-changes-the-output"),
        (token_influence, "it-trains-and-it-is-still-wrong"),
        (position_dependence, "the-order-of-the-tokens-does-not-matter"),
        (source_dependence, "it-trains-and-it-is-still-wrong"),
        (gradient_flow, "parameters-are-missing-or-never-change"),
        (training_gradients, "parameters-are-missing-or-never-change"),
        (weights_move, "parameters-are-missing-or-never-change"),
        (duplicate_weights, "parameters-are-missing-or-never-change"),
        (parameter_count, "parameters-are-missing-or-never-change"),
        (reference_parity, "logits-differ-from-another-library"),
        (target_alignment, "the-loss-is-too-good"),
        (loss_padding_invariance, "the-loss-is-too-good"),
        (initial_loss, "the-loss-stays-high"),
        (greedy_decoding, "it-trains-and-it-is-still-wrong"),
        (overfit_one_batch, "the-loss-stays-high"),
    ]
}
# One of these needs no outputs, and the other one judges them.
OF_WEIGHTS = {"output_shape", "parameter_count"}


def run_named(
    context: CheckContext,
    name: str,
    known: tuple[Check, str],
    before: list[Result],
) -> Result:
    """Return the result of a check.

    known: the check and its section of *Symptoms*; before: the results so
    far. The same error is reported only once.
    """
    check, symptom = known

    def ready(context):
        if context.pixels is not None and name in OF_WORDS:
            raise NotRun(OF_WORDS[name])
        if name not in OF_WEIGHTS:
            context.ready()
        return check(context)

    start = time.perf_counter()
    result = run_check(ready, context, name, symptom)
    result = replace(result, seconds=time.perf_counter() - start)
    if result.status == "error":
        for other in before:
            if other.sentence == result.sentence:
                said = f"the model raises the same error as in {other.name}."
                return replace(
                    result, status="not run", sentence=said, error=None
                )
    return result


def expect_failure(result: Result, reason: str) -> Result:
    """Return a warning if a check failed as expected, or passed."""
    if result.status in ("failed", "warning"):
        said = f"{EXPECTED}{reason}): {result.sentence}"
    elif result.status == "passed":
        said = f"Expected to fail ({reason}), but passed: {result.sentence}"
    else:
        return result
    return replace(result, status="warning", sentence=said)
