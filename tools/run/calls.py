"""Calls that a text shows as code, held to what the functions take."""

import ast
import inspect
import re
from contextlib import suppress

from tools.markdown import outside_fences

HOMES = ("", "nn.", "keras.layers.")  # of names that a text shortens


def check_calls(text, namespace):
    """Return a message for each call in a text that its function refuses.

    namespace: the variables that the text may name. A function that is not
    there, or that does not say what it takes, is left out.
    """
    messages = []
    for code in re.findall(r"`([^`\n]+)`", outside_fences(text)):
        for call in calls(code):
            taken = [parameters(call, home, namespace) for home in HOMES]
            known = [names for names in taken if names]
            if known and not any(fits(call, names) for names in known):
                messages.append(
                    f"`{code}`: {ast.unparse(call.func)} takes "
                    f"{', '.join(known[0])}. Correct the name, or the order."
                )
    return messages


def calls(code):
    """Return the calls in a piece of code; none if it is no expression."""
    with suppress(SyntaxError):
        tree = ast.parse(code, mode="eval")
        return [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    return []


def parameters(call, home, namespace):
    """Return what a function or layer takes; None if that is not known.

    home: what a text leaves out before its name, such as "nn.".
    """
    layer = isinstance(call.func, ast.Call)  # made there, and called at once
    name = ast.unparse(call.func.func if layer else call.func)
    with suppress(Exception):
        function = eval(home + name, dict(namespace))
        if layer:
            function = getattr(function, "forward", None) or function.call
        names = [*signature(function).parameters]
        # A layer takes no others, whatever it hands on.
        if inspect.isclass(function) or not {"args", "kwargs"} & {*names}:
            return [name for name in names if name != "self"]
    return None


def signature(function):
    """Return a function's signature; PyTorch has many in their docstrings."""
    with suppress(ValueError):
        return inspect.signature(function)
    first = re.search(r"(?s)\((.*?)\) ->", function.__doc__)
    return inspect.signature(eval(f"(lambda {first[1]}: None)"))


def fits(call, names):
    """Tell whether the names in a call are parameters, in their order."""
    given = [ast.unparse(argument) for argument in call.args]
    first = given[: given.index("...")] if "..." in given else given
    named = {word.arg for word in call.keywords} | {*given[len(first) + 1 :]}
    places = [names.index(name) for name in first if name in names]
    return named <= {*names} and all(
        first[place : place + 1] == [names[place]] for place in places
    )
