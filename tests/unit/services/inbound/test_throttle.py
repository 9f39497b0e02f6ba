"""What is remembered of people and chats stays within its bounds."""

from __future__ import annotations

from hermes.services.inbound.throttle import Recent


def test_an_entry_that_is_put_again_is_kept_and_the_oldest_goes() -> None:
    people: Recent[str, int] = Recent(most=3)
    for number, name in enumerate(("ana", "ben", "cleo", "ana", "dan")):
        people.put(name, number)
    assert [name in people for name in ("ana", "ben", "cleo", "dan")] == [True, False, True, True]
    assert (people["ana"], len(people)) == (3, 3)
