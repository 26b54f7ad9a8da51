"""Every page says which edition of the book it belongs to."""

import re

from tools.settings import HTML, branch, contents, edition


def test_every_footer_says_version_and_date():
    version, date = edition()
    said = f"Edition {version}, {date}"
    if branch() != version:
        said += ", with changes since"
    for name in [*contents(), "search", "genindex"]:
        page = (HTML / f"{name}.html").read_text("utf-8")
        (found,) = re.findall('<span class="edition">(.*?)[.;]', page)
        # A dot stands within the version.
        assert f'<span class="edition">{said}' in page, (name, found)
