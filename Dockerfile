# One image for every Airflow and Spark service of docker-compose.yaml.
# What changes rarely comes first, so that an edited spec costs one small layer.

FROM python:3.11.15-slim-bookworm AS base
# Spark 4.2 needs Java 17 or newer, and 17 is what Debian bookworm has. Its set-up links manual pages
# and fails without their folder, which slim images lack.
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*
ENV PATH=/opt/venv/bin:$PATH


FROM base AS packages
WORKDIR /build
COPY .uv-version ./
RUN pip install --no-cache-dir "uv==$(cat .uv-version)"
# Bytecode is compiled here, because the user that runs the image cannot write it.
ENV UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_PYTHON_DOWNLOADS=never
COPY requirements.txt ./
RUN --mount=type=cache,target=/root/.cache/uv \
    uv venv --python /usr/local/bin/python3.11 /opt/venv \
    && uv pip sync --python /opt/venv/bin/python --require-hashes requirements.txt


# pyspark ships Apache Ivy, so the JARs need no other tool, and none is fetched at run time.
FROM packages AS jars
COPY jobs/ivy.xml jobs/jars.default.sha256 ./
RUN --mount=type=cache,target=/root/.ivy2 \
    java -jar /opt/venv/lib/python3.11/site-packages/pyspark/jars/ivy-*.jar \
        -ivy ivy.xml -confs default -retrieve '/opt/tidegate/jars/[artifact]-[revision].[ext]' \
    && cd /opt/tidegate/jars \
    && sha256sum --strict --check /build/jars.default.sha256


FROM packages AS wheel
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN --mount=type=cache,target=/root/.cache/uv \
    uv build --wheel --out-dir /dist .


FROM base
# Code and packages stay root's: what runs here cannot change them. The folders below are mount
# points, and a new volume takes its owner from the folder it covers.
RUN groupadd --gid 50000 tidegate \
    && useradd --uid 50000 --gid 50000 --create-home --shell /usr/sbin/nologin tidegate \
    && install --directory --owner=tidegate --group=tidegate \
        /opt/airflow /opt/airflow/auth /opt/airflow/logs /opt/spark/work \
        /opt/tidegate/var/data /opt/tidegate/var/state
ENV AIRFLOW_HOME=/opt/airflow \
    TIDEGATE_HOME=/opt/tidegate \
    PYSPARK_PYTHON=/opt/venv/bin/python \
    PYTHONUNBUFFERED=1
COPY --from=packages /opt/venv /opt/venv
COPY --from=jars /opt/tidegate/jars /opt/tidegate/jars
RUN --mount=type=bind,from=wheel,source=/dist,target=/dist \
    /usr/local/bin/python3.11 -m pip --python /opt/venv/bin/python \
        install --no-cache-dir --no-deps --no-index /dist/*.whl
COPY demo /opt/tidegate/demo
COPY jobs /opt/tidegate/jobs
COPY dags /opt/tidegate/dags
COPY plugins /opt/tidegate/plugins
COPY pipelines /opt/tidegate/pipelines
COPY plugins /opt/tidegate/plugins
USER tidegate
# A driver makes its spark-warehouse folder where it is started, so that must be writable.
WORKDIR /opt/airflow
