# docker build -t evenhand .
# docker run --rm -v "$PWD:/work" evenhand audit smollm2-135m --out runs/first
FROM python:3.13-slim

# The build for CPUs. For a GPU: --build-arg TORCH=https://download.pytorch.org/whl/cu128
ARG TORCH=https://download.pytorch.org/whl/cpu
RUN pip install --no-cache-dir torch --index-url "$TORCH"
COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
COPY recipes /src/recipes
RUN pip install --no-cache-dir '/src[hf,report,web,endpoint,sign]' && rm -rf /src

# Not root: what is written into a mounted folder belongs to somebody.
RUN useradd --create-home evenhand && mkdir /work && chown evenhand /work
USER evenhand
WORKDIR /work
ENV EVENHAND_CACHE=/home/evenhand/cache
ENTRYPOINT ["evenhand"]
CMD ["--help"]
