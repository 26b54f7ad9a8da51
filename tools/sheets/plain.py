"""Plain values as text: what may go from a student's process to another.

Numbers, texts, tuples, lists, sets, dictionaries, fractions and arrays; a
tensor becomes an array, and an error the one of Python's that it is a kind of.
In place of anything else comes an object that no check calls right. Reading
such a text runs nothing that is named in it.
"""

import base64
import builtins
import json
from decimal import Decimal
from fractions import Fraction

import numpy as np

from cellbycell.exercises import to_array

MANY = {k.__name__: k for k in (tuple, list, set, frozenset, dict)}
ERRORS = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception)
}


def packed(value):
    """Return a value as a text."""
    try:
        return json.dumps(coded(value))
    except Exception:  # such as a list that holds itself
        return "[]"


def coded(value):
    """Return a value as lists that begin with its kind; [] if not plain."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is complex:
        return ["complex", value.real, value.imag]
    if type(value) in (Fraction, Decimal):
        return ["Fraction", *value.as_integer_ratio()]
    if isinstance(value, Exception):
        kinds = [k for k in type(value).__mro__ if k in ERRORS.values()]
        return ["error", kinds[0].__name__, str(value)]
    if type(value) is range:
        return coded([*value])
    for name, kind in MANY.items():
        if isinstance(value, kind):
            parts = value.items() if kind is dict else value
            return [name, *map(coded, parts)]
    if hasattr(value, "detach") or hasattr(value, "numpy"):
        value = to_array(value)
    if not isinstance(value, (np.ndarray, np.generic)):
        return []
    name = value.dtype.name
    if value.dtype.kind not in "biufc" and name != "bfloat16":
        return coded(value.tolist())
    array = np.asarray(value, name)
    data = base64.b64encode(array.tobytes()).decode()
    return ["array", name, array.shape, data]


def unpacked(text):
    """Return the value of a text, whoever has written it."""
    return decoded(json.loads(text))


def decoded(code):
    """Return the value of what coded returns; an object if it is none."""
    match code:
        case ["complex", real, imaginary]:
            return complex(real, imaginary)
        case ["Fraction", over, under]:
            return Fraction(over, under)
        case ["error", name, words]:
            return ERRORS[name](words)
        case ["array", name, shape, data]:
            array = np.frombuffer(base64.b64decode(data), name)
            return array.reshape(shape).copy()[()]
        case [str(kind), *parts] if kind in MANY:
            return MANY[kind](map(decoded, parts))
    return object() if isinstance(code, (list, dict)) else code
