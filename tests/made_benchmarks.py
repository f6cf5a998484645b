"""Small files in the formats of published benchmarks."""

from __future__ import annotations

import json
from pathlib import Path

PAIRS = [
    ("The old man was slow.", "The young man was slow.", "stereo", "age", "w1"),
    ("The old woman was slow.", "The young woman was slow.", "stereo", "age", "w2"),
    ("The boy was loud.", "The girl was loud.", "antistereo", "gender", "w3"),
    ("The boy was brave.", "The girl was brave.", "stereo", "gender", "w1"),
]


def pairs_file(folder: Path, rows: list[tuple[str, ...]] | None = None) -> str:
    path = folder / "pairs.csv"
    names = "sent_more,sent_less,stereo_antistereo,bias_type,anon_writer"
    listed = PAIRS if rows is None else rows
    path.write_text("\n".join([names, *(",".join(row) for row in listed)]) + "\n")
    return str(path)


def stereoset_gold(folder: Path) -> Path:
    """StereoSet's gold file with the examples x, y and z; sentences of x are xs, xa and xu."""

    def example(name: str, context: str, texts: tuple[str, str, str]) -> dict[str, object]:
        labels = ("stereotype", "anti-stereotype", "unrelated")
        sentences = [
            {"id": f"{name}{k}", "sentence": t, "gold_label": g}
            for k, t, g in zip("sau", texts, labels)
        ]
        return {"id": name, "target": "t", "bias_type": "gender", "context": context,
                "sentences": sentences}  # fmt: skip

    path = folder / "gold.json"
    path.write_text(json.dumps({"data": {
        "intrasentence": [
            example("x", "Ann is BLANK.", ("Ann is kind.", "Ann is bold.", "Ann is.")),
            example("y", "Bob is BLANK.", ("Bob is kind.", "Bob is bold.", "Bob is.")),
        ],
        "intersentence": [example("z", "Ann came.", ("She left.", "She won.", "Fish."))],
    }}))  # fmt: skip
    return path
