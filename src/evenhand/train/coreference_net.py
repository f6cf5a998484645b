"""The coreference network, after Lee et al. 2017 with the coarse stage of Lee et al. 2018.

    x_t     = [frozen word vector, character CNN],  h_t = biLSTM over the sentence
    head    = sum_t softmax_t(a . h_t) x_t over the span
    g(i)    = [h_start, h_end, head, width]
    m(i)    = FFN(g(i)); the spans_per_token * T best spans of all widths are kept
    c(i, j) = g(i) W g(j); the `antecedents` best j < i of m(i) + m(j) + c(i, j) are kept
    s(i, j) = m(i) + m(j) + c(i, j) + FFN([g(i), g(j), g(i) * g(j), distance, speaker, genre])
    s(i, none) = 0;  loss = - log sum over right j of softmax_j s(i, j)

Differences, for speed: linear layers of g are computed per token where they can be (equal by
linearity), g(i) * g(j) on a projection of 128, an auxiliary log-loss on m, and two extra pair
features, equal text and equal last word, that small corpora cannot teach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

DISTANCES = (1, 2, 3, 4, 5, 8, 16, 32, 64)
PRIME = 1_000_003


@dataclass(frozen=True)
class Shape:
    """Sizes of the network; the published ones where Lee et al. 2017 give them."""

    dimensions: int
    width: int = 10
    hidden: int = 200
    feed: int = 150
    characters: int = 50
    feature: int = 20
    product: int = 128
    spans_per_token: float = 0.35
    antecedents: int = 40
    genres: tuple[str, ...] = ()


def build(torch: Any, shape: Shape) -> Any:
    """Untrained layers."""
    nn = torch.nn
    word = shape.dimensions + shape.characters
    state, f = 2 * shape.hidden, shape.feed
    span = 2 * state + word + shape.feature
    return nn.ModuleDict({
        "bytes": nn.Embedding(257, 16, padding_idx=0),
        "filters": nn.Conv1d(16, shape.characters, 3, padding=1),
        "lstm": nn.LSTM(word, shape.hidden, batch_first=True, bidirectional=True),
        "attention": nn.Linear(state, 1),
        "mention_first": nn.Linear(state, 2 * f),
        "mention_head": nn.Linear(word, f, bias=False),
        "mention_width": nn.Embedding(shape.width, f),
        "mention_genre": nn.Embedding(len(shape.genres) + 1, f),
        "mention_second": nn.Linear(f, f),
        "mention_score": nn.Linear(f, 1),
        "width": nn.Embedding(shape.width, shape.feature),
        "coarse": nn.Linear(span, 2 * shape.product),
        "pair_first": nn.Linear(span, 2 * f + shape.product),
        "pair_product": nn.Linear(shape.product, f, bias=False),
        "distance": nn.Embedding(len(DISTANCES) + 1, f),
        "far": nn.Embedding(len(DISTANCES) + 1, f),
        "speaker": nn.Embedding(3, f),
        "genre": nn.Embedding(len(shape.genres) + 1, f),
        "match": nn.Embedding(4, f),
        "pair_second": nn.Linear(f, f),
        "pair_score": nn.Linear(f, 1),
    })  # fmt: skip


def place(torch: Any, arrays: dict[str, Any], shape: Shape, device: str) -> dict[str, Any]:
    """A batch's arrays as tensors on the device (lengths stay), with the constants it needs."""
    out = {name: torch.from_numpy(a) for name, a in arrays.items()}
    out["edges"] = torch.tensor(DISTANCES)
    out["scale"] = torch.tensor([pow(PRIME, k + 1, 2**61) for k in range(shape.width)])
    return {name: t if name == "lengths" else t.to(device) for name, t in out.items()}


def forward(
    torch: Any, layers: Any, shape: Shape, batch: dict[str, Any], vectors: Any, drop: float
) -> dict[str, Any]:
    """Scores of a batch.

    Returns:
        `mention` [B, T, width] with `valid`, the kept spans `start`, `wide`, `kept` [B, k], their
        antecedents `candidate` [B, k, K] with `possible`, and `score` [B, k, K].
    """
    words, states = _tokens(torch, layers, batch, vectors, drop)
    mention, valid, weights = _mentions(torch, layers, shape, batch, words, states, drop)
    chosen = _prune(torch, shape, batch, mention, valid)
    start, wide, kept = chosen
    g = _spans(torch, layers, shape, (words, states, weights), start, wide)
    own = mention.flatten(1).gather(1, start * shape.width + wide)
    coarse = _coarse(torch, layers, shape, g, own, kept)
    rank = min(shape.antecedents, coarse.shape[-1])
    best, candidate = coarse.topk(rank, dim=-1)
    possible = best > -1e8
    fine = _fine(torch, layers, shape, batch, g, (chosen, candidate), drop)
    score = torch.where(possible, best + fine, torch.full_like(best, -1e9))
    return {
        "mention": mention,
        "valid": valid,
        "start": start,
        "wide": wide,
        "kept": kept,
        "candidate": candidate,
        "possible": possible,
        "score": score,
    }


def _tokens(
    torch: Any, layers: Any, batch: dict[str, Any], vectors: Any, drop: float
) -> tuple[Any, Any]:
    """Word representations and LSTM states, both [B, T, .]."""
    functional = torch.nn.functional
    raw = layers["filters"](layers["bytes"](batch["characters"]).transpose(1, 2))
    inside = (batch["characters"] > 0)[:, None]
    letters = torch.where(inside, functional.relu(raw), torch.zeros_like(raw)).amax(-1)
    types = torch.cat([vectors[batch["types"]], letters], -1)
    words = _rows(types, batch["sentences"])
    words = functional.dropout(words, 2.5 * drop, drop > 0)
    packed = torch.nn.utils.rnn.pack_padded_sequence(words, batch["lengths"], batch_first=True)
    states, _ = torch.nn.utils.rnn.pad_packed_sequence(
        layers["lstm"](packed)[0], batch_first=True, total_length=words.shape[1]
    )
    states = functional.dropout(states, drop, drop > 0)
    at = batch["at"]
    return _rows(words.flatten(0, 1), at), _rows(states.flatten(0, 1), at)


def _rows(values: Any, index: Any) -> Any:
    """values[index]; index_select has a far cheaper gradient on a GPU than indexing."""
    return values.index_select(0, index.flatten()).view(*index.shape, values.shape[-1])


def _windows(torch: Any, values: Any, width: int) -> Any:
    """[B, T, F] -> [B, T, width, F]: the tokens from t on; zeros beyond the end."""
    padded = torch.nn.functional.pad(values, (0, 0, 0, width - 1))
    return padded.unfold(1, width, 1).transpose(2, 3)


def _mentions(
    torch: Any,
    layers: Any,
    shape: Shape,
    batch: dict[str, Any],
    words: Any,
    states: Any,
    drop: float,
) -> tuple[Any, Any, Any]:
    """Mention scores of all spans of a sentence, which are valid, and head weights per token."""
    functional = torch.nn.functional
    weights = layers["attention"](states).clamp(-10, 10).exp()
    first, last = layers["mention_first"](states).chunk(2, -1)
    around = _windows(torch, weights, shape.width)
    heads = _windows(torch, weights * layers["mention_head"](words), shape.width)
    upto = torch.ones(shape.width, shape.width, device=words.device).tril()
    hidden = first[:, :, None] + _windows(torch, last, shape.width)
    hidden = (
        hidden + upto @ heads / (upto @ around).clamp_min(1e-9) + layers["mention_width"].weight
    )
    hidden = hidden + layers["mention_genre"](batch["genre"])[:, None, None]
    hidden = functional.dropout(functional.relu(hidden), drop, drop > 0)
    hidden = functional.dropout(functional.relu(layers["mention_second"](hidden)), drop, drop > 0)
    mention = layers["mention_score"](hidden)[..., 0]
    number = batch["sentence"][..., None].float() + 1
    inside = _windows(torch, number, shape.width)[..., 0]
    valid = (inside == number) & (number > 0)
    return mention, valid, weights


def _prune(
    torch: Any, shape: Shape, batch: dict[str, Any], mention: Any, valid: Any
) -> tuple[Any, Any, Any]:
    """The best spans of each row in the order of the text: start, width - 1, and which are real."""
    count = (batch["size"] * shape.spans_per_token).ceil().long().clamp_min(2)
    flat = torch.where(valid, mention, torch.full_like(mention, -1e9)).flatten(1).detach()
    most = min(max(2, math.ceil(valid.shape[1] * shape.spans_per_token)), flat.shape[1])
    value, index = flat.topk(most, dim=1)
    kept = (torch.arange(most, device=flat.device)[None] < count[:, None]) & (value > -1e8)
    index, order = torch.where(kept, index, torch.full_like(index, flat.shape[1])).sort(dim=1)
    kept = kept.gather(1, order)
    index = torch.where(kept, index, torch.zeros_like(index))
    return index // shape.width, index % shape.width, kept


def _pick(torch: Any, values: Any, index: Any) -> Any:
    """values [B, N, F] at index [B, ...] -> [B, ..., F]."""
    b, n = values.shape[:2]
    offset = (torch.arange(b, device=index.device) * n).view(b, *[1] * (index.dim() - 1))
    return _rows(values.flatten(0, 1), index + offset)


def _spans(
    torch: Any, layers: Any, shape: Shape, read: tuple[Any, Any, Any], start: Any, wide: Any
) -> Any:
    """g [B, k, .] of the kept spans, from words, states and weights of attention."""
    words, states, weights = read
    steps = torch.arange(shape.width, device=start.device)
    places = (start[..., None] + steps).clamp_max(states.shape[1] - 1)
    share = _pick(torch, weights, places)[..., 0]
    share = torch.where(steps <= wide[..., None], share, torch.zeros_like(share))
    share = share / share.sum(-1, keepdim=True)
    head = (_pick(torch, words, places) * share[..., None]).sum(2)
    ends = (start + wide).clamp_max(states.shape[1] - 1)
    parts = [_pick(torch, states, start), _pick(torch, states, ends), head, layers["width"](wide)]
    return torch.cat(parts, -1)


def _coarse(torch: Any, layers: Any, shape: Shape, g: Any, own: Any, kept: Any) -> Any:
    """m(i) + m(j) + c(i, j) [B, k, k]; -1e9 where j is not before i or either is not real."""
    left, right = layers["coarse"](g).chunk(2, -1)
    table = left @ right.transpose(1, 2) / shape.product**0.5
    table = table + own[:, :, None] + own[:, None, :]
    k = table.shape[-1]
    before = torch.ones(k, k, dtype=torch.bool, device=g.device).tril(-1)
    allowed = before & kept[:, :, None] & kept[:, None, :]
    return torch.where(allowed, table, torch.full_like(table, -1e9))


def _fine(
    torch: Any,
    layers: Any,
    shape: Shape,
    batch: dict[str, Any],
    g: Any,
    pairs: tuple[tuple[Any, Any, Any], Any],
    drop: float,
) -> Any:
    """The pair network's scores [B, k, K]."""
    chosen, candidate = pairs
    functional = torch.nn.functional
    f = shape.feed
    first, second, both = layers["pair_first"](g).split([f, f, shape.product], -1)
    theirs = _pick(torch, torch.cat([second, both], -1), candidate)
    hidden = first[:, :, None] + theirs[..., :f]
    hidden = hidden + layers["pair_product"](both[:, :, None] * theirs[..., f:])
    hidden = hidden + _features(torch, layers, shape, batch, chosen, candidate)
    hidden = functional.dropout(functional.relu(hidden), drop, drop > 0)
    hidden = functional.dropout(functional.relu(layers["pair_second"](hidden)), drop, drop > 0)
    return layers["pair_score"](hidden)[..., 0]


def _features(
    torch: Any,
    layers: Any,
    shape: Shape,
    batch: dict[str, Any],
    chosen: tuple[Any, Any, Any],
    candidate: Any,
) -> Any:
    """Embedded distance in mentions and in sentences, speaker, genre and equal text."""
    start, wide, _ = chosen
    edges = batch["edges"]

    def of(values: Any) -> tuple[Any, Any]:
        return values[:, :, None], values.gather(1, candidate.flatten(1)).view(candidate.shape)

    order = torch.arange(start.shape[1], device=start.device)[None].expand_as(start)
    mine, theirs = of(order)
    found = layers["distance"](torch.bucketize((mine - theirs).contiguous(), edges))
    line = batch["sentence"].gather(1, start)
    mine, theirs = of(line)
    found = found + layers["far"](torch.bucketize((mine - theirs).clamp_min(0), edges))
    mine, theirs = of(batch["speaker"].gather(1, start))
    known = (mine > 0) & (theirs > 0)
    found = found + layers["speaker"](torch.where(known, 1 + (mine == theirs).long(), 0))
    found = found + layers["genre"](batch["genre"])[:, None, None]
    whole, last = _texts(torch, shape, batch, start, wide)
    (a, b), (c, d) = of(whole), of(last)
    return found + layers["match"]((a == b).long() + 2 * (c == d).long())


def _texts(
    torch: Any, shape: Shape, batch: dict[str, Any], start: Any, wide: Any
) -> tuple[Any, Any]:
    """A number for the text of each span and one for its last word; equal text, equal number."""
    word = batch["lower"][batch["sentences"]].flatten()[batch["at"]]
    steps = torch.arange(shape.width, device=start.device)
    places = (start[..., None] + steps).clamp_max(word.shape[1] - 1)
    found = word.gather(1, places.flatten(1)).view(places.shape)
    coded = torch.where(steps <= wide[..., None], found * batch["scale"], 0)
    last = word.gather(1, (start + wide).clamp_max(word.shape[1] - 1))
    return coded.sum(-1), last


def loss(torch: Any, made: dict[str, Any], gold: Any) -> Any:
    """Marginal antecedent loss plus the mention loss, per document token in the batch."""
    width = gold.shape[-1]
    mine = gold.flatten(1).gather(1, made["start"] * width + made["wide"])
    mine = torch.where(made["kept"], mine, torch.zeros_like(mine))
    index = made["candidate"].flatten(1)
    theirs = mine.gather(1, index).view(made["candidate"].shape)
    right = (theirs == mine[..., None]) & (mine[..., None] > 0) & made["possible"]
    none = ~right.any(-1, keepdim=True)
    scores = torch.cat([torch.zeros_like(made["score"][..., :1]), made["score"]], -1)
    marked = torch.where(torch.cat([none, right], -1), scores, torch.full_like(scores, -1e9))
    each = scores.logsumexp(-1) - marked.logsumexp(-1)
    links = torch.where(made["kept"], each, torch.zeros_like(each)).sum()
    judged = made["valid"] & (gold >= 0)
    target = (gold > 0).to(made["mention"].dtype)
    mentions = torch.nn.functional.binary_cross_entropy_with_logits(
        made["mention"], target, reduction="none"
    )
    mentions = torch.where(judged, mentions, torch.zeros_like(mentions)).sum()
    tokens = made["valid"][..., 0].sum()
    return (links + 0.5 * mentions) / tokens
