"""check_page.py PAGE.html: all elements are closed in order, each picture is a
whole XML document, and nothing is fetched from elsewhere."""

import html.parser
import re
import sys
import xml.etree.ElementTree

text = open(sys.argv[1]).read()


class Parser(html.parser.HTMLParser):
    open = []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            assert name not in ("src", "href", "data"), (tag, name, value)
        assert tag not in ("script", "link", "iframe", "img"), tag
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.getpos())


parser = Parser()
parser.feed(text)
assert not parser.open, parser.open
pictures = re.findall(r"<svg .*?</svg>", text, re.DOTALL)
assert len(pictures) == 4, len(pictures)  # loss, accuracy, top3, memory
for picture in pictures:
    xml.etree.ElementTree.fromstring(picture)
assert "@import" not in text and "url(" not in text
