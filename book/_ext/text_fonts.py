"""Give the site its letters: one family for text, one for code.

They stand within a style sheet, as those of formulas do: a font that came
later would make the browser lay out every page twice. _fonts/make.py made the
files.
"""

import base64
from pathlib import Path

STYLE = "text-font.css"
FONTS = Path(__file__).parent.parent / "_fonts"
FACE = (
    '@font-face {{ font-family: "Book {}"; font-style: {}; '
    'font-weight: {}; src: url("data:font/woff2;base64,{}"); }}\n'
)
FACES = {
    "sans": ("Sans", "normal", "400"),
    "sans-italic": ("Sans", "italic", "400"),
    "sans-bold": ("Sans", "normal", "600 700"),
    "mono": ("Mono", "normal", "400"),
}


def write_style(app):
    text = ""
    for name, face in FACES.items():
        font = (FONTS / f"{name}.woff2").read_bytes()
        text += FACE.format(*face, base64.b64encode(font).decode())
    folder = Path(app.outdir, "_static")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STYLE).write_text(text, "utf-8")


def setup(app):
    app.add_css_file(STYLE)
    app.connect("builder-inited", write_style)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
