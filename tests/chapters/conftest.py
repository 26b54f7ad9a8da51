"""What the tests of the chapters share."""

import pytest


def raises(*given):
    raise KeyError("a word\nthat is not there")


# What is no answer to any exercise, and what a checker says of it.
RETURNS = "your function returns no array of numbers"
ODD = [
    (raises, "your function raises KeyError: 'a word\\nthat is not there'"),
    (
        lambda *given: (1, 2),
        "your function returns a tuple; return one result",
    ),
    (lambda *given: "3", f"{RETURNS}: str"),
    (lambda *given: {}, f"{RETURNS}: dict"),
    (lambda *given: [[1], [1, 2]], f"{RETURNS}: list"),
    (lambda *given: len, f"{RETURNS}: builtin_function_or_method"),
]


def pytest_generate_tests(metafunc):
    """Try each wrong answer of a chapter where a test asks for them.

    A chapter's WRONG maps exercises, in their order, to lists of the verdict's
    text after the number, and the answer.
    """
    if {"name", "says", "answer"} <= set(metafunc.fixturenames):
        answers = [
            (name, f"Exercise {number}: {says}", answer)
            for number, (name, of_one) in enumerate(
                metafunc.module.WRONG.items(), 1
            )
            for says, answer in of_one
        ]
        metafunc.parametrize(("name", "says", "answer"), answers)
    if "odd" in metafunc.fixturenames:
        metafunc.parametrize("odd", ODD)
        exercises = list(enumerate(metafunc.module.WRONG, 1))
        metafunc.parametrize(("number", "name"), exercises)


@pytest.fixture
def attend_to_low_scores():
    """Return a function: what attend gives for -1e12 and a blocked 0.

    Its arguments are a chapter's variables and "" for PyTorch or "_tf" for
    TensorFlow; it returns the output and the weights as lists.
    """

    def attend(book, kind):
        query, key, value = [[-1e12]], [[1.0], [1.0]], [[2.0], [3.0]]
        array = book["tf"].constant if kind else book["torch"].tensor
        given = map(array, (query, key, value, [[True, False]]))
        found = book[f"attend{kind}"](*given)
        return [part.numpy().tolist() for part in found]

    return attend
