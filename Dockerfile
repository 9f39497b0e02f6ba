# The gateway in a container: docs/containers.md says how to run it.
#   docker build -t hermes-gateway .
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
# Platforms and stores that need a package of their own: see [project.optional-dependencies] in pyproject.toml.
ARG EXTRAS=discord,slack,postgres
WORKDIR /src
COPY requirements requirements
# The versions that were tested, as wheels: no compiler is needed, here or later.
RUN python3 -m venv /opt/hermes \
    && /opt/hermes/bin/python -m pip install --no-cache-dir --no-deps --only-binary :all: -r requirements/core.txt
COPY pyproject.toml README.md LICENSE ./
COPY bridge bridge
COPY src src
RUN /opt/hermes/bin/python -m pip install --no-cache-dir --prefer-binary -c requirements/core.txt ".[${EXTRAS}]" \
    # The C library finds the time zones of TZ here, whatever the base holds.
    && ln -s "$(/opt/hermes/bin/python -c 'import os, tzdata; print(os.path.dirname(tzdata.__file__))')/zoneinfo" \
        /opt/hermes/zoneinfo
COPY docker/entrypoint /opt/hermes/bin/hermes

FROM ${BASE}
# Programs for the agent, for example PACKAGES="git ripgrep openssh-client".
ARG PACKAGES=
RUN if [ -n "${PACKAGES}" ]; then \
        apt-get update && apt-get install -y --no-install-recommends ${PACKAGES} && rm -rf /var/lib/apt/lists/*; \
    fi \
    && groupadd --gid 1000 hermes \
    && useradd --uid 1000 --gid 1000 --home-dir /opt/data/agent-home --no-create-home --shell /bin/bash hermes \
    && mkdir /opt/data \
    && ln -s /opt/hermes/bin/hermes /usr/local/bin/hermes \
    && ln -s /opt/hermes/bin/hermes /usr/local/bin/hermes-gateway
COPY --from=build /opt/hermes /opt/hermes
ENV HERMES_HOME=/opt/data TZDIR=/opt/hermes/zoneinfo LANG=C.UTF-8
VOLUME /opt/data
WORKDIR /opt/data
EXPOSE 8642
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=60s --timeout=20s --start-period=60s CMD ["hermes", "gateway", "status"]
ENTRYPOINT ["hermes"]
CMD ["gateway", "run"]
