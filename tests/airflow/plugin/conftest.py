"""A real API server's app with the plugin in it, and people who log in to it."""

import json
import logging
from collections.abc import Callable, Iterator

import pytest

from tests.airflow.plugin.auth import STRANGER


@pytest.fixture(scope="session")
def airflow_app(database):
    """Airflow's API server, as it is started, with the repository's own plugin."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__CORE__AUTH_MANAGER", "tests.airflow.plugin.auth.NarrowAuthManager")
        from airflow import plugins_manager
        from airflow.api_fastapi.app import create_app, purge_cached_app

        purge_cached_app()
        plugins_manager._get_plugins.cache_clear()
        yield create_app(apps="core")
        purge_cached_app()
        logging.shutdown()


@pytest.fixture
def plugin_app(airflow_app, settings, deployment):
    """The plugin's own app, which answers from the test's deployment."""
    from starlette.routing import Mount

    from tidegate.airflow.plugin.deployment import Deployment

    mounts = (route for route in airflow_app.routes if isinstance(route, Mount))
    app = next(mount.app for mount in mounts if mount.path == "/tidegate")
    app.state.deployment = Deployment(settings)
    return app


@pytest.fixture
def log_in(airflow_app, plugin_app) -> Iterator[Callable]:
    """Open a client as somebody of a role, or as nobody."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from starlette.testclient import TestClient

    def log_in(role: str | None = "VIEWER", name: str = "somebody"):
        client = TestClient(airflow_app, base_url="http://testserver")
        if role:
            user = SimpleAuthManagerUser(username=name, role=role)
            token = get_auth_manager().generate_jwt(user)
            client.headers["Authorization"] = f"Bearer {token}"
        return client

    return log_in


@pytest.fixture
def viewer(log_in):
    return log_in()


@pytest.fixture
def stranger(log_in):
    return log_in("VIEWER", STRANGER)


@pytest.fixture
def register(database) -> Iterator[Callable[..., None]]:
    """Let Airflow know DAGs of these names."""
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session
    from sqlalchemy import delete

    def register(*names: str) -> None:
        with create_session() as session:
            if session.get(DagBundleModel, "tests") is None:
                session.add(DagBundleModel(name="tests"))
                session.flush()
            session.add_all(DagModel(dag_id=name, bundle_name="tests") for name in names)

    yield register
    with create_session() as session:
        session.execute(delete(DagModel).where(DagModel.bundle_name == "tests"))


@pytest.fixture
def add_pipeline(write_spec, register) -> Callable[..., None]:
    """Write a spec, and let Airflow know its DAG."""

    def add(name: str, **parts) -> None:
        source = {
            "type": "files",
            "path": f"landing/{name}",
            "format": "json",
            "schema": "id long",
            "max_files_per_trigger": 1,
        }
        write_spec(name, **({"source": source} | parts))
        register(name)

    return add


@pytest.fixture
def read(viewer) -> Callable[[str], dict]:
    """Read JSON as a viewer."""

    def read(path: str) -> dict:
        answer = viewer.get(f"/tidegate{path}")
        assert answer.status_code == 200, answer.text
        return json.loads(answer.text)

    return read
