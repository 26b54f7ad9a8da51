"""The checks as tests of pytest."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any


def parametrize_with_checks(
    models: Mapping[str, Callable[[], Mapping[str, Any]]],
) -> Callable:
    """Return a decorator of pytest that makes a test of each check.

        @parametrize_with_checks(
            {"small": lambda: dict(model=make(), token_ids=IDS, pad_id=0)}
        )
        def test_transformer(check):
            check()

    A check that fails as expected is an xfail, a check that is not run is
    skipped, and a warning of a check is a Python warning. Each model is made
    and tested when its first test runs.

    Parameters
    ----------
    models
        {name: function without arguments that returns the arguments of
        `check_model`}.

    Returns
    -------
    Callable
        The decorator, for a test that takes `check` and calls it.
    """
    import pytest

    from . import CHECKS, check_model
    from .report import EXPECTED

    @cache
    def report(name):
        return check_model(**models[name]())

    def check(name, wanted):
        __tracebackhide__ = True
        found = {result.name: result for result in report(name)}.get(wanted)
        if found is None:
            pytest.skip("left out")
        if found.status == "not run":
            pytest.skip(found.sentence)
        if found.sentence.startswith(EXPECTED):
            pytest.xfail(found.sentence)
        if found.status == "warning":
            warnings.warn(f"{wanted}: {found.sentence}", stacklevel=2)
        found.raise_if_failed()

    return pytest.mark.parametrize(
        "check",
        [
            pytest.param(partial(check, name, wanted), id=f"{name}-{wanted}")
            for name in models
            for wanted in CHECKS
        ],
    )
