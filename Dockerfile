# spectral-irt in a container: docker build -t spectral-irt . && docker run --rm -v "$PWD:/data" spectral-irt fit answers.csv -o results
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN python -m venv /opt/spectral-irt \
 && /opt/spectral-irt/bin/pip install --no-cache-dir ".[formats,database]"

FROM python:3.13-slim
COPY --from=build /opt/spectral-irt /opt/spectral-irt
ENV PATH=/opt/spectral-irt/bin:$PATH MPLCONFIGDIR=/tmp
# Files that it writes belong to whoever runs it: docker run --user "$(id -u):$(id -g)".
USER 1000
WORKDIR /data
ENTRYPOINT ["spectral-irt"]
CMD ["--help"]
