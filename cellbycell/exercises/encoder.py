"""The exercises of *The encoder*."""

import numpy as np

from . import Exercise

# 1: count an encoder


def count(
    layer=lambda d, f: 4 * d * d + 2 * d * f + 2 * d,
    layers=lambda n: n,
    final=lambda n, d: d,
):
    """Return an answer: another layer, number of layers or final norm."""
    return lambda n, d, f: layers(n) * layer(d, f) + final(n, d)


check_encoder_parameters = Exercise(
    number=1,
    right=count(),
    cases=lambda: [(6, 512, 2048), (2, 12, 20), (1, 5, 3), (3, 4, 16)],
    mistakes={
        "the final norm is missing": count(final=lambda n, d: 0),
        "this is one layer, without the final norm": count(
            layers=lambda n: 1, final=lambda n, d: 0
        ),
        "num_layers is not used": count(layers=lambda n: 1),
        "this is the count with biases and shifts": count(
            lambda d, f: 4 * d * d + 2 * d * f + 9 * d + f,
            final=lambda n, d: 2 * d,
        ),
        "linear layers keep no biases": count(
            lambda d, f: 4 * d * d + 2 * d * f + 7 * d + f
        ),
        "norms keep no shifts": count(
            lambda d, f: 4 * d * d + 2 * d * f + 4 * d,
            final=lambda n, d: 2 * d,
        ),
        "there is one final norm": count(final=lambda n, d: n * d),
        "a layer has two norms": count(lambda d, f: 4 * d * d + 2 * d * f + d),
        "feed-forward has two matrices": count(
            lambda d, f: 4 * d * d + d * f + 2 * d
        ),
        "attention has four matrices": count(
            lambda d, f: 3 * d * d + 2 * d * f + 2 * d
        ),
    },
    otherwise="{} is not the number of parameters",
)


# 2: a norm in NumPy


def norm(
    by=lambda x, e: np.sqrt(variance(x) + e),
    off=lambda x: x.mean(axis=-1, keepdims=True),
    end=lambda y, scale, shift: y * scale + shift,
):
    """Return an answer with one thing changed.

    by: what rows are divided by; off: what is taken off them first; end: what
    scale and shift do.
    """
    return lambda x, scale, shift, epsilon: end(
        (x - off(x)) / by(x, epsilon), scale, shift
    )


def variance(x):
    return x.var(axis=-1, keepdims=True)


def of_sample(x):
    size = x.shape[-1]
    return variance(x) * size / max(size - 1, 0.5)


def root_mean_square(x, epsilon):
    return np.sqrt((x**2).mean(axis=-1, keepdims=True) + epsilon)


def over(axis):
    """Return an answer whose mean and variance run over another axis."""
    return norm(
        lambda x, e: np.sqrt(x.var(axis, keepdims=True) + e),
        lambda x: x.mean(axis, keepdims=True),
    )


def equal_rows_become_zeros(x, *rest):
    return np.where(variance(x) == 0, 0, norm()(x, *rest))


def norm_cases():
    """Return for several shapes rows, and rows of equal numbers."""
    rng = np.random.default_rng(6)
    shapes = [(2, 3, 4), (3, 5), (1, 2, 3, 2), (4,)]
    for shape, epsilon in zip(shapes, (0.5, 0.01, 0.1, 0.2), strict=True):
        x = rng.standard_normal(shape)
        scale, shift = rng.standard_normal((2, shape[-1]))
        yield x, scale, shift, epsilon
        yield 0 * x, scale, shift, epsilon


check_numpy_layer_norm = Exercise(
    number=2,
    right=norm(),
    cases=norm_cases,
    mistakes={
        "the variance divides by D - 1": norm(
            lambda x, e: np.sqrt(of_sample(x) + e)
        ),
        "epsilon stands outside of the root": norm(
            lambda x, e: np.sqrt(variance(x)) + e
        ),
        "D - 1, and epsilon outside: that is the Annotated Transformer's": (
            norm(lambda x, e: np.sqrt(of_sample(x)) + e)
        ),
        "epsilon is missing; without it, rows of equal numbers give NaN": (
            norm(lambda x, e: np.sqrt(variance(x))),
            norm(lambda x, e: np.sqrt(np.maximum(variance(x), 1e-300))),
        ),
        "rows of equal numbers should give the shift": (
            equal_rows_become_zeros
        ),
        "this is RMSNorm: the mean is not subtracted": norm(
            root_mean_square, lambda x: 0
        ),
        "the mean is not subtracted": norm(off=lambda x: 0),
        "take the root of the variance": norm(lambda x, e: variance(x) + e),
        "one mean for all positions": over(None),
        "mean and variance are taken over axis 0, not the last": over(0),
        "mean and variance are taken over axis 1, not the last": over(1),
        "this is RMSNorm: no mean, and no shift": norm(
            root_mean_square, lambda x: 0, lambda y, scale, shift: y * scale
        ),
        "scale and shift are missing": norm(end=lambda y, scale, shift: y),
        "the scale is missing": norm(end=lambda y, scale, shift: y + shift),
        "the shift is missing": norm(end=lambda y, scale, shift: y * scale),
        "the shift comes after the scale": norm(
            end=lambda y, scale, shift: (y + shift) * scale
        ),
    },
    otherwise="not equation (1): {}",
)


# 3: a pre-norm layer, with attention f, feed-forward g, and norms a and b


def pre_norm(x, f, g, a, b):
    y = x + f(a(x))
    return y + g(b(y))


def in_turn(first, second):
    """Return an answer that does one half of a layer, and then the other.

    first: of x, f and a; second: of what that gives, g and b.
    """
    return lambda x, f, g, a, b: second(first(x, f, a), g, b)


def added(x, f, a):
    return x + f(a(x))


def late(x, f, a):
    return a(x) + f(a(x))


def post_norm(x, f, a):
    return a(x + f(x))


def layer_cases():
    rng = np.random.default_rng(7)
    for shape in [(3, 4), (1, 2), (5, 3)]:
        x, *mix = rng.standard_normal((5, *shape))
        yield x, *(lambda y, m=m: np.tanh(2 * y + m) + m for m in mix)


check_pre_norm_layer = Exercise(
    number=3,
    right=pre_norm,
    cases=layer_cases,
    mistakes={
        "this is post-norm": in_turn(post_norm, post_norm),
        "the residuals start behind the norms": in_turn(late, late),
        "the first residual starts behind its norm": in_turn(late, added),
        "the second residual starts behind its norm": in_turn(added, late),
        "no residual connections": lambda x, f, g, a, b: g(b(f(a(x)))),
        "the first residual is missing": lambda x, f, g, a, b: added(
            f(a(x)), g, b
        ),
        "the second residual is missing": lambda x, f, g, a, b: g(
            b(x + f(a(x)))
        ),
        "the second residual is that of x": lambda x, f, g, a, b: (
            x + g(b(x + f(a(x))))
        ),
        "one residual around both": lambda x, f, g, a, b: x + g(b(f(a(x)))),
        "one norm for both": lambda x, f, g, a, b: pre_norm(x, f, g, a, a),
        "the norms are exchanged": lambda x, f, g, a, b: pre_norm(
            x, f, g, b, a
        ),
        "both sub-layers read x": lambda x, f, g, a, b: x + f(a(x)) + g(b(x)),
        "the norms come behind the sub-layers": lambda x, f, g, a, b: pre_norm(
            x, a, b, f, g
        ),
        "no norms": lambda x, f, g, a, b: x + f(x) + g(x + f(x)),
        "the second norm is missing": lambda x, f, g, a, b: (
            x + f(a(x)) + g(x + f(a(x)))
        ),
        "the first norm is missing": lambda x, f, g, a, b: added(
            x + f(x), g, b
        ),
        "feed-forward comes first": lambda x, f, g, a, b: pre_norm(
            x, g, f, a, b
        ),
        "feed-forward is missing": lambda x, f, g, a, b: x + f(a(x)),
    },
    otherwise="these are the numbers of another layer: {}",
)


# 4: fold a norm into a matrix


def folded(
    bias=lambda scale, shift, m, b: shift @ m + b,
    matrix=lambda scale, m: scale[:, None] * m,
):
    """Return an answer with another bias or another matrix."""
    return lambda scale, shift, m, b: np.vstack(
        [matrix(scale, m), bias(scale, shift, m, b)]
    )


def fold_cases():
    rng = np.random.default_rng(8)
    for d, f in [(4, 4), (3, 5), (1, 2)]:
        shapes = d, d, (d, f), f
        yield tuple(map(rng.standard_normal, shapes))


check_fold_norm = Exercise(
    number=4,
    right=folded(),
    cases=fold_cases,
    mistakes={
        "the shift is lost": folded(lambda scale, shift, m, b: b),
        "the layer's own bias is lost": folded(
            lambda scale, shift, m, b: shift @ m
        ),
        "the shift meets the old matrix": folded(
            lambda scale, shift, m, b: shift * scale @ m + b
        ),
        "the scale is missing": folded(matrix=lambda scale, m: m),
        "the scale belongs to rows": folded(matrix=lambda scale, m: m * scale),
        "the shift has to pass the matrix": folded(
            lambda scale, shift, m, b: shift + b
        ),
    },
    otherwise="the folded layer gives other numbers: {}",
)


# 5: a norm of a norm


def left(v, e):
    """Return the variance after the first norm."""
    return v / (v + e)


check_second_norm_factor = Exercise(
    number=5,
    right=lambda v, e: (left(v, e) + e) ** -0.5,
    cases=lambda: [(4.0, 0.5), (0.01, 0.1), (9.0, 2.0), (1.0, 0.0)],
    mistakes={
        "this is the factor of the first norm": lambda v, e: (v + e) ** -0.5,
        "the first norm leaves less than one": lambda v, e: (1 + e) ** -0.5,
        "take the root": lambda v, e: 1 / (left(v, e) + e),
        "this is the variance after the first norm": left,
        "this is the variance after both norms": lambda v, e: (
            left(v, e) / (left(v, e) + e)
        ),
        "epsilon acts in the second norm as well": lambda v, e: (
            left(v, e) ** -0.5
        ),
        "this divides; the factor is one over it": lambda v, e: (
            (left(v, e) + e) ** 0.5
        ),
        "these are both factors together": lambda v, e: (
            ((v + e) * (left(v, e) + e)) ** -0.5
        ),
        "without epsilon, too, there is a factor: 1": lambda v, e: (
            (left(v, e) + e) ** -0.5 * (e / e)
        ),
    },
    otherwise="{} is not the factor of the second norm",
    faults={"ZeroDivisionError": "without epsilon, too, there is a factor: 1"},
)
