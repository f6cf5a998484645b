"""A run's results in a model repository of the Hugging Face Hub.

    README.md                    the card: a section on bias, and the results in its header
    .eval_results/evenhand.yaml  the Hub's layout of evaluation results, one entry per finding
    evenhand/findings.json       all findings, with intervals and methods

An existing card keeps everything that is not evenhand's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evenhand.errors import ModelError, SpecError, need
from evenhand.exports import Files, write
from evenhand.exports.cards import SOURCE, card, index, yaml
from evenhand.exports.common import finished_at, safe, version
from evenhand.runs.record import Run
from evenhand.runs.wording import chance, number

CARD, RESULTS, FINDINGS = "README.md", ".eval_results/evenhand.yaml", "evenhand/findings.json"
BEGINS, ENDS = "<!-- evenhand: begin -->", "<!-- evenhand: end -->"
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_SECTION = re.compile(rf"\n*{re.escape(BEGINS)}.*?{re.escape(ENDS)}\n*", re.DOTALL)


@dataclass(frozen=True)
class Pushed:
    """What was, or would be, uploaded.

    Attributes:
        files: by their path in the repository.
        url: the commit or pull request; "" where nothing was uploaded.
    """

    files: Files
    url: str = ""


def files_of(run: Run, existing: str = "") -> Files:
    """The files of a run, the card merged into the one that exists.

    Raises:
        ModelError: the existing card has a header that cannot be read.
    """
    return {
        CARD: merged(run, existing).encode("utf-8", "backslashreplace"),
        RESULTS: yaml(entries(run)).encode(),
        FINDINGS: run.checked(run.folder / "findings.json").read_bytes(),
    }


def entries(run: Run) -> list[dict[str, Any]]:
    """Findings that count, in the Hub's layout of evaluation results."""
    hub: Any = _hub()
    date = datetime.fromtimestamp(finished_at(run), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = []
    for f in run.findings:
        if not f.counts or f.value != f.value:
            continue
        probe, _, place = safe(f.id, 300).partition("/")
        notes = (
            f"{f.metric}, ideal {number(f.ideal)}; {100 * f.level:.0f} % interval {number(f.low)} "
            f"to {number(f.high)}, q {chance(f.q)}, n {f.n:,}"
        )
        told.append(
            hub.EvalResultEntry(
                dataset_id=f"evenhand/{probe}",
                task_id=place or probe,
                value=float(f.value),
                date=date,
                source_url=SOURCE,
                source_name=f"evenhand {version(run)}",
                notes=safe(notes, 400),
            )
        )
    found: list[dict[str, Any]] = hub.eval_result_entries_to_yaml(told)
    return found


def merged(run: Run, existing: str = "") -> str:
    """The card with our results and our section, in the place of those of an earlier run."""
    hub: Any = _hub()
    syntax: Any = need("yaml", extra="hf", what="the header of a card")
    made = index(run)
    name, ours = hub.repocard_data.model_index_to_eval_results(made["model-index"])
    try:
        whole = hub.ModelCard(
            existing if existing.startswith("---") else f"---\n{{}}\n---\n{existing}"
        )
        theirs = [r for r in whole.data.eval_results or [] if not _is_ours(r)]
    except (ValueError, KeyError, TypeError, syntax.YAMLError) as error:
        raise ModelError(
            f"{CARD}: its header cannot be read ({str(error).splitlines()[0]}). Repair the YAML "
            f"between the two lines of ---."
        ) from error
    whole.data.model_name = whole.data.get("model_name") or name
    whole.data.eval_results = [*theirs, *ours]
    whole.data.tags = list(dict.fromkeys([*(whole.data.get("tags") or []), *made["tags"]]))
    body = _SECTION.sub("\n\n", whole.text).strip("\n")
    whole.text = f"\n{body}\n\n{BEGINS}\n{card(run)}{ENDS}\n".replace("\n\n\n", "\n\n")
    return str(whole)


def _is_ours(result: Any) -> bool:
    return str(result.dataset_type).startswith("evenhand/")


def push(
    run: Run, to: str, *, folder: Path | None = None, existing: str | None = None, pr: bool = False
) -> Pushed:
    """Upload a run's card and results, or write them as the repository would hold them.

    Args:
        run: a finished run.
        to: OWNER/NAME of the repository.
        folder: write there and upload nothing; nobody is asked then.
        existing: the card to merge into, instead of the repository's.
        pr: open a pull request instead of a commit on main.

    Raises:
        SpecError: `to` is not the name of a repository.
        ModelError: there is no such repository, or the Hub refuses.
    """
    from evenhand.audit.gate import finished

    if not _REPOSITORY.fullmatch(to):
        raise SpecError(f"push --to {to!r}: expected the name of a repository, OWNER/NAME.")
    run = finished(run)
    if folder is not None:
        files = files_of(run, existing or "")
        write(files, folder)
        return Pushed(files)
    hub: Any = _hub()
    try:
        files = files_of(run, _card_of(hub, to) if existing is None else existing)
        made = hub.HfApi().create_commit(
            to,
            [hub.CommitOperationAdd(name, raw) for name, raw in files.items()],
            commit_message=f"Results of evenhand {version(run)}",
            create_pr=pr,
        )
    except (hub.errors.HfHubHTTPError, OSError) as error:
        raise ModelError(
            f"push --to {to}: the Hub refuses ({str(error).splitlines()[0]:.200}). Check the name, "
            f"and log in with: hf auth login. See what would be uploaded with: --dry-run DIR"
        ) from error
    return Pushed(files, str(made.pr_url or made.commit_url))


def _card_of(hub: Any, to: str) -> str:
    """The card of a repository; "" where it has none."""
    try:
        return Path(hub.hf_hub_download(to, CARD)).read_text(encoding="utf-8")
    except hub.errors.EntryNotFoundError:
        return ""


def _hub() -> Any:
    found: Any = need("huggingface_hub", extra="hf", what="cards and results of the Hub")
    import huggingface_hub.errors
    import huggingface_hub.repocard_data  # noqa: F401

    return found
