"""How the exercises are judged: one sentence for every answer.

A checker calls the reader's function on copies of its cases, and says that it
is right, that it was not attempted, or which mistake it makes.
"""

import numpy as np

# What NumPy says of a mistake that many make, and what to do about it.
ADVICE = {
    "could not be broadcast": "keepdims=True keeps the axis of a sum or mean",
    "in its core dimension": "key.T turns all axes; exchange the last two",
}


class Wrong(Exception):
    """Says what is wrong with an answer."""


def judged(number):
    """Return what turns a check into a function that gives one sentence.

    The check takes an Answer, and raises Wrong if it is not right.
    """

    def decorate(check):
        def say(function):
            """Say in one line whether it is right, or what is wrong."""
            try:
                check(Answer(function))
            except Wrong as wrong:
                return f"Exercise {number}: {wrong}."
            return f"Exercise {number}: correct."

        return say

    return decorate


class Answer:
    """A function of the reader's: it gives numbers, or raises Wrong."""

    def __init__(self, function):
        self.function, self.attempted = function, False

    def give(self, *given, fault=None):
        """Return what the function makes of copies of the arguments."""
        given = [x.copy() if hasattr(x, "copy") else x for x in given]
        try:
            with np.errstate(all="ignore"):
                found = self.function(*given)
        except Exception as error:
            if fault and isinstance(error, ArithmeticError):
                raise Wrong(fault) from error
            raise Wrong(f"your function raises {told(error)}") from error
        if found is None and not self.attempted:
            raise Wrong("not attempted yet")
        self.attempted = True
        return found

    def __call__(self, shape, *given, fault=None):
        """Return the array of this shape that the function gives."""
        return to_numbers(self.give(*given, fault=fault), shape, fault)


def told(error):
    """Return what an error says, in one line, and what to do about it."""
    words = f"{type(error).__name__}: {error}".split("\n")[0].rstrip(". ")
    for part, advice in ADVICE.items():
        words += f"; {advice}" if part in words else ""
    return words


def to_array(found):
    """Return what was found as an array; that of None if it is none."""
    try:
        if hasattr(found, "detach"):  # a tensor of PyTorch
            found = found.detach()
            if str(found.dtype) == "torch.bfloat16":  # unknown to NumPy
                found = found.float()
        if isinstance(found, (list, tuple)):
            found = [getattr(x, "detach", lambda x=x: x)() for x in found]
        array = np.asarray(found)
        if array.dtype == object:  # such as fractions
            array = np.reshape([float(x) for x in array.flat], array.shape)
        return array
    except Exception:  # a ragged list, or no numbers
        return np.array(None)


def to_numbers(found, shape, fault=None):
    """Return what was found as floats of this shape, or raise Wrong."""
    kind = type(found).__name__
    array = to_array(found)
    if isinstance(found, tuple) and array.shape != shape:
        raise Wrong("it returns a tuple; return the one that is asked for")
    if array.dtype.kind not in "iuf" and array.dtype.name != "bfloat16":
        raise Wrong(f"it returns {kind}, not numbers")
    if array.shape != shape:
        wanted = shape or "a single number"
        raise Wrong(f"the shape is {array.shape} instead of {wanted}")
    if not np.isfinite(array).all():
        raise Wrong(fault or "NaN or infinity is returned")
    return array.astype(float)


def require(found, options, otherwise):
    """Raise Wrong unless the numbers found are those of the option "".

    options: {what is wrong: the numbers that it gives}; otherwise: what is
    said of numbers that no option gives. Half precision may round.
    """
    with np.errstate(over="ignore"):
        halves = np.array_equal(found, np.float16(found))
    is_half = halves and not np.array_equal(found, np.round(found))
    rounding = {"rtol": 0.01, "atol": 0.01} if is_half else {}
    for says, wanted in options.items():
        whole = {"rtol": 0} if is_whole(wanted) else {}
        if np.allclose(found, wanted, **(rounding | whole)):
            if says:
                raise Wrong(says)
            return
    raise Wrong(otherwise)


def ask_answer(answer, given, shape):
    """Call a reader's function with copies; return an array, or a fault.

    A fault is a text: what is wrong with what the function does or returns. A
    tuple is an array only if it has the shape.
    """
    copies = [x.copy() if isinstance(x, np.ndarray) else x for x in given]
    try:
        found = answer(*copies)
    except Exception as error:
        return f"your function raises {told(error)}"
    if found is None:
        return "your function returns None"
    array = to_array(found)
    if isinstance(found, tuple) and array.shape != shape:
        return "your function returns a tuple; return one result"
    if array.dtype.kind in "biuf":
        return array
    return f"your function returns no array of numbers: {type(found).__name__}"


def agree(found, wanted):
    """Tell whether two arrays agree up to rounding; NaN agrees with NaN."""
    return found.shape == np.shape(wanted) and close(found, wanted).all()


def close(found, wanted):
    """Tell where arrays agree up to rounding; integers are not rounded."""
    rtol = 0 if is_whole(wanted) else 1e-4
    return np.isclose(found, wanted, rtol, 1e-5, equal_nan=True)


def is_whole(numbers):
    """Tell whether these are integers."""
    return np.asarray(numbers).dtype.kind in "iu"


def explain(found, right, mistakes, otherwise):
    """Return what is wrong with an array, or None; see judge."""
    if agree(found, right):
        alike = (found.dtype == bool) == (right.dtype == bool)
        return None if alike else f"it is {found.dtype}, not {right.dtype}"
    for verdict, wrong in mistakes.items():
        if wrong(found) if callable(wrong) else agree(found, wrong):
            return verdict
    if found.shape != right.shape:
        return f"the shape is {found.shape}, not {right.shape}"
    index = np.argwhere(~close(found, right))[0].tolist()
    number = str(found[tuple(index)].item())[:6]
    return otherwise.format(f"{number} at {index}" if index else number)


def judge(answer, cases):
    """Say in a few words whether an answer is right, or what is wrong.

    cases: what to call it with; the right result; {verdict: the result of a
    mistake, or a test of what was found}; and what to say of anything else,
    with {} for the first wrong number and its index.
    """
    with np.errstate(all="ignore"):
        for number, (given, right, *rest) in enumerate(cases):
            right = np.asarray(right)
            found = ask_answer(answer, given, right.shape)
            if isinstance(found, str):
                stub = number == 0 and found.endswith("None")
                return "not attempted yet" if stub else found
            if fault := explain(found, right, *rest):
                return fault
    return "correct"


def rearranged(array, sizes, axes, shape):
    """Return an array divided into sizes, with its axes in another order.

    The result is joined again to shape.
    """
    return array.reshape(sizes).transpose(axes).reshape(shape)


def passes(check):
    """Tell whether a check returns True; an error counts as False."""
    try:
        return bool(check())
    except RuntimeError:
        return False
