"""The address of a dashboard: `8123`, `0.0.0.0:8123`, `[::1]:8123`; 0 is any free port."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.errors import OptionError

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class DashboardAddress:
    """A host and a port."""

    host: str = LOOPBACK
    port: int = 0

    @staticmethod
    def parse(text: str | int, where: str) -> DashboardAddress:
        """Parses PORT or HOST:PORT; OptionError for anything else."""
        host, colon, port = str(text).rpartition(":")
        whole = port.isascii() and port.isdigit() and int(port) <= 65_535
        bare = host if not host.startswith("[") else host.removeprefix("[").removesuffix("]")
        if not whole or (colon and not host) or (":" in host and bare == host):
            raise OptionError(
                where,
                "must be a port from 0 to 65535, or HOST:PORT",
                str(text),
                "Write 8123, or 0.0.0.0:8123 for all who can reach this host.",
            )
        return DashboardAddress(bare or LOOPBACK, int(port))

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"
