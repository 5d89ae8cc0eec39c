"""The frontier is the smallest reach of the feeds, and never goes back."""

from __future__ import annotations

from tidegate.batch import MAX_US, MIN_US
from tidegate.gate.frontier import Progress, SourceFeed, frontier


def feed(*members, disorder=0, live=False, idle=False):
    return SourceFeed(tuple(members), disorder, live, idle)


def test_the_slowest_source_decides():
    assert frontier(MIN_US, [feed(Progress(10)), feed(Progress(7))]) == 7


def test_a_source_that_has_not_spoken_counts_as_minus_infinity():
    assert frontier(MIN_US, [feed(Progress(10)), feed(Progress())]) == MIN_US


def test_an_ended_source_counts_as_plus_infinity():
    assert frontier(MIN_US, [feed(Progress(10)), feed(Progress(7, ended=True))]) == 10
    assert frontier(MIN_US, [feed(Progress(10, ended=True))]) == MAX_US


def test_disorder_is_taken_off_the_newest():
    assert frontier(MIN_US, [feed(Progress(10), disorder=4)]) == 6


def test_a_promise_counts_until_the_source_speaks():
    assert frontier(MIN_US, [feed(Progress(promise_us=5)), feed(Progress(9))]) == 5


def test_it_never_goes_back():
    assert frontier(8, [feed(Progress(3))]) == 8


def test_a_followed_folder_between_files_holds_at_its_newest_tuple():
    done = Progress(30, ended=True), Progress(20, ended=True)
    assert frontier(MIN_US, [feed(*done, live=True, disorder=5)]) == 25


def test_a_followed_folder_without_files_holds_everything():
    assert frontier(MIN_US, [feed(live=True), feed(Progress(4))]) == MIN_US


def test_an_idle_feed_does_not_hold_the_others_back():
    assert frontier(MIN_US, [feed(Progress(3), idle=True), feed(Progress(9))]) == 9


def test_when_all_are_idle_the_newest_of_them_is_the_limit():
    assert frontier(MIN_US, [feed(Progress(3), idle=True), feed(Progress(9), idle=True)]) == 9


def test_an_idle_feed_that_has_ended_does_not_end_the_others():
    """It is silent for good; what the other one brings next is not lost."""
    ended, silent = feed(Progress(9, ended=True), idle=True), feed(Progress(3), idle=True)
    assert frontier(MIN_US, [ended, silent]) == 3
    assert frontier(MIN_US, [ended]) == MAX_US
