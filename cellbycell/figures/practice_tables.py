"""The tables of *A model at work*: what was predicted, and what came."""

from collections import Counter, defaultdict

from .plots import print_table


def right_share(written, rows, part=slice(None)):
    """Return the share of answers of which a part is written correctly.

    Parameters
    ----------
    written
        {question: what is written}.
    rows
        (question, answer) pairs, the answers that are right.
    part
        Of the answer, a slice.
    """
    right = [
        written[question][part] == answer[part] for question, answer in rows
    ]
    return sum(right) / len(right)


def print_predicted(predicted, written):
    """Print what was predicted for some rows, and the share that is right.

    Parameters
    ----------
    predicted
        {name: (rows, what was predicted, in words)}.
    written
        {question: what is written}.
    """
    came = {
        name: [said, f"{right_share(written, rows):.3f}"]
        for name, (rows, said) in predicted.items()
    }
    print_table(["predicted", "came"], came)


def usual_share(rows, written):
    """Return how often a month's Finnish name gets its most frequent month.

    Parameters
    ----------
    rows
        (question, answer) pairs; each question has one word with "kuuta".
    written
        {question: what is written}, as in 2026-06-29.
    """
    months = defaultdict(Counter)
    for question, _ in rows:
        [name] = [word for word in question.split() if "kuuta" in word]
        months[name][written[question][5:7]] += 1
    return sum(max(n.values()) for n in months.values()) / len(rows)


def print_languages(of_languages, written):
    """Print which share of each part of the answers is right.

    Parameters
    ----------
    of_languages
        {name: (rows, part of the answer, a slice)}, one of them "Finnish, the
        month".
    written
        {question: what is written}.
    """
    right = {
        name: right_share(written, *part)
        for name, part in of_languages.items()
    }
    finnish, _ = of_languages["Finnish, the month"]
    right["a name's usual month"] = usual_share(finnish, written)
    print_table(["share"], {n: [f"{x:.2f}"] for n, x in right.items()})


def print_ways(ways):
    """Print the loss and the names of each way to train and to run.

    Parameters
    ----------
    ways
        {(curve in training, curve when it runs): (loss, names)}.
    """
    for (trained, run), (loss, names) in ways.items():
        print(f"trained with {trained}, run with {run}: loss {loss:.2f}")
        print("   ", ", ".join(names))
