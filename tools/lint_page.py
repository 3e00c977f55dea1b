"""The page of the lint codes, written from the register of the rules.

    python -m tools.lint_page            write reference/lint_codes.md
    python -m tools.lint_page --check    only say whether it is up to date

A chapter is linked when it exists, so run this after adding one.
"""

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from helpers.advise.lint.codes import GROUPS, RULES, Rule
from tools import notebooks

PAGE = "reference/lint_codes.md"

_HEAD = """\
# Lint codes

> **In short.** `doctor.lint(loader)` looks for faults in a loader of yours. This
> page lists all that it can find; the codes never change their meaning.

```python
from helpers.advise import doctor

print(doctor.lint(loader))
print(doctor.lint(loader, role="train", probe="worker"))

with doctor.watch(loader) as seen:
    train(model, loader)
print(seen.findings)
```

The first call runs neither your `__getitem__` nor your collate function. With
`probe="worker"` they run in workers that are thrown away. `doctor.watch` looks at
your own loop while it runs. See the [API page](api.md).

An *error* breaks the loader or falsifies its data. A *warning* is very likely a
fault. A *note* may be just what you want.
"""


def content(root: Path = notebooks.ROOT) -> str:
    """The whole page, as it should be now."""
    parts = [_HEAD, _table()]
    for digit, rules in groupby(RULES.values(), lambda rule: rule.code[2]):
        parts.append(f"## {GROUPS[digit]}\n")
        parts += [_section(rule, root) for rule in rules]
    return "\n".join(parts)


def _table() -> str:
    lines = ["| Code | Finds | May be |", "| --- | --- | --- |"]
    for rule in RULES.values():
        code = f"[{rule.code}](#{rule.code.lower()})"
        lines.append(f"| {code} | {rule.title} | {', '.join(rule.severities)} |")
    return "\n".join(lines) + "\n"


def _section(rule: Rule, root: Path) -> str:
    return "\n".join([f"### {rule.code}\n", *_paragraphs(rule, root)])


def _paragraphs(rule: Rule, root: Path) -> Iterator[str]:
    yield f"**{rule.title}.** {rule.why}\n"
    yield f"*Fix.* {rule.fix}\n"
    if rule.needs:
        yield f"*Needs* {rule.needs}.\n"
    yield f"*Read* {_link(rule, root)}.\n"


def _link(rule: Rule, root: Path) -> str:
    if (root / rule.file).is_file():
        return f"[{rule.chapter}](../{rule.file})"
    return f"the chapter `{rule.chapter}`"


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or compare it; 0 if all is well."""
    arguments = sys.argv[1:] if arguments is None else arguments
    page, wanted = notebooks.ROOT / PAGE, content()
    current = page.read_text(encoding="utf-8") if page.is_file() else ""
    if "--check" in arguments:
        if current != wanted:
            print(f"{PAGE} is out of date: run python -m tools.lint_page")
        return int(current != wanted)
    page.write_text(wanted, encoding="utf-8")
    print(f"{PAGE}: {'unchanged' if current == wanted else 'rewritten'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
