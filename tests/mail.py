"""A mail server that keeps what it is sent."""

from __future__ import annotations

import json
import socket
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller


class MailServer:
    """A real SMTP server on loopback, started and stopped as a test asks."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.refuses = False
        self._controller = Controller(self, hostname="127.0.0.1", port=_find_port())

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: ARG002, N802
        """Take a mail, or refuse it."""
        if self.refuses:
            return "451 not now"
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
        return "250 OK"

    def start(self) -> None:
        """Listen on a port that is free."""
        self._controller.start()

    def stop(self) -> None:
        """Stop listening."""
        self._controller.stop()

    @property
    def connection(self) -> str:
        """The server, as Airflow's environment spells a connection."""
        extra = {"from_email": "tidegate@example.com", "disable_ssl": True, "disable_tls": True}
        place = {"host": self._controller.hostname, "port": self._controller.port}
        return json.dumps({"conn_type": "smtp", **place, "extra": extra})

    @property
    def subjects(self) -> list[str]:
        """What the mails are about, in their order."""
        return [str(mail["Subject"]) for mail in self.mails]


def _find_port() -> int:
    # The controller connects to its own port by number, so that 0 is none for it.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
