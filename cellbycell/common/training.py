"""Training a Transformer: its common part, for what comes after it.

Built and explained in the chapter *Training a Transformer* of the book.
Written by `make package`: change it in the chapter.
"""


def learning_rate(step, d_model, warmup):
    """Return the learning rate of a step, counted from one.

    Source: Vaswani et al. 2017, section 5.3.
    """
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
