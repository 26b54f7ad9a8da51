"""Put the book's own drawings into the page, so that its colours reach them.

A drawing of cellbycell/figures/draw.py is stored as an image. As an image it
would keep the colours of white paper; within the page it has those of light
or dark, and its letters are the page's.
"""

import re

IMAGE = re.compile(r'<img[^>]*\ssrc="[^"]*_images/([^"/]+\.svg)"[^>]*/?>')


def put_in(app, name, template, context, doctree):
    sources = {file: path for path, file in app.builder.images.items()}

    def drawing(image):
        svg = (app.srcdir / sources[image[1]]).read_text("utf-8")
        return svg if 'class="picture"' in svg else image[0]

    if "body" in context:
        context["body"] = IMAGE.sub(drawing, context["body"])


def setup(app):
    app.connect("html-page-context", put_in)
