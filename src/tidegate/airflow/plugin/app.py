"""The FastAPI app: every route needs a login, and none changes anything."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from tidegate.airflow.plugin.deployment import Deployment
from tidegate.airflow.plugin.routes import (
    batches,
    doctor,
    fleet,
    lag,
    metrics,
    pipeline,
    quarantine,
)
from tidegate.core.settings import Settings

STATIC = Path(__file__).parent / "static"
_ROUTES = (fleet, pipeline, batches, doctor, lag, quarantine, metrics)


def build_app(home: Path) -> FastAPI:
    """Build the app of a deployment."""
    app = FastAPI(
        title="tidegate",
        dependencies=[Depends(get_user)],
        # These would be open to everybody.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.deployment = Deployment(Settings.from_environment(home))
    app.state.deployment.warm_up()
    for module in _ROUTES:
        app.include_router(module.router)
    # Open to everybody: it is the same code for all, and holds nothing of the deployment.
    app.mount("/static", _Bundle(directory=STATIC))
    return app


class _Bundle(StaticFiles):
    """The browser's code, asked for anew at each load, so that an upgrade is seen at once."""

    def file_response(self, full_path: os.PathLike[str] | str, *rest: Any, **more: Any) -> Response:
        response = super().file_response(full_path, *rest, **more)
        response.headers["Cache-Control"] = "no-cache"
        return response
