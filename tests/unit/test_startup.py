"""Start-up is measured in a process of its own, for every method there is."""

import multiprocessing

import pytest

from helpers.measure.startup import seconds_to_first_batch


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_every_method_of_this_system_delivers_a_first_batch(method):
    seconds = seconds_to_first_batch(method, workers=1, loaders=1)
    assert len(seconds) == 1 and seconds[0] > 0


@pytest.mark.skipif(
    "forkserver" not in multiprocessing.get_all_start_methods(),
    reason="this system has no fork server",
)
def test_a_preloaded_fork_server_starts_later_loaders_much_faster():
    first, later = seconds_to_first_batch("forkserver", 1, 2, preload=True)
    assert later < first / 3


def test_a_failure_says_why():
    with pytest.raises(RuntimeError, match="by magic failed: .*invalid choice"):
        seconds_to_first_batch("magic")
