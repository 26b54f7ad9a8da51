"""The checks as tests of pytest."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any


def parametrize_with_checks(
    models: Mapping[str, Callable[[], Mapping[str, Any]]],
    also: Iterable[Callable] = (),
) -> Callable:
    """Return a decorator of pytest that makes a test of each check.

        @parametrize_with_checks(
            {"small": lambda: dict(model=make(), token_ids=IDS, pad_id=0)}
        )
        def test_transformer(check):
            check()

    A check that fails as expected is an xfail, a check that is not run is
    skipped, and a warning of a check is a Python warning. Each model is made
    when its first test runs, and each test runs its own check alone.

    Parameters
    ----------
    models
        {name: function without arguments that returns the arguments of
        `check_model`}.
    also
        Checks of your own, as in `check_model`.

    Returns
    -------
    Callable
        The decorator, for a test that takes `check` and calls it.
    """
    import pytest

    from . import check_model
    from .arguments import choose_checks, known_checks
    from .report import EXPECTED

    checks = known_checks(also)

    @cache
    def made(name):
        return models[name]()

    def check(name, wanted):
        __tracebackhide__ = True
        given = {"only": None, "skip": (), **made(name)}
        chosen = choose_checks(checks, given.pop("only"), given.pop("skip"))
        if wanted not in chosen:
            pytest.skip("left out")
        found = check_model(**given, also=also, only=wanted)[wanted]
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
            for wanted in checks
        ],
    )
