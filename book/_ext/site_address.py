"""Derive the site's address from the repository's, as GitHub Pages does.

Links that leave the site need it whole: the canonical address of a page, and
what sphinxext-opengraph tells those who show a link to it.
"""


def set_address(app, config):
    address = config.html_theme_options["repository_url"]
    owner, name = address.removeprefix("https://github.com/").split("/")
    site = f"https://{owner.lower()}.github.io/{name}/"
    config.html_baseurl = config.ogp_site_url = site
    config.ogp_site_name = config.html_title


def setup(app):
    app.connect("config-inited", set_address)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
