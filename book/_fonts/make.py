"""Make the fonts of the site out of two packages of npm, once in a while.

    npm pack @fontsource/source-sans-3@5.3.1 @fontsource/source-code-pro@5.3.1
    (unpack both, each into a folder of its name)
    .venv/bin/python book/_fonts/make.py FOLDER

The subset has the letters of the book; signs such as arrows come from
the reader's own fonts. What is changed may not be called Source any more: the
name is reserved by the licence, which is OFL.txt.
"""

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

FILES = {
    "sans": "source-sans-3/files/source-sans-3-latin-400-normal",
    "sans-italic": "source-sans-3/files/source-sans-3-latin-400-italic",
    "sans-bold": "source-sans-3/files/source-sans-3-latin-600-normal",
    "mono": "source-code-pro/files/source-code-pro-latin-400-normal",
}
LETTERS = [*range(0x20, 0x7F), *map(ord, "\xa0–—‘’“”…−")]
LETTERS += map(ord, "§©«°±²·»ÄÖ×Üßàáäçèéñóö÷øúü")
NAMES = {1, 3, 4, 6, 16}


def main(folder):
    for name, file in FILES.items():
        font = TTFont(Path(folder, f"{file}.woff2"))
        options = subset.Options(flavor="woff2", hinting=False)
        options.layout_features = ["kern", "mark", "ccmp", "tnum"]
        options.name_IDs = [0, 1, 2, 3, 4, 6, 13, 14]
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes=LETTERS)
        subsetter.subset(font)
        for record in font["name"].names:
            if record.nameID in NAMES:
                record.string = f"Book-{name}"
        file = Path(__file__).with_name(f"{name}.woff2")
        subset.save_font(font, file, options)


main(*sys.argv[1:])
