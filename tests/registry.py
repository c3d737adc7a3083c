"""A schema registry for tests: Confluent's HTTP API, as far as a reader of schemas needs it.

No registry can be installed from a package index, so this stands in for one: the same paths, bodies and
error codes, over real HTTP.
"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote

_NO_SUBJECT = 40401


class Registry:
    """Keeps schemas by subject and version, and answers for them."""

    def __init__(self) -> None:
        self.subjects: dict[str, list[dict[str, Any]]] = {}
        self.authorizations: set[str | None] = set()
        self._count = 0
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.authorizations.add(self.headers.get("Authorization"))
                path, _, query = self.path.partition("?")
                status, body = registry.answer(
                    unquote(path).strip("/").split("/"), is_serialised="format=serialized" in query
                )
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where clients reach it."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def register(self, subject: str, schema: dict[str, Any] | str, **more: Any) -> int:
        """Add a version to a subject, and return the schema's id.

        `serialised` is the schema's compiled form, which clients of Protobuf may ask for.
        """
        self._count += 1
        text = schema if isinstance(schema, str) else json.dumps(schema)
        versions = self.subjects.setdefault(subject, [])
        version = {"subject": subject, "version": len(versions) + 1, "id": 100 + self._count}
        versions.append(version | {"schema": text} | more)
        return 100 + self._count

    def stop(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, parts: list[str], *, is_serialised: bool = False) -> tuple[int, Any]:
        """Answer /subjects/S/versions and /subjects/S/versions/N."""
        match parts:
            case ["subjects", subject, "versions"] if subject in self.subjects:
                return 200, list(range(1, len(self.subjects[subject]) + 1))
            case ["subjects", subject, "versions", version] if subject in self.subjects:
                index = -1 if version == "latest" else int(version) - 1
                found = dict(self.subjects[subject][index])
                serialised = found.pop("serialised", None)
                return 200, found | ({"schema": serialised} if is_serialised else {})
            case ["subjects", subject, *_]:
                message = f"Subject '{subject}' not found."
                return 404, {"error_code": _NO_SUBJECT, "message": message}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}
