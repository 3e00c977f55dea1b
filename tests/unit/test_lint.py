"""What lint promises whatever it finds: nothing is touched, bad input is refused,
and the findings teach."""

import multiprocessing
import os
import random
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
import support_lint as support
import torch
from torch.utils.data import DataLoader, Dataset

from helpers.advise import doctor
from helpers.advise.lint import codes
from helpers.advise.lint.codes import GROUPS, RULES, finding
from helpers.advise.lint.findings import ERROR, NOTE, SEVERITIES, WARNING, Findings
from tools import lint_page, notebooks

METHODS = torch.multiprocessing.get_all_start_methods()
USUAL = "fork" if "fork" in METHODS else "spawn"


def random_states(loader, *objects) -> str:
    states = [torch.get_rng_state().tolist(), np.random.get_state(), random.getstate()]
    if loader.generator is not None:
        states.append(loader.generator.get_state().tolist())
    for one in objects:
        states.append(one.bit_generator.state)
    return repr(states)


class SharesItsGenerator(support.Draws):
    """Its sampler and its length draw from the generator that it holds."""

    def __len__(self):
        self.rng.random()
        torch.rand(())
        return 8


class DrawingSampler(support.BrokenSampler):
    """Draws from everything that it can reach, and counts its epochs."""

    def __init__(self, source):
        self.source, self.epoch = source, 0

    def __len__(self):
        self.epoch += 1
        return 8

    def __iter__(self):
        self.epoch += 1
        self.source.rng.random()
        return iter(torch.randperm(8).tolist())


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("probe", ["none", "worker"])
def test_random_states_and_the_loader_stay_as_they_were(workers, probe):
    dataset = SharesItsGenerator(np.random.default_rng(0))
    loader = DataLoader(
        dataset,
        batch_size=2,
        sampler=DrawingSampler(dataset),
        generator=torch.Generator().manual_seed(3),
        worker_init_fn=support.seed_numpy,
        **support.options(workers, USUAL),
    )
    before = random_states(loader, dataset.rng), dict(vars(loader))
    doctor.lint(loader, role="train", probe=probe)
    after = random_states(loader, dataset.rng), dict(vars(loader))
    assert before == after
    assert loader.sampler.epoch == 0


class Recorded(Dataset):
    """Notes in which process its methods run."""

    def __init__(self, path):
        self.path = path

    def note(self, what):
        with open(self.path, "a") as file:
            file.write(f"{what} {os.getpid()}\n")

    def __len__(self):
        return 8

    def __getitem__(self, index):
        self.note("getitem")
        return index


def called_in(dataset, probe: str, workers: int, **more) -> set[int]:
    loader = DataLoader(dataset, 2, **more, **support.options(workers, USUAL))
    dataset.path.write_text("")
    findings = doctor.lint(loader, probe=probe)
    assert "DL902" not in findings.codes
    return {int(line.split()[1]) for line in dataset.path.read_text().splitlines()}


@pytest.mark.parametrize("workers", [0, 2])
def test_samples_are_taken_only_in_a_worker_that_is_thrown_away(workers, tmp_path):
    dataset = Recorded(tmp_path / "calls")
    assert called_in(dataset, "none", workers) == set()
    processes = called_in(dataset, "worker", workers)
    assert len(processes) == 1 and os.getpid() not in processes


def test_only_the_first_batch_is_taken(tmp_path):
    dataset = Recorded(tmp_path / "calls")
    called_in(dataset, "worker", 2)
    assert len(dataset.path.read_text().splitlines()) == 2


class CountedStream(support.Divided):
    """A stream with a length."""


@pytest.mark.parametrize("probe", ["none", "worker"])
def test_the_length_of_a_stream_is_not_asked_of_the_loader(probe):
    loader = DataLoader(CountedStream(), 2, **support.options(2, USUAL))
    doctor.lint(loader, role="train", probe=probe)
    # It would make the loader count, and warn in the reader's own loop.
    assert loader._IterableDataset_len_called is None


def test_no_tensor_moves_into_shared_memory():
    dataset = support.ready(8)
    doctor.lint(DataLoader(dataset, **support.options(2, "spawn")))
    assert not dataset.tensors[0].is_shared()


def test_the_start_method_is_not_fixed_by_asking():
    code = (
        "import torch, multiprocessing\n"
        "from helpers.advise import doctor\n"
        "loader = torch.utils.data.DataLoader([1, 2], num_workers=1)\n"
        "doctor.lint(loader)\n"
        "multiprocessing.set_start_method('spawn')\n"
        "print(multiprocessing.get_start_method())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=notebooks.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "spawn"


def test_a_context_object_is_understood():
    context = multiprocessing.get_context("spawn")
    loader = DataLoader(
        support.Holder(f=lambda: 1), num_workers=1, multiprocessing_context=context
    )
    assert [f.severity for f in doctor.lint(loader)] == [ERROR]


class Moving(DataLoader):
    """Changes batches on their way out."""

    def __iter__(self):
        for (batch,) in super().__iter__():
            yield batch + 1


def test_a_loader_that_changes_its_batches():
    loader = Moving(support.ready(8), 2, **support.options(2, USUAL))
    findings = doctor.lint(loader, probe="worker")
    assert findings == []
    assert findings.examined.endswith("and a batch from a throw-away worker.")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (
            {"loader": [1, 2]},
            TypeError,
            "expected a torch.utils.data.DataLoader, got l",
        ),
        ({"role": "test"}, ValueError, "role must be one of None, 'train', 'eval'; g"),
        (
            {"probe": True},
            ValueError,
            "probe must be one of 'none', 'worker'; got True",
        ),
        ({"probe": []}, ValueError, "probe must be one of 'none', 'worker'; got []"),
        ({"loop": 3}, TypeError, "loop must be a function or its source, got int"),
        ({"loop": "for in"}, ValueError, "loop is not Python source: invalid syntax"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, error, words):
    loader = arguments.pop("loader", DataLoader(support.ready(4)))
    with pytest.raises(error, match=re.escape(words)) as caught:
        doctor.lint(loader, **arguments)
    assert "\n" not in str(caught.value)


# --- how findings are shown ---------------------------------------------------


def three_findings() -> Findings:
    return Findings(
        [
            finding("DL501", NOTE, "num_workers", "8 workers on 2 usable cores"),
            finding("DL201", ERROR, "dataset.a", "a <lock> cannot be pickled"),
            finding("DL202", WARNING, "collate_fn", "a lambda has no name"),
        ],
        "5 objects examined.",
    )


def test_the_text_gives_headline_what_why_and_fix():
    text = str(three_findings())
    lines = text.splitlines()
    assert lines[:4] == [
        "1 error, 1 warning, 1 note. 5 objects examined.",
        "",
        "DL201 error: dataset.a",
        "    What A <lock> cannot be pickled.",
    ]
    assert max(map(len, lines)) <= 78
    order = re.findall(r"^(DL\d+) (\w+): (\S+)$", text, re.MULTILINE)
    assert [severity for _, severity, _ in order] == list(SEVERITIES)
    for part in ("Why ", "Fix ", "Read "):
        assert text.count(f"\n    {part}") == 3
    assert "chapters/num_workers.ipynb" in text
    assert repr(three_findings()) == text


def test_nothing_found_is_said():
    assert str(Findings(examined="All of it.")) == "No findings. All of it."
    assert "No findings." in Findings()._repr_html_()


def test_findings_are_a_list_with_the_gravest_first():
    findings = three_findings()
    assert [finding.code for finding in findings] == ["DL201", "DL202", "DL501"]
    assert [f.code for f in findings.errors] == ["DL201"]
    assert [f.code for f in findings.warnings] == ["DL202"]
    assert [f.code for f in findings.notes] == ["DL501"]
    assert findings.codes == ["DL201", "DL202", "DL501"]


class Tags(HTMLParser):
    """The tags of a text, and the words outside them."""

    def __init__(self, text):
        super().__init__()
        self.opened, self.closed, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.opened.append(tag)

    def handle_endtag(self, tag):
        self.closed.append(tag)

    def handle_data(self, data):
        self.words.append(data)


def test_the_html_is_a_list_with_the_severity_in_words():
    parsed = Tags(three_findings()._repr_html_())
    assert sorted(parsed.opened) == sorted(parsed.closed)
    assert parsed.opened.count("li") == parsed.opened.count("dl") == 3
    assert parsed.opened.count("dt") == parsed.opened.count("dd") == 12
    words = "".join(parsed.words)
    for severity in SEVERITIES:
        assert f" {severity}:" in words
    # What a reader's object says must not become part of the page.
    assert "A <lock> cannot be pickled" in words


# --- the register, and its page -----------------------------------------------


def test_codes_are_grouped_by_hundreds_and_in_order():
    assert list(RULES) == sorted(RULES)
    assert all(re.fullmatch(r"DL[1-59]\d\d", code) for code in RULES)
    assert {code[2] for code in RULES} == set(GROUPS)


def test_every_rule_says_what_why_and_fix():
    for rule in RULES.values():
        assert rule.title and not rule.title.endswith(".")
        assert rule.why.endswith(".") and rule.fix.endswith(".")
        assert list(rule.severities) == [s for s in SEVERITIES if s in rule.severities]


def test_chapters_are_those_of_the_book():
    chapters = {rule.chapter for rule in RULES.values()}
    assert chapters <= {
        "collate_fn",
        "dataset",
        "errors",
        "iterable_dataset",
        "num_workers",
        "pin_memory",
        "prefetch",
        "sampler",
        "shuffle_and_seeding",
        "slow",
    }


def test_a_finding_has_a_severity_of_its_rule():
    with pytest.raises(ValueError, match="DL304 is never 'error'"):
        finding("DL304", ERROR, "loader", "x")
    with pytest.raises(KeyError):
        finding("DL000", ERROR, "loader", "x")
    made = finding("DL101", NOTE, "a", "b")
    assert "`" not in made.why + made.fix
    assert made.chapter == "chapters/shuffle_and_seeding.ipynb"


def test_the_page_is_up_to_date(tmp_path):
    """But for links: a chapter that was added since is linked by the next run."""
    page = (notebooks.ROOT / lint_page.PAGE).read_text(encoding="utf-8")
    unlinked = re.sub(
        r"\[(\w+)\]\(\.\./chapters/\1\.ipynb\)", r"the chapter `\1`", page
    )
    assert unlinked == lint_page.content(tmp_path), "run python -m tools.lint_page"


def test_the_page_lists_every_code_and_links_what_exists(tmp_path):
    page = lint_page.content(tmp_path)
    for rule in RULES.values():
        assert f"### {rule.code}\n" in page and rule.title in page
        assert f"](../{rule.file})" not in page
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters/sampler.ipynb").touch()
    assert "[sampler](../chapters/sampler.ipynb)" in lint_page.content(tmp_path)


def test_a_page_out_of_date_is_written_anew(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lint_page.notebooks, "ROOT", tmp_path)
    (tmp_path / "reference").mkdir()
    assert lint_page.main(["--check"]) == 1
    assert "run python -m tools.lint_page" in capsys.readouterr().out
    assert lint_page.main([]) == 0
    assert lint_page.main(["--check"]) == 0
    assert codes.RULES["DL101"].title in (tmp_path / lint_page.PAGE).read_text()
