"""Word vectors for the metric tests, when they are there."""

from __future__ import annotations

import pytest

from evenhand.errors import ModelError
from evenhand.models.vector_files import VectorTable, open_vectors, resolve_vectors


@pytest.fixture(scope="session")
def glove() -> VectorTable:
    """The packaged GloVe vectors, or a skip that says how to get them."""
    try:
        return open_vectors(resolve_vectors("glove-6b-50d"))
    except ModelError as error:
        pytest.skip(str(error))
