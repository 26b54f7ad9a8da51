"""What an answer gives, as numbers, and what is said of it.

An exercise calls the reader's function on copies of its cases; see Exercise.
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


class Answer:
    """A function of the reader's: it gives something, or raises Wrong.

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

    def give(self, *given):
        """Return what the function makes of copies of the arguments.

        Parameters
        ----------
        *given
            The arguments; arrays are copied.

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
            for part, words in self.faults.items():
                if part in f"{type(error).__name__}: {error}":
                    raise Wrong(words) from error
            raise Wrong(f"your function raises {_told(error)}") from error
        if found is None and not self.attempted:
            raise Wrong("not attempted yet")
        self.attempted = True
        return found


def _told(error):
    """Return what an error says, in one line, and what to do about it."""
    words = f"{type(error).__name__}: {error}".split("\n")[0].rstrip(". ")
    for part, advice in _ADVICE.items():
        words += f"; {advice}" if part in words else ""
    return words


def as_array(found):
    """Return what was found as an array of numbers or truth values.

    Parameters
    ----------
    found
        A number, a list, an array or a tensor.

    Returns
    -------
    numpy.ndarray
        Of its own shape and type; bfloat16 becomes float32.

    Raises
    ------
    Wrong
        If these are no numbers.
    """
    array = _to_array(found)
    if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
        if isinstance(found, tuple):
            raise Wrong("it returns a tuple; return the one that is asked for")
        if isinstance(found, list):  # of numbers, perhaps, but ragged
            raise Wrong("it returns a list that is no array of numbers")
        raise Wrong(f"it returns {type(found).__name__}, not numbers")
    return array


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


def to_numbers(found, shape):
    """Return what was found as floats.

    Parameters
    ----------
    found
        A number, a list, an array or a tensor.
    shape
        What the numbers have to have.

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
    array = as_array(found)
    if array.shape != shape:
        raise Wrong(_other_shape(array, shape))
    if not np.isfinite(array).all():
        raise Wrong("NaN or infinity is returned")
    return array.astype(float)


def _other_shape(found, shape):
    """Return what is said of an array of another shape."""
    wanted = shape or "a single number"
    return f"the shape is {found.shape} instead of {wanted}"


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


def first_difference(found, wanted, otherwise):
    """Return what is said of numbers that no known mistake gives.

    Parameters
    ----------
    found, wanted
        Arrays, or whatever an exercise reads; they do not agree.
    otherwise
        The sentence; {} becomes the first that is wrong, and its index.

    Returns
    -------
    str
        Without a full stop.
    """
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


def softmax(scores, axis=-1):
    """Return the softmax of scores.

    Parameters
    ----------
    scores
        An array; -inf is blocked.
    axis
        Along which the weights sum to one.

    Returns
    -------
    numpy.ndarray
        Of the same shape.
    """
    parts = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return parts / parts.sum(axis=axis, keepdims=True)
