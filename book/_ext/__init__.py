"""What the site adds to Jupyter Book and its theme, a module for each part."""

from . import (
    backlinks,
    folds,
    framework_tabs,
    lean_pages,
    long_pages,
    native_math,
    search_index,
    site_address,
    where,
    wide_parts,
)

PARTS = [folds, framework_tabs, lean_pages, native_math, site_address]
PARTS += [backlinks, long_pages, search_index, where, wide_parts]


def setup(app):
    for part in PARTS:
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
