"""What lint and watch report: findings, and how they are shown."""

import html
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

ERROR, WARNING, NOTE = "error", "warning", "note"

#: From the gravest to the mildest.
SEVERITIES = (ERROR, WARNING, NOTE)

_WIDTH = 78


@dataclass(frozen=True)
class Finding:
    """One fault, or something worth knowing.

    Attributes:
        code: stable name of the rule, such as ``DL101``.
        severity: one of :data:`SEVERITIES`.
        path: the object concerned, as you would write it in code, such as
            ``dataset.transform.transforms[2].lock``.
        what: what was found there, with its numbers.
        why: what comes of it.
        fix: what to do.
        chapter: file name of the chapter that shows it.
    """

    code: str
    severity: str
    path: str
    what: str
    why: str
    fix: str
    chapter: str

    def __str__(self) -> str:
        headline = f"{self.code} {self.severity}: {self.path}"
        parts = [_wrapped(text, f"    {name:4} ", 9) for name, text in self._details()]
        return "\n".join([headline, *parts])

    def _details(self) -> tuple[tuple[str, str], ...]:
        return (
            ("What", f"{self.what[:1].upper()}{self.what[1:]}."),
            ("Why", self.why),
            ("Fix", self.fix),
            ("Read", self.chapter),
        )

    def _html(self) -> str:
        body = "".join(
            f"<dt>{name}</dt><dd>{html.escape(text)}</dd>"
            for name, text in self._details()
        )
        return (
            '<li class="book-finding"><p>'
            f"<strong>{self.code} {self.severity}</strong>: "
            f"<code>{html.escape(self.path)}</code></p><dl>{body}</dl></li>"
        )


class Findings(list[Finding]):
    """A list of findings, the gravest first, that knows how to show itself.

    Args:
        findings: in any order.
        examined: one sentence that says what was looked at and what was not.
    """

    def __init__(self, findings: Iterable[Finding] = (), examined: str = "") -> None:
        super().__init__(sorted(findings, key=_gravest_first))
        self.examined = examined

    @property
    def errors(self) -> list[Finding]:
        """Those that break the loader or falsify its data."""
        return self._of(ERROR)

    @property
    def warnings(self) -> list[Finding]:
        """Those that are very likely a fault."""
        return self._of(WARNING)

    @property
    def notes(self) -> list[Finding]:
        """Those that may be just as wanted."""
        return self._of(NOTE)

    @property
    def codes(self) -> list[str]:
        """The codes found, each once, sorted."""
        return sorted({finding.code for finding in self})

    def _of(self, severity: str) -> list[Finding]:
        return [finding for finding in self if finding.severity == severity]

    @property
    def headline(self) -> str:
        """How many there are of each severity, in words."""
        if not self:
            return "No findings."
        counts = [(len(self._of(severity)), severity) for severity in SEVERITIES]
        parts = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts if n]
        return f"{', '.join(parts)}."

    def __str__(self) -> str:
        lead = _wrapped(f"{self.headline} {self.examined}".rstrip(), "", 0)
        return "\n\n".join([lead, *(str(finding) for finding in self)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        items = "".join(finding._html() for finding in self)
        items = f'<ul class="book-findings">{items}</ul>' if self else ""
        lead = f"<p><strong>{self.headline}</strong> {html.escape(self.examined)}</p>"
        return f"<div>{lead}{items}</div>"


def _gravest_first(finding: Finding) -> tuple[int, str, str]:
    return SEVERITIES.index(finding.severity), finding.code, finding.path


def _wrapped(text: str, first: str, indent: int) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
