"""Ask public models what the kit asks, and write the answers into a page.

    python -m benchmarks.wild transformers book/wild.md
    python -m benchmarks.wild packages book/wild.md

The first asks every causal language model that Transformers registers, the
second the models of wild_packages.py. Each is made from one dictionary of
small sizes, with random weights, and asked in a process of its own. A table
of the page names the checks that failed and says what the first one saw; what
cannot be made from these sizes, or raises an error when it is called, is
listed below it. The command fails if the page had other checks in a row.
Further arguments are the names to ask; then the answers are printed.
"""

import multiprocessing
import os
import platform
import re
import sys
import warnings
from datetime import date
from importlib.metadata import version
from inspect import signature
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

from benchmarks.wild_packages import PACKAGES, call_keras
from cellbycell.checks import check_model
from cellbycell.checks.backends.base import seed_all

SECONDS = 120  # for one model
IDS = [[5, 9, 13, 7, 21, 34, 40, 3, 6, 8, 11, 17]]
IDS += [[33, 4, 10, 22, 9, 7, 15, 0, 0, 0, 0, 0]]
# Most packages know no pads, and some only lengths that their blocks divide.
FULL = [[5, 9, 13, 7, 21, 34, 40, 3, 6, 8, 11, 17, 2, 4, 10, 22]]
FULL += [[33, 4, 10, 22, 9, 7, 15, 41, 50, 12, 3, 5, 8, 19, 27, 30]]


def ask(name, answers):
    """Put (what happened, names of checks, a sentence) into a queue.

    The names: those that failed, met an error, or warned.
    """
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    seed_all(0)
    torch.manual_seed(0)
    try:
        if name in PACKAGES:
            call = call_keras if name.startswith("keras") else None
            asked = PACKAGES[name](), FULL
            report = check_model(*asked, pad_id=None, call=call)
        else:
            from benchmarks.wild_families import make

            model = make(name).float()
            targets = None  # the ids themselves, of a model with a loss
            if "labels" in signature(model.forward).parameters:
                targets = [[i or -100 for i in row] for row in IDS]
            report = check_model(model, IDS, pad_id=0, targets=targets)
    except Exception as error:
        answers.put(("not made", [[], [], []], str(error)))
        return
    names = [report.failed, report.errors, report.warnings]
    first = [*report.failed, *report.errors, "output_shape"][0]
    what = "error" if "output_shape" in report.errors else "asked"
    answers.put((what, names, report[first].sentence))


def answer(name):
    """Return what `ask` says, from a process with little time."""
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()
    process = fork.Process(target=ask, args=(name, answers))
    process.start()
    try:
        return answers.get(timeout=SECONDS)
    except Exception:
        return "not made", [[], [], []], f"no answer within {SECONDS} s"
    finally:
        process.kill()


def line(text):
    """Return the first sentence of a text, fit for a cell of a table."""
    first = (text.strip() or "-").splitlines()[0].split(". ")[0]
    return first.replace("|", "/")[:200]


def section(answers, versions):
    """Return the text of a section for {name: answer}."""
    rows, left, clean = [], [], []
    warned: dict[str, list[str]] = {}
    for name, (what, names, sentence) in answers.items():
        *wrong, warnings = names
        if what != "asked":
            left.append(f"- {name}, {what}: `{line(sentence)}`")
        elif any(wrong):
            cells = [name, *map(", ".join, wrong), line(sentence)]
            rows.append(f"| {' | '.join(cells)} |")
        else:
            clean.append(name)
        for check in warnings:
            warned.setdefault(check, []).append(name)
    return "\n".join(
        [f"{versions}, {date.today()}.\n"]
        + ["| model | failed | errors | the first sentence |"]
        + ["|---|---|---|---|", *rows, ""]
        + [f"No check failed for {len(clean)} of {len(answers)}:"]
        + ["; ".join(clean)]
        + [f"\nWarned by `{w}`: {'; '.join(n)}." for w, n in warned.items()]
        + [f"\nNot asked: {len(left)}.\n", *left, ""]
    )


def failed(text):
    """Return {model: checks that failed} of the table in a section."""
    return dict(re.findall(r"(?m)^\| (.+?) \| (.*?) \| ", text))


def main(group, page, *names):
    """Ask a group, or some names of it; write or print the section."""
    with_python = f"torch {torch.__version__}, Python"
    with_python += f" {platform.python_version()}"
    if group == "packages":
        every, title = [*PACKAGES], "Other packages"
        known = dict.fromkeys(name.split(",")[0] for name in every)
        versions = ", ".join(f"{name} {version(name)}" for name in known)
    else:
        from benchmarks.wild_families import FAMILIES as every

        versions = title = f"Transformers {version('transformers')}"
    answers = {}
    for name in names or every:
        print(name, file=sys.stderr, flush=True)
        answers[name] = answer(name)
    text = section(answers, f"{versions}, {with_python}")
    if names:
        print(text)
        return []
    return write(Path(page), title, text)


def write(page, title, text):
    """Put the text under its title; return where its verdicts are new."""
    old = page.read_text("utf-8")
    head, mark, rest = old.partition(f"\n### {title}\n\n")
    assert mark, f"{page} has no heading {title}"
    before, following, tail = rest.partition("\n##")
    page.write_text(head + mark + text + following + tail, "utf-8")
    return sorted(failed(before).items() ^ failed(text).items())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) or None)
