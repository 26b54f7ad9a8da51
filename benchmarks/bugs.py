"""Plant sixty bugs that people make, and count those that the kit sees.

    python -m benchmarks.bugs

The bugs and the correct models are those of `cellbycell.checks.bugs`; the kit
first checks the correct models.
"""

from contextlib import nullcontext

from cellbycell.checks import check_model
from cellbycell.checks.bugs import keras, pytorch, read_bugs


def seen(bank, model, bug=None):
    """Return the checks that fail, warn, or meet an error."""
    with bug.planted(vars(bank)) if bug else nullcontext():
        report = check_model(**bank.case(model))
    return [
        f"{check} ({status})"
        for status in ("failed", "warning", "error")
        for check in report.with_status(status)
    ]


def main():
    """Print what the kit says of each model, and how many bugs it sees."""
    unseen, count = [], 0
    for bank in (pytorch, keras):
        for model in bank.MODELS:
            found = seen(bank, model)
            print(f"correct {model}: {', '.join(found) or '-'}", flush=True)
            for name, bug in read_bugs(model).items():
                found, count = seen(bank, model, bug), count + 1
                print(f"{name}: {', '.join(found) or '-'}", flush=True)
                unseen += [] if found else [name]
    print("Unseen:", *unseen, sep="\n  ")
    print(f"Seen: {count - len(unseen)} of {count}")


if __name__ == "__main__":
    main()
