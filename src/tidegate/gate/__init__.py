"""The deterministic merge: which tuples are late, which are ready, and how far readers may go."""

from tidegate.gate.admission import Appended
from tidegate.gate.gate import Gate, GateStatus, Joined

__all__ = ["Appended", "Gate", "GateStatus", "Joined"]
