"""The result of each check, and the report of all results."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Literal

Status = Literal["passed", "failed", "error", "warning", "not run"]
# In the order of a report.
ORDER = ("failed", "error", "warning", "passed")
# The page of the book that leads from each symptom to its causes.
SYMPTOMS = Path(__file__).with_name("symptoms.md")
# Files that a traceback leaves out, because they are not the model's.
LIBRARIES = re.compile(
    r"cellbycell.checks|packages.(torch|keras|tensorflow)|(context|func)(lib|tools)"
)
# The sentence of an expected failure begins with this.
EXPECTED = "Expected ("
HOW_TO_EXPLAIN = "python -m cellbycell.checks --explain"


class CheckFailed(AssertionError):
    """Raised by `Report.raise_if_failed`, with all sentences."""


@dataclass(frozen=True)
class Result:
    """The result of one check.

    Parameters
    ----------
    name
        The name of the check.
    status
        "passed", "failed", "error", "warning" or "not run".
    sentence
        What the check found, or why it was not run.
    symptom
        The section of the page *Symptoms* that lists the causes.
    error
        The model's error, if the status is "error".
    needs
        Which argument the check needs that was not given, as in "targets=".
    seconds
        How long it took. The first check also computes what all compare with.
    """

    name: str
    status: Status
    sentence: str
    symptom: str
    error: Exception | None = field(default=None, compare=False)
    needs: str = ""
    seconds: float = field(default=0.0, compare=False)

    def raise_if_failed(self) -> None:
        """Raise CheckFailed if the status is "failed" or "error"."""
        __tracebackhide__ = True  # of pytest
        if self.status in ("failed", "error"):
            raise CheckFailed(
                f"{self.name} ({self.status}): {self.sentence}\n"
                f"Causes: {HOW_TO_EXPLAIN} {self.name}"
            ) from self.error


class Report:
    """The results of all checks, by name: `report["causality"]`.

    Parameters
    ----------
    results
        One for each check that was chosen.
    notes
        Sentences on how the model was tested: with a float32 copy, with an
        attention mask, with a part of its output.
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
        """Raise TypeError: without this, a report would always be true."""
        raise TypeError(
            "a report is neither true nor false: write `assert report.ok`, or "
            "`report.raise_if_failed()`, which lists what failed"
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
    def warnings(self) -> list[str]:
        """The names of the checks whose finding may be intended."""
        return self.with_status("warning")

    @property
    def ok(self) -> bool:
        """Whether no check failed and the model raised no error."""
        return not self.failed and not self.errors

    def raise_if_failed(self) -> None:
        """Raise CheckFailed if a check failed or the model raised an error.

        An error is no verdict on the model, but a test must not pass if a
        check cannot run. The model's first error is the cause.
        """
        __tracebackhide__ = True
        wrong = [r for r in self if r.status in ("failed", "error")]
        if wrong:
            lines = [f"{r.name} ({r.status}): {r.sentence}" for r in wrong]
            lines.append(f"Causes: {HOW_TO_EXPLAIN} {wrong[0].name}")
            cause = next((r.error for r in wrong if r.error), None)
            raise CheckFailed("\n".join(lines)) from cause

    def explain(self, name: str) -> None:
        """Print the causes of a check's failure, and how to tell them apart.

        The text is a section of the page *Symptoms*. Raises ValueError if
        the report has no check of this name.
        """
        if name not in self._results:
            raise ValueError(
                f"the report has no check {name!r}; its checks are "
                f"{', '.join(self._results)}"
            )
        if not self[name].symptom:
            raise ValueError(f"{name!r} is a check of your own")
        print(section(self[name].symptom))

    def rows(self) -> list[tuple[str, str, str]]:
        """Return (name, status, sentence), failures first.

        Checks that were not run for the same reason share a row.
        """
        found = [
            (r.name, r.status, " ".join([r.sentence, *frames(r.error)]))
            for status in ORDER
            for r in self
            if r.status == status
        ]
        reasons: dict[str, list[str]] = {}  # a sentence -> its checks
        for r in self:
            if r.status == "not run":
                said, name = r.sentence, r.name
                if r.needs:
                    said, name = "need other arguments", f"{name} ({r.needs})"
                reasons.setdefault(said, []).append(name)
        for said, names in reasons.items():
            found.append(("", "not run", f"{', '.join(names)}: {said}"))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the report as numbers and texts, as JSON can write them."""
        checks = [
            {
                "name": r.name,
                "status": r.status,
                "sentence": r.sentence,
                "needs": r.needs,
                "symptom": r.symptom,
                "seconds": round(r.seconds, 3),
            }
            for r in self
        ]
        return {"ok": self.ok, "checks": checks, "notes": [*self.notes]}

    def to_markdown(self) -> str:
        """Return the report as a table in Markdown, for a CI's summary."""
        lines = ["| check | status | |", "|---|---|---|"]
        for row in self.rows():
            cells = (re.sub(r"([|<*_`])", r"\\\1", text) for text in row)
            lines.append(f"| {' | '.join(cells)} |")
        notes = [f"- {note}" for note in self.last_lines()]
        return "\n".join([*lines, "", *notes]) + "\n"

    def to_html(self) -> str:
        """Return the report as a page of its own."""
        return (
            '<!doctype html><html lang="en"><meta charset="utf-8">'
            "<title>Checks of a model</title>"
            '<body style="font-family: sans-serif; max-width: 60em">'
            f"{self._repr_html_()}</body></html>\n"
        )

    def last_lines(self) -> list[str]:
        """Return the notes, and how to see the causes of a failure."""
        wrong = [*self.failed, *self.warnings, *self.errors]
        wrong = [name for name in wrong if self[name].symptom]
        if not wrong:
            return [*self.notes]
        return [*self.notes, f'Causes: report.explain("{wrong[0]}").']

    def __str__(self) -> str:
        """Return the report as a table, as wide as the terminal."""
        columns = 79  # a file is the same everywhere
        if sys.stdout.isatty():
            columns = shutil.get_terminal_size().columns
        width, lines = max(60, min(columns, 110)), []
        wide = max([10, *(len(name) for name, _, _ in self.rows())])
        for name, status, sentence in self.rows():
            head = f"{name:{wide}} {status:9} "
            lines += textwrap.wrap(
                sentence,
                width=width,
                initial_indent=head,
                subsequent_indent=" " * len(head),
                break_long_words=False,
                break_on_hyphens=False,
            )
        for note in self.last_lines():
            lines += textwrap.wrap(
                note, width, initial_indent="* ", subsequent_indent="  "
            )
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the report as a table for Jupyter and Colab."""
        colours = {"failed": "#c0392b", "error": "#c0392b"}
        rows = "".join(
            f'<tr><th scope="row" style="text-align: left">{escape(name)}'
            f'</th><td style="white-space: nowrap; text-align: left; '
            f'color: {colours.get(status, "inherit")}">{status}</td>'
            f'<td style="text-align: left">{escape(sentence)}</td></tr>'
            for name, status, sentence in self.rows()
        )
        notes = "".join(f"<li>{escape(n)}</li>" for n in self.last_lines())
        return f"<table>{rows}</table><ul>{notes}</ul>"


def frames(error: Exception | None) -> list[str]:
    """Return the last lines of an error's traceback in the model's code."""
    found = traceback.extract_tb(error.__traceback__) if error else []
    own = [f for f in found if not LIBRARIES.search(f.filename)]
    return [
        f"[{Path(f.filename).name}:{f.lineno} in {f.name}]"
        for f in (own or found)[-3:]
    ]


def section(anchor: str) -> str:
    """Return a section of the page *Symptoms* as plain text."""
    for part in re.split(r"(?m)^## ", SYMPTOMS.read_text("utf-8"))[1:]:
        title = part.split("\n", 1)[0]
        if re.sub(r"[^a-z0-9]+", "-", title.lower()) == anchor:
            # [words](masks.ipynb#place) -> words (in the chapter masks)
            chapter = r"\[([^]]+)\]\((\w+)\.ipynb[^)]*\)"
            text = re.sub(chapter, r"\1 (chapter \2)", part.strip())
            return re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", text)
    raise KeyError(anchor)
