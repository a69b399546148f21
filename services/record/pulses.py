"""Publishes what agents do within a second, without a flush: the tail of the spool is read."""

import logging
from collections.abc import Callable, Sequence
from threading import Event
from typing import Final

from herdbook.domain.errors import HerdbookError
from herdbook.domain.record.pulses import Pulse, pulse_of
from herdbook.ports.world.spool import SpoolTail

_LOG = logging.getLogger(__name__)

INTERVAL: Final = 0.25
"""Seconds between two looks at the spool: a hook only appends to it, and wakes nobody."""

Publish = Callable[[Sequence[Pulse]], None]


def take_pulses(tail: SpoolTail) -> list[Pulse]:
    """The pulses since the last call, in the order in which the hooks told them."""
    found = (pulse_of(event, tool) for event, tool in tail.take())
    return [each for each in found if each is not None]


def publish_pulses(
    tail: SpoolTail, publish: Publish, stop: Event, *, interval: float = INTERVAL
) -> None:
    """Call `publish` with every few pulses until `stop` is set; for a thread of a server.

    One reader serves all subscribers of a server. A spool that cannot be read for a while is no
    error: it is looked at again.
    """
    while not stop.wait(interval):
        try:
            pulses = take_pulses(tail)
        except HerdbookError as error:
            _LOG.debug("the spool cannot be read for now: %s", error)
            continue
        if pulses:
            publish(pulses)
