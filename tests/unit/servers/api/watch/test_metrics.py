"""The text format of Prometheus."""

from __future__ import annotations

from hermes.servers.api.watch.metrics import family, snapshot_of


def test_a_family_reads_as_prometheus_wants_it() -> None:
    page = family("hermes_turns_total", "counter", "Turns.", [({"state": "done"}, 3), ({"state": "failed"}, 0)])
    assert page == (
        "# HELP hermes_turns_total Turns.\n"
        "# TYPE hermes_turns_total counter\n"
        'hermes_turns_total{state="done"} 3\n'
        'hermes_turns_total{state="failed"} 0\n'
    )


def test_labels_are_escaped_and_numbers_are_plain() -> None:
    page = family("m", "gauge", "h", [({"name": 'a"b\\c\nd'}, 0.25), ({}, True), ({}, 12345678901.0)])
    assert page.splitlines()[2:] == [r'm{name="a\"b\\c\nd"} 0.25', "m 1", "m 12345678901"]


def test_a_page_can_be_read_back() -> None:
    assert snapshot_of(family("m", "gauge", "h", [({"a": "b c"}, 2)])) == {'m{a="b c"}': 2.0}
