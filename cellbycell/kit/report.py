"""What the kit answers: a result for each check, and a report of all."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Status = Literal["passed", "failed", "error", "not asked"]

# The page of the book that leads from each symptom to its causes.
SYMPTOMS = "symptoms.html"


class CheckFailed(AssertionError):
    """Raised by `Report.raise_if_failed`; its text has every sentence."""


@dataclass(frozen=True)
class Result:
    """The answer to one check.

    Parameters
    ----------
    name
        The name of the check.
    status
        "passed", "failed", "error" or "not asked".
    sentence
        What was seen, or why it was not asked.
    symptom
        Where the book lists the causes.
    """

    name: str
    status: Status
    sentence: str
    symptom: str


class Report:
    """The results of all checks, by name: `report["future"]`.

    Parameters
    ----------
    results
        One for each check.
    notes
        Sentences on how the model was asked: a float32 copy, the output that
        was taken for the logits, an attention mask that was given.
    """

    def __init__(self, results: list[Result], notes: list[str]) -> None:
        self._results = {result.name: result for result in results}
        self.notes = tuple(notes)

    def __getitem__(self, name: str) -> Result:
        return self._results[name]

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results.values())

    def __len__(self) -> int:
        return len(self._results)

    def __bool__(self) -> bool:
        """Raise TypeError: a report has a length, so it would be true."""
        raise TypeError(
            "a report is neither true nor false: write `assert report.ok`, or "
            "`report.raise_if_failed()`, which says what was seen"
        )

    def with_status(self, status: Status) -> list[str]:
        """Return the names of the checks that have this status."""
        return [result.name for result in self if result.status == status]

    @property
    def passed(self) -> list[str]:
        """The names of the checks that passed."""
        return self.with_status("passed")

    @property
    def failed(self) -> list[str]:
        """The names of the checks that failed."""
        return self.with_status("failed")

    @property
    def errors(self) -> list[str]:
        """The names of the checks during which the model raised an error."""
        return self.with_status("error")

    @property
    def ok(self) -> bool:
        """Whether no check failed or met an error."""
        return not self.failed and not self.errors

    def raise_if_failed(self) -> None:
        """Raise CheckFailed if a check failed or met an error.

        An error is no verdict on the model, but a test that could not ask
        its question must not pass either.
        """
        wrong = [r for r in self if r.status in ("failed", "error")]
        if wrong:
            raise CheckFailed(
                "\n".join(
                    f"{r.name} ({r.status}): {r.sentence} See {r.symptom}"
                    for r in wrong
                )
            )

    def __str__(self) -> str:
        """Return the report as a table of name, status and sentence."""
        lines = []
        for result in self:
            sentence = result.sentence
            if result.status == "failed":
                sentence += f" See {result.symptom}"
            head = f"{result.name:10} {result.status:9} "
            lines += textwrap.wrap(
                sentence,
                width=79,
                initial_indent=head,
                subsequent_indent=" " * len(head),
                break_long_words=False,
                break_on_hyphens=False,
            )
        for note in self.notes:
            lines += textwrap.wrap(
                note, 79, initial_indent="* ", subsequent_indent="  "
            )
        return "\n".join(lines)

    __repr__ = __str__
