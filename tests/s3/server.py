"""An S3 server of this host over a folder, for tests: versitygw, which `make s3-server` builds."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

from tests.secrets.planted import PLANTED

BUCKET = "bucket"
KEYS = {"AWS_ACCESS_KEY_ID": "tidegate", "AWS_SECRET_ACCESS_KEY": PLANTED["s3"].value}
TOOL = Path(__file__).parents[2] / "tools" / "s3_server.sh"


class Server:
    """A server on a port of its own, which can be killed and started again.

    `folder` has the objects of its bucket as files.
    """

    def __init__(self, place: Path) -> None:
        built = subprocess.run([TOOL], capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr
        self.folder = place / "data" / BUCKET
        self.folder.mkdir(parents=True)
        (place / "sidecar").mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        back_end = ["posix", "--sidecar", str(place / "sidecar"), str(self.folder.parent)]
        self._command = [built.stdout.strip(), "--port", self.address, "--quiet", *back_end]
        self._log = (place / "log").open("wb")
        self.start()

    def start(self) -> None:
        """Start it, also once more, over what it had."""
        own = {
            "ROOT_ACCESS_KEY": KEYS["AWS_ACCESS_KEY_ID"],
            "ROOT_SECRET_KEY": KEYS["AWS_SECRET_ACCESS_KEY"],
        }
        self._process = subprocess.Popen(
            self._command,
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._wait(Path(self._log.name))

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def uri(self, path: str) -> str:
        """A folder of the bucket, as pyarrow would be told."""
        return f"s3://{BUCKET}/{path}?scheme=http&endpoint_override={self.address}"

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(60)
        self._log.close()

    def _wait(self, log: Path) -> None:
        host, port = self.address.split(":")
        for _ in range(600):
            assert self._process.poll() is None, log.read_text()
            try:
                socket.create_connection((host, int(port)), 1).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise AssertionError(f"no answer of the S3 server: {log.read_text()}")
