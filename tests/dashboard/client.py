"""Asks a page's server as a browser or a script would."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit


class Client:
    """One that asks the server at a URL; each request is a connection."""

    def __init__(self, url: str) -> None:
        self._place = urlsplit(url).netloc

    def get(self, path: str, **headers: str) -> tuple[int, Any]:
        return self._asked("GET", path, None, headers)

    def post(self, path: str, body: object, **headers: str) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self._asked("POST", path, data, {"Content-Type": "application/json", **headers})

    def control(self, token: str, **question: Any) -> tuple[int, Any]:
        return self.post("/api/control", question, Authorization=f"Bearer {token}")

    def headers(self, path: str) -> dict[str, str]:
        connection = http.client.HTTPConnection(self._place, timeout=30)
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return dict(answer.getheaders())

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        """Server-sent events as they come, with their kinds."""
        connection = http.client.HTTPConnection(self._place, timeout=30)
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.getheader("Content-Type") == "text/event-stream"
        kind = ""
        for raw in answer:
            line = raw.decode().rstrip("\n")
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                yield kind, json.loads(line[6:])
        connection.close()

    def _asked(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self._place, timeout=30)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        kind = answer.getheader("Content-Type", "")
        return answer.status, json.loads(text) if kind == "application/json" else text
