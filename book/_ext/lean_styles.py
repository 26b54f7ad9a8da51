"""Give the site one style sheet, of the rules that it uses.

The theme and the extensions bring a dozen, of which the pages use a third. A
rule stays if each class and id in it is a word of some page or script.
"""

import re
from pathlib import Path

import tinycss2
from sphinx.errors import ExtensionError

SITE = "_static/site.css"
THEME = ["basic.css", "styles/pydata-sphinx-theme.css"]
IMPORTS = ["styles/theme.css"]  # holds nothing but an import of basic.css
NAME = re.compile(r"[.#](-?[a-zA-Z_](?:[\w-]|\\.)*)")
# What :is(.a, .b) and the like ask for need not be there in full.
CHOICE = re.compile(r":(?:is|where|not|has)\([^()]*(?:\([^()]*\)[^()]*)*\)")


def note_styles(app, name, template, context, doctree):
    app.styles = [style.filename for style in context["css_files"]]
    context["css_files"] = []


def write_styles(app, exception):
    if exception or not app.styles:
        return  # no page was written
    site = Path(app.outdir)
    words = set()
    for path in [*site.rglob("*.html"), *site.glob("_static/**/*.js")]:
        words |= set(re.findall(r"[\w-]+", path.read_text("utf-8")))
    names = [f"_static/{name}" for name in THEME] + app.styles
    known = {*names, SITE, *(f"_static/{name}" for name in IMPORTS)}
    there = {path.relative_to(site) for path in site.glob("_static/**/*.css")}
    if unknown := {path.as_posix() for path in there} - known:
        raise ExtensionError(
            f"{SITE} leaves out {', '.join(sorted(unknown))}: add these to "
            "THEME in lean_styles.py, at their place in the cascade."
        )
    sheets = [(site / name).read_text("utf-8") for name in names]
    rules = tinycss2.parse_stylesheet(
        "\n".join(sheets), skip_comments=True, skip_whitespace=True
    )
    (site / SITE).write_text("\n".join(used(rules, words)) + "\n", "utf-8")


def used(rules, words):
    """Yield the text of the rules that some page or script may need."""
    for rule in rules:
        if rule.type == "at-rule" and rule.content is not None:
            prelude = tinycss2.serialize(rule.prelude)
            content = tinycss2.serialize(rule.content)
            if rule.lower_at_keyword == "font-face" and "data:" not in content:
                continue  # a font of the theme's icons; icons.css has ours
            if rule.lower_at_keyword in ("media", "supports"):
                inner = tinycss2.parse_blocks_contents(rule.content)
                content = "\n".join(used(inner, words))
            if content.strip():
                yield f"@{rule.at_keyword}{prelude}{{{content}}}"
        elif rule.type == "qualified-rule":
            text = tinycss2.serialize(rule.prelude)
            selectors = [
                selector.strip()
                for selector in re.split(r",(?![^(]*\))", text)
                if set(NAME.findall(CHOICE.sub("", selector))) <= words
            ]
            if selectors:
                content = tinycss2.serialize(rule.content)
                yield f"{','.join(selectors)}{{{content}}}"


def setup(app):
    app.styles = []
    app.connect("html-page-context", note_styles, priority=900)
    app.connect("build-finished", write_styles, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
