"""What cells display: sources, figures, outcomes, claims."""

import base64
import multiprocessing
import os
import sys
import warnings

import pytest
import torch

from helpers.measure.intervals import Estimate, Ratio
from helpers.page import charts, claims, show, style
from helpers.pipeline.seeding import loader_generator, seed_everything


@pytest.fixture
def shown(monkeypatch):
    """Collects what is displayed, as (data, metadata)."""
    collected = []

    def display(data, raw, metadata=None):
        assert raw
        collected.append((data, metadata))

    monkeypatch.setattr(show, "display", display)
    monkeypatch.setattr(claims, "display", display)
    return collected


def test_source_is_the_code_that_runs(shown):
    show.source(seed_everything, loader_generator)
    data, _ = shown[0]
    assert data["text/markdown"].startswith("```python\ndef seed_everything(")
    assert "\n\n\ndef loader_generator(" in data["text/plain"]


def test_source_of_a_method_is_not_indented(shown):
    show.source(torch.utils.data.DataLoader.__len__)
    assert shown[0][0]["text/plain"].startswith("def __len__")


def test_figure_has_alternative_text_and_is_reproducible(shown):
    for _ in range(2):
        figure, axes = style.axes()
        axes.plot([1, 2], [3, 4])
        show.figure(figure, alt='a "line" that rises')
    (first, _), (second, _) = shown
    assert first == second
    assert 'alt="a &quot;line&quot; that rises"' in first["text/html"]
    assert first["text/plain"] == 'Figure: a "line" that rises'
    encoded = first["text/html"].split("base64,")[1].split('"')[0]
    assert b"<svg" in base64.b64decode(encoded)


def test_figure_without_alternative_text_is_refused():
    figure, _ = style.axes()
    with pytest.raises(ValueError, match="alternative text"):
        show.figure(figure, alt="  ")


def test_picture_is_shown_with_its_words(shown):
    show.picture("processes.svg", alt="who does what")
    assert 'alt="who does what"' in shown[0][0]["text/html"]
    with pytest.raises(FileNotFoundError):
        show.picture("missing.svg", alt="nothing")


def test_the_look_changes_nothing_global():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    style.axes()
    assert dict(mpl.rcParams) == before


def shout() -> None:
    os.write(2, f"child {os.getpid()} in trouble\n".encode())


def test_outcome_keeps_errors_warnings_and_childrens_noise(capfd):
    def run() -> None:
        warnings.warn("careful", stacklevel=1)
        warnings.warn("careful", stacklevel=1)
        print("parent in trouble", file=sys.stderr)
        child = multiprocessing.Process(target=shout)
        child.start()
        child.join()
        raise RuntimeError("worker (pid(s) 123, 456) died at 0x7f00")

    seen = show.outcome(run)
    assert seen.text == "worker (pid(s) ...) died at 0x..."
    assert repr(seen) == f"RuntimeError: {seen.text}\nWarning: careful"
    assert "parent in trouble" in seen.stderr
    assert f"child {os.getpid()}" not in seen.stderr and "in trouble" in seen.stderr
    assert capfd.readouterr().err == ""


def test_outcome_of_what_works():
    seen = show.outcome(lambda: 41 + 1)
    assert (seen.value, seen.error, seen.text) == (42, None, "")
    assert repr(seen) == "no error, returned 42"


def test_standard_error_works_again_afterwards(capfd):
    show.outcome(lambda: None)
    os.write(2, b"still here")
    assert capfd.readouterr().err == "still here"


def test_outcome_lets_an_interrupt_through():
    def run() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        show.outcome(run)


def test_true_claim_is_shown_with_metadata(shown):
    claims.check("Two & two are four.", 2 + 2 == 4)
    data, metadata = shown[0]
    assert "Two &amp; two are four." in data["text/html"]
    assert "book-claim-holds" in data["text/html"]
    claim = metadata["claim"]
    assert (claim["text"], claim["kind"]) == ("Two & two are four.", "exact")
    assert claim["verdict"] == "holds"


def test_false_claim_fails_the_notebook(shown):
    with pytest.raises(AssertionError, match="does not hold: Pigs fly"):
        claims.check("Pigs fly.", False)
    assert not shown


def test_a_claim_needs_a_bool():
    with pytest.raises(TypeError, match="needs True or False, got Tensor"):
        claims.check("Equal.", torch.tensor([True, False]))


@pytest.mark.parametrize(
    ("interval", "bounds", "verdict"),
    [
        ((1.6, 2.0), {"at_least": 1.5}, claims.HOLDS),
        ((1.1, 1.4), {"at_least": 1.5}, claims.FAILS),
        ((1.4, 1.6), {"at_least": 1.5}, claims.NOISY),
        ((0.5, 0.8), {"at_most": 0.9}, claims.HOLDS),
        ((0.95, 1.2), {"at_most": 0.9}, claims.FAILS),
        ((0.8, 1.0), {"at_most": 0.9}, claims.NOISY),
        ((0.95, 1.05), {"at_least": 0.9, "at_most": 1.1}, claims.HOLDS),
        ((1.2, 1.3), {"at_least": 0.9, "at_most": 1.1}, claims.FAILS),
    ],
)
def test_verdict_of_a_measured_claim(shown, interval, bounds, verdict):
    ratio = Ratio(sum(interval) / 2, *interval, rounds=5)
    claims.measured("Faster.", ratio, **bounds)
    assert shown[0][1]["claim"]["verdict"] == verdict


@pytest.mark.parametrize(
    ("ratio", "reason"),
    [
        (Ratio(3.0, 2.9, 3.1, rounds=2), "too few rounds"),
        (Ratio(3.0, 2.9, 3.1, rounds=6, trusted=False), "other programs"),
    ],
)
def test_an_untrusted_measurement_decides_nothing(shown, ratio, reason):
    claims.measured("Faster.", ratio, at_least=1.5)
    assert shown[0][1]["claim"]["verdict"] == claims.NOISY
    assert reason in shown[0][1]["claim"]["detail"]


def test_a_measured_claim_needs_a_bound():
    with pytest.raises(ValueError, match="at_least or at_most"):
        claims.measured("Faster.", Ratio(1, 1, 1, 5))


def test_an_observation_states_its_numbers_and_never_fails(shown):
    claims.observed("More.", True, "3 against 2")
    claims.observed("More.", False, "1 against 2")
    (_, first), (_, second) = shown
    assert first["claim"]["verdict"] == claims.HOLDS
    assert first["claim"]["detail"] == "3 against 2"
    assert second["claim"]["verdict"] == claims.FAILS


ESTIMATES = [Estimate(10, 9, 11), Estimate(20, 18, 25)]


def test_a_sweep_draws_spread_limit_and_says_it_in_words():
    panels = {"decode": ([1, 2], ESTIMATES), "memory": ([1, 2], ESTIMATES)}
    figure, alt = charts.sweep(
        panels, "Two panels", "workers", "images/s", limits={"decode": (24, "limit")}
    )
    assert len(figure.axes) == 2
    assert figure.get_suptitle() == "Two panels"
    assert figure.axes[0].get_xlabel() == "workers"
    assert figure.axes[0].get_ylabel() == "images/s"
    assert "decode: 1: 10 (9 to 11), 2: 20 (18 to 25)" in alt
    assert "limit 24" in alt


def test_a_sweep_sets_the_prediction_beside_the_measurement():
    figure, alt = charts.sweep(
        {"x": ([1, 2], ESTIMATES)}, "T", "workers", "ms", curves={"x": [11, 19]}
    )
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert sorted(labels) == ["measured", "predicted"]
    assert "x predicted: 11, 19" in alt


def test_bars_show_their_interval_and_say_it_in_words():
    figure, alt = charts.bars(["a", "b"], ESTIMATES, "B is larger", "MiB")
    assert figure.axes[0].get_xlabel() == "MiB"
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["a", "b"]
    assert alt == "B is larger. MiB: a: 10 (9 to 11), b: 20 (18 to 25)."
