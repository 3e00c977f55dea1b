"""Which settings are considered, which fit, which are measured: no clock."""

import pytest

from helpers.advise.model import BatchCosts
from helpers.advise.tuning import entrants, grid
from helpers.advise.tuning.grid import ALONE, Setting, pick, shortlist
from helpers.advise.tuning.outlook import outlook
from helpers.advise.tuning.room import Room, Weight
from helpers.advise.tuning.verify import MOST_OPEN, Timetable

MIB = 2**20
LIGHT = Weight(batch_bytes=MIB, worker_bytes=10 * MIB)
PLENTY = Room(shm_bytes=10**12, memory_bytes=10**12)
#: Two workers make a batch as quickly as the step takes one.
COSTS = BatchCosts(fetch=0.10, worker=0.10, cpu=0.02, main=0.0, step=0.05, step_cpu=0.0)


def predicted(costs: BatchCosts = COSTS, cores: float = 4) -> dict[Setting, float]:
    return {s: costs.predict(s.workers, cores).seconds for s in grid.grid(cores)}


def test_the_grid_has_sixteen_points_and_grows_with_the_cores():
    assert len(grid.grid(2)) == len(set(grid.grid(2))) == 16
    assert {s.workers for s in grid.grid(2)} == {0, 1, 2, 3, 4, 8}
    assert {s.workers for s in grid.grid(40)} == {0, 1, 2, 3, 4, 8, 16, 32}
    assert grid.grid(2) == sorted(grid.grid(2))


def test_arguments_are_what_a_data_loader_takes():
    assert ALONE.arguments == {"num_workers": 0}
    assert Setting(2, 4).arguments == {"num_workers": 2, "prefetch_factor": 4}


def test_the_pick_has_the_fewest_workers_that_bring_something():
    assert pick(predicted()) == Setting(2, 2)


def test_a_prediction_within_three_percent_counts_as_equal():
    seconds = {Setting(1, 2): 1.029, Setting(2, 2): 1.0, Setting(0, 0): 1.031}
    assert pick(seconds) == Setting(1, 2)


def test_the_usual_prefetch_is_taken_unless_it_does_not_fit():
    seconds = {s: v for s, v in predicted().items() if s.prefetch != 2}
    assert pick(seconds) == Setting(2, 1)


def test_the_shortlist_holds_pick_current_neighbours_and_more_prefetch():
    listed = shortlist(predicted(), current=Setting(8, 1))
    assert listed[:2] == [Setting(2, 2), Setting(8, 1)]
    assert set(listed[2:]) == {Setting(1, 2), Setting(3, 2), Setting(2, 4)}


def test_no_workers_are_measured_if_predicted_within_thirty_percent():
    close = BatchCosts(0.06, 0.06, 0.06, 0.0, 0.0, 0.0)
    assert ALONE in shortlist(predicted(close, cores=1), Setting(4, 2))
    far = BatchCosts(0.06, 0.06, 0.01, 0.0, 0.0, 0.0)
    assert ALONE not in shortlist(predicted(far), Setting(4, 2))
    assert ALONE in shortlist(predicted(far), current=ALONE)


def view(room: Room = PLENTY, weight: Weight = LIGHT, in_process: bool = True):
    return outlook(COSTS, 4, Setting(6, 2), room, weight, in_process)


def test_the_outlook_covers_the_grid_and_the_current_setting():
    assert len(view().predicted) == 17
    assert Setting(6, 2) in view().shortlist


def test_bytes_in_flight_follow_the_formula():
    weight = Weight(batch_bytes=100, worker_bytes=1000)
    assert weight.in_flight(Setting(2, 4)) == 1.5 * 100 * (2 * 4 + 2)
    assert weight.total(Setting(2, 4)) == 1500 + 2000
    assert weight.in_flight(ALONE) == weight.total(ALONE) == 0


def test_half_of_the_free_shared_memory_is_the_cap():
    just = LIGHT.in_flight(Setting(2, 2)) * 2
    room = Room(shm_bytes=just, memory_bytes=10**12)
    assert room.objection([Setting(2, 2)], LIGHT) is None
    assert "/dev/shm" in room.objection([Setting(2, 4)], LIGHT)
    smaller = Room(shm_bytes=just - 4, memory_bytes=10**12)
    assert smaller.objection([Setting(2, 2)], LIGHT) is not None


def test_a_quarter_of_the_memory_is_the_cap_workers_included():
    just = LIGHT.total(Setting(2, 2)) * 4
    room = Room(shm_bytes=None, memory_bytes=just)
    assert room.objection([Setting(2, 2)], LIGHT) is None
    assert "of memory" in room.objection([Setting(3, 2)], LIGHT)
    assert room.objection([Setting(2, 2), Setting(1, 1)], LIGHT) is not None


def test_settings_that_do_not_fit_are_not_picked():
    room = Room(shm_bytes=2 * LIGHT.in_flight(Setting(1, 2)), memory_bytes=10**12)
    seen = view(room)
    assert seen.pick == Setting(2, 1)  # as many in flight as with (1, 2)
    assert Setting(2, 2) in seen.no_room
    assert not set(seen.shortlist) & set(seen.no_room)


def test_if_no_workers_fit_none_are_recommended():
    seen = view(Room(shm_bytes=MIB, memory_bytes=10**12))
    assert seen.only_alone
    assert seen.pick == ALONE
    assert "half of the 1 MiB" in next(iter(seen.no_room.values()))


def test_without_calls_in_this_process_no_workers_are_only_predicted():
    seen = view(in_process=False)
    assert ALONE in seen.predicted
    assert ALONE not in seen.open
    assert view(Room(MIB, 10**12), in_process=False).pick == ALONE


def table(start_up_s: float = 0.1) -> Timetable:
    return Timetable(predicted(), start_up_s, cores=4)


def admit(listed: list[Setting], **changes) -> entrants.Entrants:
    usual = {
        "room": PLENTY,
        "weight": LIGHT,
        "timetable": table(),
        "window_s": 0.4,
        "time_left_s": 1e6,
        "keep_open": False,
    }
    return entrants.admit(listed, **usual | changes)


LISTED = [Setting(2, 2), ALONE, Setting(3, 2), Setting(1, 2), Setting(2, 4)]


def test_everything_enters_where_there_is_time_and_room():
    assert list(admit(LISTED).settings) == LISTED


def test_slow_starters_are_few():
    entered = admit(LISTED, keep_open=True)
    assert list(entered.settings) == LISTED[:MOST_OPEN]
    assert "at most 4" in entered.left_out[Setting(2, 4)]


def test_all_that_are_open_at_once_must_fit_together():
    two = LIGHT.in_flight(Setting(2, 2)) + LIGHT.in_flight(Setting(1, 2))
    entered = admit(LISTED, room=Room(2 * two, 10**12))
    assert entered.settings == (Setting(2, 2), ALONE, Setting(1, 2))
    assert "/dev/shm" in entered.left_out[Setting(3, 2)]


def test_the_least_telling_leave_when_time_is_short():
    needed = table().race_s(LISTED[:3], 0.4)
    entered = admit(LISTED, time_left_s=needed + 0.01)
    assert list(entered.settings) == LISTED[:3]
    assert entered.left_out == dict.fromkeys(LISTED[3:], "no time left")


def test_without_time_for_two_nothing_enters():
    entered = admit(LISTED, time_left_s=1.0)
    assert entered.settings == ()
    assert set(entered.left_out) == set(LISTED)
    assert entered.needed_s > 1.0


def test_the_timetable_counts_start_drain_and_window():
    batch = predicted()[Setting(2, 2)]
    alone = predicted()[ALONE]
    seconds = table(start_up_s=1.0).window_s(Setting(2, 2), 0.4)
    # start, first batch, drain of 2 * 2 + 2, a wave of 2 per slice, 8 batches
    assert seconds == pytest.approx(1.0 + (1 + 6 + 2 * 4) * batch + 8 * batch)
    assert table().window_s(ALONE, 0.4) == pytest.approx((1 + 8) * alone)
