"""The grid of embeddings: which vectors a study makes, in which order, from what.

original      trained on the whole corpus, as often as there are replicates
balancing     trained on a corpus from which affected lines are left out
attract_repel the first original, changed
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from evenhand.study.recipe import Recipe

ORIGINAL, BALANCING, ATTRACT_REPEL = "original", "balancing", "attract_repel"


@dataclass(frozen=True)
class Cell:
    """One embedding of the grid.

    Attributes:
        name: also its folder's name.
        algorithm: word2vec or fasttext.
        family: original, balancing or attract_repel.
        seed: of its training and of the systems built on it.
        base: the cell whose vectors it changes; empty when it is trained.
    """

    name: str
    algorithm: str
    family: str
    seed: int
    direction: str = ""
    share: float | None = None
    regularisation: float | None = None
    attract_margin: float | None = None
    repel_margin: float | None = None
    base: str = ""

    @property
    def point(self) -> str:
        """Replicates of the original are one point."""
        return f"{self.algorithm}-original" if self.family == ORIGINAL else self.name


def cells(recipe: Recipe) -> list[Cell]:
    """All embeddings of a study, bases before what is made from them."""
    found: list[Cell] = []
    for algorithm in recipe.training.algorithms:
        first = f"{algorithm}-original-1"
        for r in range(recipe.training.replicates):
            name = f"{algorithm}-original-{r + 1}"
            found.append(Cell(name, algorithm, ORIGINAL, recipe.seed + r))
        found += _balanced(recipe, algorithm)
        found += _pulled(recipe, algorithm, first)
    return found


def _balanced(recipe: Recipe, algorithm: str) -> Iterator[Cell]:
    grid = recipe.balancing
    if grid is None:
        return
    for direction, share in product(grid.directions, grid.shares):
        name = f"{algorithm}-balancing-{direction}-{share:g}"
        yield Cell(name, algorithm, BALANCING, recipe.seed, direction, share)


def _pulled(recipe: Recipe, algorithm: str, base: str) -> Iterator[Cell]:
    grid = recipe.attract_repel
    if grid is None:
        return
    sides = (grid.directions, grid.regularisations, grid.attract_margins, grid.repel_margins)
    for direction, reg, attract, repel in product(*sides):
        name = f"{algorithm}-attract-repel-{direction}-{reg:g}-{attract:g}-{repel:g}"
        yield Cell(
            name, algorithm, ATTRACT_REPEL, recipe.seed, direction, None, reg, attract, repel, base
        )
