"""Set the formulas as MathML, which browsers draw without a script.

math-core turns TeX into MathML. The font is STIX Two Math, out of the package
ziamath; the site gets the glyphs that its formulas use, within a style sheet:
a font that came later would make the browser lay out every page twice.
"""

import base64
import html
import io
import re
from importlib.metadata import distribution
from pathlib import Path
from unicodedata import normalize

from docutils import nodes
from fontTools import subset
from math_core import LatexError, LatexToMathML
from sphinx.util import logging

FONT = "ziamath/fonts/STIXTwoMath-Regular.ttf"
STYLE = "math-font.css"
FACE = (
    '@font-face {{ font-family: "STIX Two Math"; '
    'src: url("data:font/woff2;base64,{}"); }}\n'
)
# Of the size of a vocabulary, |V|, is no value.
ROLE = re.compile(r"(?<!\|</mo>)<mi>([QKV])</mi>")
ROLES = {"Q": "query", "K": "key", "V": "value"}
CONVERTER = LatexToMathML(fancy_error=False)
# A letter alone is a variable, and browsers draw it in italics.
ITALICS = [*range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C), 0x210E]
ITALIC = {normalize("NFKC", chr(code)): code for code in ITALICS}
logger = logging.getLogger(__name__)


def mathml(node, displaystyle):
    """Return a formula as MathML; warn of TeX that is wrong or unknown."""
    tex = node.astext()
    if re.search(r"\\sqrt\s*\{[^}]*\\(d?frac|sum|prod|int)\b", tex):
        logger.warning(
            "the root in %s is higher than its sign, of which the site has "
            "the smallest size alone. Write x^{1/2}, or a fraction as a / b.",
            tex,
            location=node,
        )
    if r"\tag" in tex:
        tex = rf"\begin{{equation}}{tex}\end{{equation}}"
    try:
        formula = CONVERTER.convert_with_local_state(
            tex, displaystyle=displaystyle
        )
    except LatexError as error:
        logger.warning(
            "math-core cannot set the formula %s: %s Correct it, or write it "
            "in another way.",
            node.astext(),
            error,
            location=node,
        )
        return f"<code>{html.escape(node.astext())}</code>"
    return ROLE.sub(
        lambda sign: f'<mi class="role-{ROLES[sign[1]]}">{sign[1]}</mi>',
        formula,
    )


def visit_inline(writer, node):
    writer.body.append(writer.starttag(node, "span", "", CLASS="math"))
    writer.body.append(f"{mathml(node, displaystyle=False)}</span>")
    raise nodes.SkipNode


def visit_block(writer, node):
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    writer.body.append(f"{mathml(node, displaystyle=True)}</div>")
    raise nodes.SkipNode


def keep_small_roots(font):
    """Leave the font the one radical sign that a line of text needs.

    Chromium keeps behind each root the room that the largest would take.
    """
    variants = font["MATH"].table.MathVariants
    glyphs = variants.VertGlyphCoverage.glyphs
    place = glyphs.index(font.getBestCmap()[ord("√")])
    del glyphs[place], variants.VertGlyphConstruction[place]
    variants.VertGlyphCount -= 1


def write_font(app, exception):
    """Make a font of the characters in all formulas of the site."""
    if exception or app.builder.format != "html":
        return
    characters = {"√"}  # the one sign that stands for an element
    for page in Path(app.outdir).rglob("*.html"):
        formulas = re.findall(r"<math.*?</math>", page.read_text("utf-8"))
        text = re.sub("<.*?>", "", "".join(formulas))
        characters |= set(html.unescape(text))
    codes = {ord(character) for character in characters}
    codes |= {ITALIC[letter] for letter in characters & ITALIC.keys()}
    options = subset.Options(flavor="woff2", hinting=False)
    source = distribution("ziamath").locate_file(FONT)
    font = subset.load_font(source, options)
    keep_small_roots(font)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=codes)
    subsetter.subset(font)
    file = io.BytesIO()
    subset.save_font(font, file, options)
    text = FACE.format(base64.b64encode(file.getvalue()).decode())
    Path(app.outdir, "_static", STYLE).write_text(text, "utf-8")


def setup(app):
    app.add_html_math_renderer(
        "native", (visit_inline, None), (visit_block, None)
    )
    app.add_css_file(STYLE)
    app.connect("build-finished", write_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
