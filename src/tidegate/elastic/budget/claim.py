"""How a query came by its instances: by its policy, or by hand. It decides what others may take."""

from __future__ import annotations

from typing import Protocol

from tidegate.elastic.fixed import Fixed
from tidegate.elastic.policy import Policy


class Claim(Protocol):
    """What a query may be sure of, and what it wants, by who asks for its instances.

    Pure numbers: `least` is what a query cannot do without, `wanted` what it wanted until now.
    """

    def sure(self, least: int, wanted: int) -> int:
        """How many instances nobody takes from it."""

    def after_said(self, wanted: int, said: int) -> int:
        """What it wants after a policy has said what it wants."""

    def after_reserved(self, wanted: int, following: int) -> int:
        """What it wants after so many were kept for its next batch."""

    def after_turned(self, wanted: int, following: int, room: int) -> int:
        """What it wants from the moment of this claim on, where others leave it `room`."""


class PolicyClaim:
    """A policy asks: others may take all but what the query cannot do without."""

    def sure(self, least: int, wanted: int) -> int:
        return least

    def after_said(self, wanted: int, said: int) -> int:
        return said

    def after_reserved(self, wanted: int, following: int) -> int:
        return wanted

    def after_turned(self, wanted: int, following: int, room: int) -> int:
        return wanted


class HandClaim:
    """Somebody asks by hand: the query wants what it has, and nobody takes of that.

    Only what others cannot do without it gives back, at the moment of this claim: one that has
    joined and found nothing left would wait for it without end.
    """

    def sure(self, least: int, wanted: int) -> int:
        return wanted

    def after_said(self, wanted: int, said: int) -> int:
        return wanted

    def after_reserved(self, wanted: int, following: int) -> int:
        return following

    def after_turned(self, wanted: int, following: int, room: int) -> int:
        return min(following, room)


BY_POLICY, BY_HAND = PolicyClaim(), HandClaim()


def claim_of(policy: Policy) -> Claim:
    """That of a query with this policy; `fixed` leaves all to be asked for by hand."""
    return BY_HAND if isinstance(policy, Fixed) else BY_POLICY
