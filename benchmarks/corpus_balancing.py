"""Labelling a corpus once against the published way of balancing: twenty passes over the text.

    python benchmarks/corpus_balancing.py [--megabytes 1024] [--slice 32] [--text FILE ...]

The text is real prose, tokenised and repeated to the size asked. The old way (written again from
its description: every line split and searched set by set, twice, for each of 20 samples, the lines
held in memory) is timed for two samples on a slice and scaled to twenty samples of the whole, in
processor time. Both ways must keep the same lines of the slice.
Results: benchmarks/results/corpus_balancing.json
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
import resource
import tempfile
import time
from pathlib import Path

from evenhand.corpora import balanced, choose_sets, label_corpus, open_corpus, plan, text_tokens
from evenhand.corpora.balancing import PUBLISHED_SEED

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("EVENHAND_SHARED", HERE.parents[1] / "shared"))
TEXTS = ("boolq_wikipedia_passages.txt.xz", "quac_wikipedia_passages.txt.xz")
MB = 1 << 20


def made_corpus(folder: Path, megabytes: int, texts: list[Path]) -> Path:
    """One file of the size asked, tokens between spaces, a paragraph cut into short lines."""
    lines = []
    for path in texts:
        with lzma.open(path, "rt", encoding="utf-8") as file:
            for paragraph in file:
                for sentence in paragraph.split(". "):
                    lines.append(" ".join(text_tokens(sentence.lower())))
    block = ("\n".join(line for line in lines if line) + "\n").encode()
    out = folder / "corpus.txt"
    with open(out, "wb") as file:
        for _ in range(megabytes * MB // len(block) + 1):
            file.write(block)
        file.truncate(megabytes * MB)
    return out


def old_way(path: Path, sets: list[list[str]], direction: str, share: float) -> list[str]:
    """One sample as the released program made it: all lines in memory, searched twice."""
    lowered = [[w.lower().split() for w in s] for s in sets]
    words = [({w[0] for w in s if len(w) == 1}, [w for w in s if len(w) > 1]) for s in lowered]

    def holds(tokens: list[str], single: set[str], phrases: list[list[str]]) -> bool:
        if any(token in single for token in tokens):
            return True
        return any(
            tokens[i : i + len(w)] == w for w in phrases for i in range(len(tokens) - len(w) + 1)
        )

    def affected(line: str) -> bool:
        tokens = line.split()
        t1, t2, a1, a2 = (holds(tokens, *s) for s in words)
        return (t1 and a1) or (t2 and a2) if direction == "reduce" else (t1 and a2) or (t2 and a1)

    random.seed(PUBLISHED_SEED)
    with open(path, encoding="utf-8", newline="\n") as file:
        held = file.readlines()
    counted = sum(affected(line) for line in held)  # the statistics pass
    kept = [line[:-1] for line in held if not affected(line) or random.random() < share]
    assert len(held) - len(kept) <= counted
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--slice", type=int, default=32)
    parser.add_argument("--text", type=Path, nargs="*")
    options = parser.parse_args()
    texts = options.text or [SHARED / "data" / "text" / name for name in TEXTS]
    test = choose_sets("kato_winobias")
    sets = [list(s) for s in (test.x, test.y, test.a, test.b)]
    with tempfile.TemporaryDirectory() as name:
        path = made_corpus(Path(name), options.megabytes, texts)
        corpus = open_corpus(path)
        begun = time.perf_counter()
        size = sum(len(block) for _, block in corpus.blocks())
        read = time.perf_counter() - begun
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begun, spent = time.perf_counter(), time.process_time()
        labels = label_corpus(corpus, test)
        labelled, cpu = time.perf_counter() - begun, time.process_time() - spent
        samples = plan(labels)
        planned = time.process_time() - spent - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begun = time.perf_counter()
        kept = sum(1 for _ in balanced(labels, "reduce", 0.5).lines())
        viewed = time.perf_counter() - begun
        small = Path(name) / "slice.txt"
        whole = path.read_bytes()[: options.slice * MB]
        small.write_bytes(whole[: whole.rfind(b"\n") + 1])
        found = label_corpus(open_corpus(small), test)
        times = []
        for direction in ("reduce", "increase"):
            view = balanced(found, direction, 0.3, seed=PUBLISHED_SEED, as_published=True)
            spent = time.process_time()
            old = old_way(small, sets, direction, 0.3)
            times.append(time.process_time() - spent)
            assert old == list(view.lines()), "the two ways keep different lines"
    scaled = min(times) * 20 * options.megabytes / options.slice
    result = {
        "megabytes": round(size / MB), "lines": len(labels), "counts": labels.counts(),
        "read_only_mb_s": round(size / MB / read), "label_s": round(labelled, 2),
        "label_mb_s": round(size / MB / labelled), "label_cpu_mb_s": round(size / MB / cpu),
        "twenty_sample_sizes_cpu_s": round(planned, 2), "samples": len(samples),
        "view_mb_s": round(size / MB / viewed), "view_lines": kept,
        "memory_before_mib": before >> 10, "memory_peak_mib": peak >> 10,
        "old_way_slice_mb": options.slice, "old_way_one_sample_cpu_s": [round(t, 1) for t in times],
        "old_way_twenty_samples_whole_cpu_s_extrapolated": round(scaled),
        "times_faster_cpu": round(scaled / (cpu + planned)),
        "same_lines_kept": True,
    }  # fmt: skip
    (HERE / "results").mkdir(exist_ok=True)
    text = json.dumps(result, indent=1) + "\n"
    (HERE / "results" / "corpus_balancing.json").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
