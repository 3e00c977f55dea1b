"""What a Markdown text holds: links, headings, prose, and its blocks in order."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.token import Token

#: Labels that make a blockquote one of the book's boxes.
BOX_LABELS = ("In short", "Predict", "Careful", "Rule of thumb")

_PARSER = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Link:
    """A link or image; ``text`` is the alternative text of an image."""

    target: str
    text: str
    image: bool


class _HtmlLinks(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[Link] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in values:
            self.links.append(Link(values["href"], "", image=False))
        if tag == "img":
            self.links.append(Link(values.get("src", ""), values.get("alt", ""), True))


def links(text: str) -> list[Link]:
    """Every link and image of a Markdown text, raw HTML included."""
    found = []
    for token in _flat(_PARSER.parse(text)):
        if token.type == "link_open":
            found.append(Link(str(token.attrs["href"]), "", image=False))
        elif token.type == "image":
            found.append(Link(str(token.attrs["src"]), token.content, image=True))
        elif token.type in ("html_block", "html_inline"):
            parser = _HtmlLinks()
            parser.feed(token.content)
            found += parser.links
    return found


def headings(text: str) -> list[tuple[int, str]]:
    """Level and plain text of every heading."""
    tokens = _PARSER.parse(text)
    return [
        (int(token.tag[1]), _plain(tokens[position + 1]))
        for position, token in enumerate(tokens)
        if token.type == "heading_open"
    ]


def slugs(texts: Sequence[str]) -> set[str]:
    """Anchors of the headings of one page, as GitHub and the book name them.

    A heading that comes again gets a number: ``words``, ``words-1``.
    """
    found: set[str] = set()
    for text in texts:
        for _, title in headings(text):
            slug = base = slugify(title)
            number = 0
            while slug in found:
                number += 1
                slug = f"{base}-{number}"
            found.add(slug)
    return found


def slugify(title: str) -> str:
    """Anchor of one heading: lower case, hyphens for spaces, no punctuation."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def prose(text: str) -> str:
    """The words the book itself states.

    Left out: code blocks, the text of links, formulas, and quotations, which
    are blockquotes that hold a link to their source and are none of the boxes.
    """
    parts = []
    for block in _blocks(_PARSER.parse(text)):
        if block[0].type == "blockquote_open" and _is_quotation(block):
            continue
        parts += [_block_prose(token) for token in block]
    return re.sub(r"\$[^$\n]+\$", "", "\n".join(part for part in parts if part))


def box_label(blockquote: str) -> str | None:
    """The bold words a text opens with, without their full stop."""
    match = re.match(r"\*\*([^*]+?)\.?\*\*", blockquote.lstrip("> \n"))
    return match.group(1) if match else None


def _flat(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or ()


def _plain(inline: Token) -> str:
    kinds = ("text", "code_inline")
    return "".join(t.content for t in inline.children or () if t.type in kinds)


def _blocks(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Top-level blocks, each with all the tokens inside it."""
    block: list[Token] = []
    for token in tokens:
        block.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield block
            block = []


def _is_quotation(block: Sequence[Token]) -> bool:
    first = next(token.content for token in block if token.type == "inline")
    linked = any(token.type == "link_open" for token in _flat(block))
    return linked and box_label(first) not in BOX_LABELS


def _block_prose(token: Token) -> str:
    if token.type == "html_block":
        return re.sub(r"<[^>]*>", " ", token.content)
    if token.type != "inline":
        return ""
    depth, words = 0, []
    for child in token.children or ():
        depth += {"link_open": 1, "link_close": -1}.get(child.type, 0)
        if depth == 0 and child.type in ("text", "code_inline"):
            words.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            words.append(" ")
    return "".join(words)
