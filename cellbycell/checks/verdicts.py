"""What a check may raise, and the result that becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .report import Result


class Failed(Exception):
    """Raised by a check that fails, with its verdict."""


class Warned(Exception):
    """Raised by a check whose finding may be intended."""


class NotRun(Exception):
    """Raised by a check that cannot run, with the reason."""


class MissingArgument(NotRun):
    """Raised by a check that needs another argument, or other ids.

    needs: which, in a word or two, as in "targets=".
    """

    def __init__(self, sentence: str, needs: str) -> None:
        super().__init__(sentence)
        self.needs = needs


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return (str(error).strip().splitlines() or [""])[0]


def listed(names: list[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def run_check(
    check: Callable[[Any], str], context: Any, name: str, symptom: str = ""
) -> Result:
    """Return the result of a check; an error of the model is no verdict."""
    try:
        return Result(name, "passed", check(context), symptom)
    except Failed as verdict:
        return Result(name, "failed", str(verdict), symptom)
    except Warned as verdict:
        return Result(name, "warning", str(verdict), symptom)
    except NotRun as reason:
        needs = getattr(reason, "needs", "")
        return Result(name, "not run", str(reason), symptom, needs=needs)
    except NotImplementedError as error:
        reason = first_line(error) or "something is not implemented"
        return Result(
            name, "not run", f"this cannot run here: {reason}", symptom
        )
    except Exception as error:
        sentence = f"{type(error).__name__}: {first_line(error)}"
        return Result(name, "error", sentence, symptom, error)
