"""How the exercises are judged: one sentence for every answer.

A checker calls the reader's function on copies of its cases, and says that it
is right, that it was not attempted, or which mistake it makes.
"""

import tracemalloc

import numpy as np

# What NumPy says of a mistake that many make, and what to do about it.
_ADVICE = {
    "could not be broadcast": "keepdims=True keeps the axis of a sum or mean",
    "in its core dimension": "key.T turns all axes; exchange the last two",
}


class Wrong(Exception):
    """Says what is wrong with an answer."""


def judged(number):
    """Turn a check into a function that gives one sentence.

    Parameters
    ----------
    number
        Of the exercise, with which the sentence begins.

    Returns
    -------
    Callable
        A decorator: of a check, which takes an Answer and raises Wrong if it
        is not right, it makes a function of the reader's function.
    """

    def decorate(check):
        def say(function):
            """Say in one line whether it is right, or what is wrong."""
            try:
                with np.errstate(all="ignore"):
                    check(Answer(function))
            except Wrong as wrong:
                return f"Exercise {number}: {wrong}."
            return f"Exercise {number}: correct."

        return say

    return decorate


class Answer:
    """A function of the reader's: it gives numbers, or raises Wrong.

    Parameters
    ----------
    function
        What the reader has written, or an untouched stub.
    faults
        {part of an error's words: what is said in place of them}.
    """

    def __init__(self, function, faults=()):
        self.function, self.attempted = function, False
        self.faults = dict(faults)

    def give(self, *given, fault=None):
        """Return what the function makes of copies of the arguments.

        Parameters
        ----------
        *given
            The arguments; arrays are copied.
        fault
            What is said if an ArithmeticError is raised; None for its words.

        Returns
        -------
        Any
            What the function returns.

        Raises
        ------
        Wrong
            If the function raises an error, or returns None when it is called
            for the first time.
        """
        given = [x.copy() if hasattr(x, "copy") else x for x in given]
        try:
            found = self.function(*given)
        except Exception as error:
            if fault and isinstance(error, ArithmeticError):
                raise Wrong(fault) from error
            for part, words in self.faults.items():
                if part in f"{type(error).__name__}: {error}":
                    raise Wrong(words) from error
            raise Wrong(f"your function raises {_told(error)}") from error
        if found is None and not self.attempted:
            raise Wrong("not attempted yet")
        self.attempted = True
        return found

    def __call__(self, shape, *given, fault=None):
        """Return the array of this shape that the function gives.

        Parameters
        ----------
        shape
            What the array has to have; () for a number.
        *given, fault
            As in `give`; fault is also said of NaN and infinity.

        Returns
        -------
        numpy.ndarray
            In float64.

        Raises
        ------
        Wrong
            As `give` and `to_numbers` do.
        """
        return to_numbers(self.give(*given, fault=fault), shape, fault)


def _told(error):
    """Return what an error says, in one line, and what to do about it."""
    words = f"{type(error).__name__}: {error}".split("\n")[0].rstrip(". ")
    for part, advice in _ADVICE.items():
        words += f"; {advice}" if part in words else ""
    return words


def _to_array(found):
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


def _read(found, shape, kinds):
    """Return what was found as an array, or raise Wrong; see to_numbers."""
    array = _to_array(found)
    if isinstance(found, tuple) and array.shape != shape:
        raise Wrong("it returns a tuple; return the one that is asked for")
    if array.dtype.kind not in kinds and array.dtype.name != "bfloat16":
        raise Wrong(f"it returns {type(found).__name__}, not numbers")
    return array


def as_array(found):
    """Return what was found as an array of numbers or truth values.

    Raises
    ------
    Wrong
        If these are neither.
    """
    array = _to_array(found)
    if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
        kind = type(found).__name__
        if isinstance(found, tuple):
            raise Wrong("it returns a tuple; return the one that is asked for")
        if isinstance(found, list):  # of numbers, perhaps, but ragged
            raise Wrong("it returns a list that is no array of numbers")
        raise Wrong(f"it returns {kind}, not numbers")
    return array


def first_difference(found, wanted, otherwise):
    """Return what is said of numbers that no known mistake gives."""
    if not isinstance(wanted, np.ndarray):
        return otherwise.format(found)
    if found.shape != wanted.shape:
        return _other_shape(found, wanted.shape)
    if not np.isfinite(found).all() and np.isfinite(wanted).all():
        return "NaN or infinity is returned"
    if (found.dtype == bool) != (wanted.dtype == bool):
        return f"it is {found.dtype}, not {wanted.dtype}"
    index = np.argwhere(~_close(found, wanted))
    index = index[0].tolist() if len(index) else []
    number = str(found[tuple(index)])[:6]
    return otherwise.format(f"{number} at {index}" if index else number)


def _other_shape(found, shape):
    """Return what is said of an array of another shape."""
    wanted = shape or "a single number"
    return f"the shape is {found.shape} instead of {wanted}"


def to_numbers(found, shape, fault=None):
    """Return what was found as floats.

    Parameters
    ----------
    found
        A number, a list, an array or a tensor.
    shape
        What the numbers have to have.
    fault
        What is said of NaN and infinity; None for the usual words.

    Returns
    -------
    numpy.ndarray
        Of this shape, in float64.

    Raises
    ------
    Wrong
        If these are no numbers, not all of them are finite, or the shape is
        another.
    """
    array = _read(found, shape, "iuf")
    if array.shape != shape:
        raise Wrong(_other_shape(array, shape))
    if not np.isfinite(array).all():
        raise Wrong(fault or "NaN or infinity is returned")
    return array.astype(float)


def _close(found, wanted):
    """Tell where arrays agree up to rounding; see agree."""
    halves = np.array_equal(found, np.float16(found))
    is_half = halves and not np.array_equal(found, np.round(found))
    rtol, atol = (0.01, 0.01) if is_half else (1e-4, 1e-6)
    if np.asarray(wanted).dtype.kind in "iu":
        rtol = 0
    return np.isclose(found, wanted, rtol, atol, equal_nan=True)


def agree(found, wanted):
    """Tell whether two arrays have the same shape and the same numbers.

    Parameters
    ----------
    found
        An array. Numbers in half precision may be off by a hundredth.
    wanted
        An array or a list. Integers are not rounded.

    Returns
    -------
    bool
        NaN agrees with NaN.
    """
    same = np.shape(found) == np.shape(wanted)
    return bool(same and _close(found, wanted).all())


def require(found, options, otherwise):
    """Raise Wrong unless the numbers found are those of the option "".

    Parameters
    ----------
    found
        An array.
    options
        {what is wrong: the numbers that it gives, or a function that tells
        whether it gave those found}; "" for what is right. The first option
        that agrees counts.
    otherwise
        What is said of numbers that no option gives.

    Raises
    ------
    Wrong
        Its words are those of the option.
    """
    for says, wanted in options.items():
        if wanted(found) if callable(wanted) else agree(found, wanted):
            if says:
                raise Wrong(says)
            return
    raise Wrong(otherwise)


def require_each(answer, cases):
    """Raise Wrong at the first case that an answer does not give.

    Parameters
    ----------
    answer
        An Answer. It may give another shape, which a mistake may have, and
        truth values.
    cases
        Of each, a tuple: the arguments, the right result, the mistakes, as
        the options of `require`, and what is said of other numbers, with {}
        for the first one that is wrong, and its index.

    Raises
    ------
    Wrong
        Its words are those of the mistake.
    """
    for given, right, mistakes, otherwise in cases:
        right = np.asarray(right)
        found = _read(answer.give(*given), right.shape, "biuf")
        if agree(found, right):
            if (found.dtype == bool) != (right.dtype == bool):
                raise Wrong(f"it is {found.dtype}, not {right.dtype}")
            continue
        if found.shape != right.shape:
            says = _other_shape(found, right.shape)
        else:
            index = np.argwhere(~_close(found, right))[0].tolist()
            number = str(found[tuple(index)])[:6]
            says = f"{number} at {index}" if index else number
            says = otherwise.format(says)
        require(found, mistakes, says)


def rearranged(array, sizes, axes, shape):
    """Return an array divided into sizes, with its axes in another order.

    Parameters
    ----------
    array
        Of any shape.
    sizes
        The shape into which it is divided.
    axes
        The order in which these axes then stand.
    shape
        The shape to which it is joined again.

    Returns
    -------
    numpy.ndarray
        Of this shape.
    """
    return array.reshape(sizes).transpose(axes).reshape(shape)


def passes(check):
    """Tell whether a check returns True.

    Parameters
    ----------
    check
        A function without arguments.

    Returns
    -------
    bool
        False also if the check raises a RuntimeError, as tensors do whose
        sizes do not fit.
    """
    try:
        return bool(check())
    except RuntimeError:
        return False


def peak_bytes(function, *given):
    """Return how many bytes a call holds at once, beyond its arguments.

    Parameters
    ----------
    function
        What is called, once.
    *given
        Its arguments.

    Returns
    -------
    int
        What NumPy and Python have allocated at the highest point.
    """
    tracemalloc.start()
    try:
        function(*given)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
