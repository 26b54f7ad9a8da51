"""What the site adds to Jupyter Book and its theme, a module for each part."""

from . import (
    backlinks,
    beside,
    bundle,
    folds,
    framework_tabs,
    lean_pages,
    long_pages,
    native_math,
    pictures,
    search_index,
    site_address,
    text_fonts,
    where,
    wide_parts,
    you_are_here,
)

PARTS = [folds, framework_tabs, lean_pages, native_math, site_address]
PARTS += [pictures, backlinks, beside, long_pages, search_index, text_fonts]
PARTS += [where, wide_parts, you_are_here, bundle]


def setup(app):
    for part in PARTS:
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
