"""How to reach a database: its options as libpq, PostgreSQL's own client, spells them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tidegate.core.errors import ConnectionSpecError

_ALIASES = {"login": "user", "username": "user", "database": "dbname", "schema": "dbname"}
_KNOWN = frozenset(
    {
        "application_name",
        "channel_binding",
        "connect_timeout",
        "dbname",
        "gssencmode",
        "host",
        "hostaddr",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "krbsrvname",
        "options",
        "passfile",
        "password",
        "port",
        "ssl_max_protocol_version",
        "ssl_min_protocol_version",
        "sslcert",
        "sslcrl",
        "sslkey",
        "sslmode",
        "sslpassword",
        "sslrootcert",
        "target_session_attrs",
        "tcp_user_timeout",
        "user",
    }
)
# Airflow's connections may have it; it is for its own hooks.
_NEEDLESS = frozenset({"cursor"})
_NUMBERS = ("connect_timeout", "port")
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_DEFAULTS = {"application_name": "tidegate", "connect_timeout": "10"}


@dataclass(frozen=True)
class DatabaseConnection:
    """How to reach a PostgreSQL database."""

    name: str
    options: Mapping[str, str] = field(repr=False)

    @classmethod
    def from_options(cls, name: str, given: Mapping[str, str]) -> DatabaseConnection:
        """Check a connection's options; all mistakes at once, no value told."""
        options = {_ALIASES.get(key, key): value for key, value in given.items()}
        problems = list(_find_problems(options))
        if problems:
            raise ConnectionSpecError(
                f"The connection {name!r} cannot be used for a database: {'; '.join(problems)}.",
                remedy="Correct it in Airflow or in the environment.",
            )
        return cls(name, {key: options[key] for key in options if key not in _NEEDLESS})

    def to_libpq(self) -> dict[str, str]:
        """Spell it for PostgreSQL's client."""
        return _DEFAULTS | dict(self.options)


def _find_problems(options: Mapping[str, str]) -> Iterator[str]:
    if "bootstrap.servers" in options:
        yield "it has bootstrap.servers, so its type is not postgres"
        return
    missing = [key for key in ("host", "dbname") if not options.get(key)]
    if missing:
        yield f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    unknown = sorted(options.keys() - _KNOWN - _NEEDLESS)
    if unknown:
        yield f"it has {', '.join(unknown)}, and allowed are {', '.join(sorted(_KNOWN))}"
    # Several hosts may be named, each with a port of its own.
    no_numbers = [
        key for key in _NUMBERS if key in options and not re.fullmatch(r"\d+(,\d+)*", options[key])
    ]
    if no_numbers:
        yield f"{' and '.join(no_numbers)} must be a number"
    if options.get("sslmode", "disable") not in _SSL_MODES:
        yield f"sslmode must be one of {', '.join(_SSL_MODES)}"
