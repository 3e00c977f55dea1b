"""Watching a loop: what shows only while it runs."""

import pytest
import support_lint as support
import torch
from torch.utils.data import DataLoader, DistributedSampler

from helpers.advise.doctor import watch
from helpers.advise.lint.findings import ERROR, NOTE

METHODS = torch.multiprocessing.get_all_start_methods()
USUAL = "fork" if "fork" in METHODS else "spawn"


def distributed(shuffle: bool = True, **more) -> DataLoader:
    data = support.ready(12)
    sampler = DistributedSampler(data, 2, 0, shuffle=shuffle)
    return DataLoader(data, batch_size=2, sampler=sampler, **more)


def run(loader: DataLoader, epochs: int, told: bool = False) -> list:
    seen = []
    for epoch in range(epochs):
        if told:
            loader.sampler.set_epoch(epoch)
        seen += list(loader)
    return seen


def test_an_epoch_number_that_never_changes():
    loader = distributed()
    with watch(loader) as seen:
        run(loader, 2)
    (finding,) = seen.findings
    assert (finding.code, finding.severity) == ("DL104", ERROR)
    assert finding.path == "sampler"
    assert finding.what == "runs 1 and 2 over the loader both had epoch number 0"
    assert "DL104 error" in str(seen)
    assert "DL104 error" in seen._repr_html_()


def test_epochs_that_are_told():
    loader = distributed()
    with watch(loader) as seen:
        run(loader, 3, told=True)
    assert seen.findings == []
    assert seen.findings.examined == "3 epochs seen."


def test_a_sampler_inside_a_batch_sampler():
    batches = support.batches_of(DistributedSampler(range(12), 2, 0), 2, False)
    loader = DataLoader(support.ready(12), batch_sampler=batches)
    with watch(loader) as seen:
        run(loader, 2)
    assert [finding.path for finding in seen.findings] == ["batch_sampler.sampler"]


def test_one_epoch_or_no_shuffling_repeats_nothing():
    for loader, epochs in ((distributed(), 1), (distributed(shuffle=False), 3)):
        with watch(loader) as seen:
            run(loader, epochs)
        assert seen.findings == []


def test_a_look_at_the_first_batch_is_no_epoch():
    loader = distributed()
    with watch(loader) as seen:
        next(iter(loader))
        run(loader, 2, told=True)
    assert seen.findings == []
    assert [epoch.batches for epoch in seen.epochs] == [1, 3, 3]


def test_epochs_that_are_cut_short_count():
    loader = distributed()
    with watch(loader) as seen:
        for _ in range(2):
            for number, _batch in enumerate(loader):
                if number == 1:
                    break
    assert seen.findings.codes == ["DL104"]


def persistent(dataset, workers: int = 1, keep: bool = True) -> DataLoader:
    more = {"persistent_workers": True} if keep else {}
    return DataLoader(dataset, batch_size=4, **more, **support.options(workers, USUAL))


def test_an_attribute_that_persistent_workers_never_see():
    dataset = support.Epochs()
    loader = persistent(dataset)
    with watch(loader) as seen:
        for epoch in range(2):
            dataset.set_epoch_number(epoch)
            batches = list(loader)
    # The fault is real: the workers still add 0.
    assert batches[0].tolist() == [0, 1, 2, 3]
    (finding,) = seen.findings
    assert (finding.code, finding.severity) == ("DL206", ERROR)
    assert finding.path == "dataset.epoch"
    assert finding.what == "the workers have 0, the dataset has 1 now"


def test_without_persistent_workers_every_epoch_gets_the_new_value():
    for loader in (persistent(support.Epochs(), keep=False),):
        with watch(loader) as seen:
            for epoch in range(2):
                loader.dataset.set_epoch_number(epoch)
                batches = list(loader)
        assert batches[0].tolist() == [1, 2, 3, 4]
        assert seen.findings == []


def test_a_value_that_no_worker_reads_is_a_note():
    dataset = support.Holder(progress=0)
    loader = persistent(dataset)
    with watch(loader) as seen:
        for epoch in range(2):
            dataset.progress = epoch
            list(loader)
    assert [(f.severity, f.path) for f in seen.findings] == [(NOTE, "dataset.progress")]


def test_values_in_shared_memory_reach_the_workers():
    dataset = support.Companions()
    loader = persistent(dataset)
    with watch(loader) as seen:
        for epoch in range(2):
            dataset.set_epoch(epoch)
            batches = list(loader)
    assert batches[0].flatten().tolist() == [1, 2, 3, 4]
    assert seen.findings == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda d: vars(d).update(transform=support.pad), "dataset.transform"),
        (lambda d: d.settings.update(size=2), "dataset.settings['size']"),
        (lambda d: vars(d).update(later=1), "dataset.later"),
    ],
)
def test_other_changes(change, path):
    dataset = support.Holder(transform=torch.nn.Identity(), settings={"size": 1})
    loader = persistent(dataset)
    with watch(loader) as seen:
        list(loader)
        change(dataset)
        list(loader)
    assert [finding.path for finding in seen.findings] == [path]


def test_a_cache_that_grows_in_the_main_process_is_no_change():
    dataset = support.Holder(cache={"a": torch.zeros(1)})
    loader = persistent(dataset)
    with watch(loader) as seen:
        list(loader)
        dataset.cache["b"] = torch.zeros(1)
        list(loader)
    assert seen.findings == []


class Doubling(DataLoader):
    def __iter__(self):
        for (batch,) in super().__iter__():
            yield 2 * batch


@pytest.mark.parametrize("kind", [DataLoader, Doubling])
def test_batches_and_loader_stay_as_they_were(kind):
    def make():
        return kind(support.ready(6), batch_size=2)

    loader, other = make(), make()
    before = (dict(vars(loader)), dict(vars(kind)), dict(vars(DataLoader)))
    with watch(loader) as seen:
        inside = run(loader, 1)
        run(other, 1)
    assert str(inside) == str(run(make(), 1))
    assert len(seen.epochs) == 1 and seen.epochs[0].finished
    after = (dict(vars(loader)), dict(vars(kind)), dict(vars(DataLoader)))
    for was, now in zip(before, after, strict=True):
        assert was.keys() == now.keys()
        assert all(was[key] is now[key] for key in was if key != "_base_seed")


def test_two_loaders_are_watched_at_once():
    one, other = distributed(), distributed()
    with watch(one) as seen_one, watch(other) as seen_other:
        run(one, 2)
        run(other, 1)
    assert (len(seen_one.epochs), len(seen_other.epochs)) == (2, 1)
    assert seen_one.findings.codes == ["DL104"] and seen_other.findings == []


def test_the_class_is_put_back_after_an_error():
    original = DataLoader.__iter__
    with pytest.raises(KeyError), watch(distributed()):
        raise KeyError
    assert DataLoader.__iter__ is original


def test_not_a_loader():
    expected = "expected a torch.utils.data.DataLoader, got list"
    with pytest.raises(TypeError, match=expected), watch([1, 2]):
        pass
