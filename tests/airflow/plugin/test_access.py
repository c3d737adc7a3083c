"""Every route needs a login and read access to its DAG, and lists show no more than that."""

import pytest

ROUTES = ["", "/spec", "/batches", "/doctor", "/lag", "/quarantine"]
ALL = ["/api/fleet", "/metrics", *(f"/api/pipelines/stranger_orders{route}" for route in ROUTES)]
HOSTILE = ["..", ".", "../secret", "%2e%2e", "..%2fsecret", "orders%00", "~", "a" * 5000]


@pytest.fixture(autouse=True)
def _pipelines(add_pipeline):
    for name in ("orders", "stranger_orders"):
        add_pipeline(name)


@pytest.mark.parametrize("path", ALL)
def test_nobody_sees_anything_without_a_login(log_in, path):
    assert log_in(role=None).get(f"/tidegate{path}").status_code == 401


@pytest.mark.parametrize("path", ALL)
def test_a_login_that_is_not_real_sees_nothing(log_in, path):
    client = log_in(role=None)
    answer = client.get(f"/tidegate{path}", headers={"Authorization": "Bearer forged"})
    assert answer.status_code in (401, 403)


@pytest.mark.parametrize("path", ALL)
def test_a_viewer_sees_everything(viewer, path):
    assert viewer.get(f"/tidegate{path}").status_code == 200


@pytest.mark.parametrize("route", ROUTES)
def test_a_dag_that_is_not_for_the_user_is_refused(stranger, route):
    assert stranger.get(f"/tidegate/api/pipelines/orders{route}").status_code == 403


@pytest.mark.parametrize("route", ROUTES)
def test_rows_and_findings_need_the_right_to_read_logs(stranger, route):
    status = stranger.get(f"/tidegate/api/pipelines/stranger_orders{route}").status_code
    assert status == (403 if route in ("/doctor", "/quarantine") else 200)


def test_lists_show_only_what_the_user_may_see(viewer, stranger):
    def names(client):
        page = client.get("/tidegate/api/fleet").json()
        listed = [one["pipeline"] for one in page["pipelines"]]
        assert page["total"] == len(listed)
        return listed

    assert names(viewer) == ["orders", "stranger_orders"]
    assert names(stranger) == ["stranger_orders"]
    metrics = stranger.get("/tidegate/metrics").text
    assert 'pipeline="stranger_orders"' in metrics
    assert 'pipeline="orders"' not in metrics


@pytest.mark.parametrize("path", ALL)
@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nothing_can_be_changed(log_in, path, method):
    client = log_in("ADMIN", "admin")
    assert getattr(client, method)(f"/tidegate{path}").status_code == 405


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_never_becomes_a_path(viewer, settings, name, route):
    secret = settings.pipelines.parent / "secret.yaml"
    secret.write_text("name: secret")
    answer = viewer.get(f"/tidegate/api/pipelines/{name}{route}")
    # Paths that the client or the router tidies up lead to Airflow's own page, or to nothing.
    assert answer.status_code in (404, 405) or "<!doctype html>" in answer.text.lower()
    assert "name: secret" not in answer.text


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json"])
def test_the_api_is_not_described_to_everybody(log_in, path):
    assert log_in(role=None).get(f"/tidegate{path}").status_code in (401, 404)


@pytest.mark.parametrize("path", ["../app.py", "%2e%2e/app.py", "..%2fapp.py", "/etc/passwd"])
def test_the_bundle_s_folder_is_all_that_is_served(log_in, path):
    answer = log_in(role=None).get(f"/tidegate/static/{path}")
    assert "build_app" not in answer.text
    assert "root:" not in answer.text
