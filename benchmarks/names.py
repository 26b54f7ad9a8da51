"""Write what the book's small models read and have learned.

    python -m benchmarks.names          the names, from Babel
    python -m benchmarks.names llama    the weights of the model in the page

Babel carries the Unicode CLDR; another version may give other names. A test
compares the stored names with those of the pinned one. The training takes half
a minute; another processor rounds otherwise and ends with other weights, whose
loss is nearly the same: a weekly workflow asks for 2.05 to 2.22.
"""

import base64
import hashlib
import json
import sys

from babel import Locale

from cellbycell import names
from cellbycell.names import _FILE, LETTERS, plain

LANGUAGES = "en de fr es it pt nl fi da sv pl cs".split()
HEAD = """\
# Names of things in {} languages, from the Unicode CLDR by Babel.
# Copyright Unicode, Inc.; licence: Unicode-3.0, see LICENSE.
# Written by `python -m benchmarks.names`. Each row: a thing, then its names.
"""


def names_of_things():
    """Return {thing: its names, sorted} in all the languages."""
    found = {}
    for language in LANGUAGES:
        locale = Locale(language)
        zones = locale.time_zones.items()
        for kind, table in {
            "territory": locale.territories,
            "language": locale.languages,
            "zone": {zone: of.get("city") for zone, of in zones},
            "script": locale.scripts,
            "currency": locale.currencies,
        }.items():
            for key, text in table.items():
                name = plain(text) if isinstance(text, str) else ""
                if 3 <= len(name) <= 20 and all(
                    letter in LETTERS[1:] for letter in name
                ):
                    found.setdefault(f"{kind} {key}", set()).add(name)
    return {thing: sorted(found[thing]) for thing in sorted(found)}


def text():
    """Return what the file of names holds."""
    things = names_of_things().items()
    rows = ("\t".join([thing, *names]) + "\n" for thing, names in things)
    return HEAD.format(len(LANGUAGES)) + "".join(rows)


def rows():
    """Return the rows of names: for training, and held out."""
    return names.split_names(names.read_names())


def trained_llama():
    """Return the small Llama, trained on one thread, and its held-out loss."""
    import torch

    from cellbycell.common import LlamaConfig
    from cellbycell.pytorch import Llama, learn, name_loss

    torch.set_num_threads(1)
    sizes = dict(vocab_size=30, num_layers=2, d_model=48, num_heads=4)
    model = Llama(LlamaConfig(**sizes, key_heads=2, d_head=12, d_ff=128))
    names.initialise(model, seed=0)
    train_rows, held_rows = rows()
    learn(model, train_rows, steps=800, rate=0.01, decay=0.3, seed=0)
    with torch.no_grad():
        return model, name_loss(model, held_rows).item()


def digest(data):
    """Return the SHA-256 of some bytes."""
    return hashlib.sha256(data).hexdigest()


def rows_digest():
    """Return the SHA-256 of all rows."""
    return digest(b"".join(part.astype("<i8").tobytes() for part in rows()))


def write_llama():
    """Train the Llama, and write what the page needs."""
    from cellbycell.figures.names_model import FILE, pack

    model, loss = trained_llama()
    if not 2.05 < loss < 2.22:
        raise SystemExit(f"held-out loss {loss:.4f}: it learns otherwise now.")
    packed = pack(model)
    told = {
        "command": "python -m benchmarks.names llama",
        "held_out": round(loss, 4),
        "rows_sha256": rows_digest(),
        "weights_sha256": digest(base64.b64decode(packed["weights"])),
    }
    FILE.write_text(json.dumps(told | packed, indent=1) + "\n", "utf-8")
    print(f"held-out loss {loss:.4f}, in {FILE}")


if __name__ == "__main__":
    if sys.argv[1:] == ["llama"]:
        write_llama()
    else:
        _FILE.write_text(text(), encoding="utf-8")
