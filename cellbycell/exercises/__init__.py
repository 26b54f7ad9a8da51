"""The exercises as data: the right answer, the cases, and the mistakes.

A module for each chapter has an `Exercise` for each of its exercises, named
`check_x` after the function `x` that the reader writes:

>>> from cellbycell.exercises.attention import check_own_attention
>>> check_own_attention(own_attention)
'Exercise 2: not attempted yet.'

A mistake stands there once, as a function with its sentence. What the reader's
function gives is compared with what the right answer gives and, if they
differ, with what each mistake gives.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from .judging import (
    Answer,
    Wrong,
    agree,
    as_array,
    first_difference,
    passes,
    peak_bytes,
    softmax,
    to_numbers,
)

__all__ = [
    "Answer",
    "Exercise",
    "Seen",
    "Wrong",
    "agree",
    "as_array",
    "passes",
    "peak_bytes",
    "softmax",
    "to_numbers",
]


@dataclass(frozen=True)
class Seen:
    """A mistake that its numbers do not tell, and what tells it.

    Parameters
    ----------
    by
        A function of the reader's function, whose result is read, and whose
        attribute `function` is that function itself: True if it makes this
        mistake. It is asked if all cases are right, or no mistake gives the
        numbers.
    mistakes
        Functions that make the mistake.
    """

    by: Callable
    mistakes: tuple[Callable, ...]

    def __init__(self, by, *mistakes):
        object.__setattr__(self, "by", by)
        object.__setattr__(self, "mistakes", mistakes)


@dataclass(frozen=True)
class Exercise:
    """An exercise, which judges an answer in one sentence.

    Parameters
    ----------
    number
        Of the exercise in its chapter.
    right
        The function that is asked for.
    cases
        A function that returns what the answer is tried on, from the simplest
        on: tuples of arguments, or functions that ask the answer and return
        what is compared, such as its result for a seed.
    mistakes
        {sentence: a function that makes the mistake, several, or a Seen}.
        The sentence has no full stop. The first that gives the numbers counts.
    otherwise
        The sentence of numbers that no mistake gives; {} becomes the first of
        them that is wrong, and its index.
    faults
        {part of an error's words: sentence}, what is said in place of them.
    close
        Tells whether what is found counts as what is wanted, (found, wanted);
        None for the same shape and the same numbers up to rounding.
    reads
        What is made of a result before it is compared; raises Wrong if this
        cannot be. By default an array of numbers or truth values.
    """

    number: int
    right: Callable
    cases: Callable[[], Iterable]
    mistakes: Mapping[str, Callable | tuple | Seen]
    otherwise: str = "{} is not what is asked for"
    faults: Mapping[str, str] = field(default_factory=dict)
    close: Callable | None = None
    reads: Callable = as_array

    def __call__(self, function) -> str:
        """Say in one line whether a function is right, or what is wrong.

        Parameters
        ----------
        function
            What the reader has written, or the untouched stub.

        Returns
        -------
        str
            "Exercise 2: correct.", "Exercise 2: not attempted yet.", or the
            sentence of the mistake.
        """
        try:
            with np.errstate(all="ignore"):
                self._judge(Answer(function, self.faults))
        except Wrong as wrong:
            return f"Exercise {self.number}: {wrong}."
        return f"Exercise {self.number}: correct."

    def _judge(self, answer):
        """Raise Wrong with the sentence that is due."""

        def asked(*given):
            return self.reads(answer.give(*given))

        asked.function = answer.function
        cases = list(self.cases())
        for case in cases:
            wanted, found = self._ask(self.right, case), _ask(asked, case)
            if not self._agree(found, wanted):
                others = [other for other in cases if other is not case]
                says = self._named(asked, found, [case, *others])
                if says is None:
                    with suppress(Exception):  # it may be wrong in any way
                        says = self._seen(asked)
                raise Wrong(
                    says or first_difference(found, wanted, self.otherwise)
                )
        if says := self._seen(asked):
            raise Wrong(says)

    def _ask(self, function, case):
        """Return what the right answer or a mistake gives for a case."""
        return _ask(lambda *given: self.reads(function(*given)), case)

    def _agree(self, found, wanted):
        if self.close:
            return self.close(found, wanted)
        same_kind = _is_bool(found) == _is_bool(wanted)
        return same_kind and agree(found, wanted)

    def _named(self, asked, found, cases):
        """Return the sentence of the mistake that gives what was found.

        found: for the first case. Of several mistakes, the one counts that
        gives what the other cases give, too. None if there is none.
        """
        named = [
            (sentence, mistake)
            for sentence, mistakes in self.mistakes.items()
            if not isinstance(mistakes, Seen)
            for mistake in _several(mistakes)
            if self._gives(mistake, cases[0], found)
        ]
        for case in cases[1:] if len({s for s, _ in named}) > 1 else ():
            with suppress(Wrong):
                other = _ask(asked, case)
                kept = [x for x in named if self._gives(x[1], case, other)]
                named = kept or named
        return named[0][0] if named else None

    def _gives(self, mistake, case, found):
        """Tell whether a mistake gives what was found."""
        try:
            return self._agree(found, self._ask(mistake, case))
        except Exception:
            return False

    def _seen(self, asked):
        """Return the sentence of a mistake that the numbers do not tell."""
        for sentence, mistake in self.mistakes.items():
            if isinstance(mistake, Seen) and mistake.by(asked):
                return sentence

    def wrong_answers(self):
        """Yield each sentence with a function that deserves it."""
        for sentence, mistakes in self.mistakes.items():
            if isinstance(mistakes, Seen):
                mistakes = mistakes.mistakes
            for mistake in _several(mistakes):
                yield sentence, mistake


def _is_bool(found):
    return getattr(getattr(found, "dtype", None), "kind", None) == "b"


def _several(mistakes):
    return mistakes if isinstance(mistakes, tuple) else (mistakes,)


def _ask(function, case):
    """Return what a function gives for a case."""
    return case(function) if callable(case) else function(*_copies(case))


def _copies(arguments):
    return [x.copy() if hasattr(x, "copy") else x for x in arguments]
