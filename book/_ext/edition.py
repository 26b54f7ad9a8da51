"""Say in every footer which edition of the book this is.

CITATION.cff has version and date. A site whose links lead to the edition's
tag is that edition; any other may have changed since, and says so.
"""

from pathlib import Path

import yaml

CITATION = Path(__file__).parents[2] / "CITATION.cff"


def words(citation, branch, address):
    """Return the footer's sentence, in HTML.

    address: of the repository, which has the changelog, or "".
    """
    version, date = citation["version"], citation["date-released"]
    if branch == version:
        text = f"Edition {version}, {date}"
    else:
        text = f"Latest text, which may differ from edition {version}, {date}"
    if address:
        changes = f"{address}/blob/main/CHANGELOG.md"
        text += f'; <a href="{changes}">changes and errata</a>'
    return f'<span class="edition">{text}.</span>'


def add(app, config):
    options = config.html_theme_options
    citation = yaml.safe_load(CITATION.read_text("utf-8"))
    options["extra_footer"] += " " + words(
        citation, options["repository_branch"], options["repository_url"]
    )


def setup(app):
    # Behind site_address.py, which says where the repository is.
    app.connect("config-inited", add, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
