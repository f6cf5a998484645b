"""`evenhand mitigate`: fit, judge and save a mitigation of a causal language model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli import output
from evenhand.cli.options import Json


def mitigate(
    model: Annotated[
        str, typer.Argument(help="A model of any kind, or vectors (evenhand ls models).")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the mitigation.")],
    method: Annotated[
        str,
        typer.Option(
            help="causal: inlp, leace, a-inlp, a-subspace (several with commas: the best is kept); "
            "encoders: inlp, leace, sentence; "
            "masked: cda, dropout; masked and causal: reweighting; vectors: attract-repel, "
            "hard-projection, soft-projection."
        ),
    ] = "a-inlp",
    axis: Annotated[
        str, typer.Option(help="gender, religion; encoders also race, names:A,B or a file.")
    ] = "gender",
    alpha: Annotated[
        str | None, typer.Option(help="0 to 1, or learned; default: chosen by the limit below.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Directions to remove; default: chosen by the limit.")
    ] = None,
    max_perplexity_increase: Annotated[
        str, typer.Option(help="How much perplexity may rise, e.g. 2%.")
    ] = "2%",
    classifier: Annotated[
        str, typer.Option(help="What a round removes: pairs, lsq, svc.")
    ] = "pairs",
    texts: Annotated[
        Path | None,
        typer.Option(help="Plain text, one passage a line; default: the model writes some."),
    ] = None,
    mixture: Annotated[str, typer.Option(help="probability (Eq. 7) or hidden.")] = "probability",
    first_token_only: Annotated[bool, typer.Option(help="Edit the first token only.")] = False,
    no_offset: Annotated[
        bool, typer.Option(help="Leave the mean shift out (for --export).")
    ] = False,
    as_published: Annotated[bool, typer.Option(help="Follow the released code.")] = False,
    export: Annotated[
        Path | None, typer.Option(help="Also save plain weights with the edit folded in.")
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(help="Word vectors for the bias-sensitive tokens; default: the model's own."),
    ] = None,
    tokens: Annotated[int, typer.Option(min=2, help="How many bias-sensitive tokens.")] = 1_000,
    openings: Annotated[int, typer.Option(min=20, help="Sets of openings to fit on.")] = 240,
    stereoset: Annotated[
        Path | None, typer.Option(help="StereoSet's gold file: add it to the trade-off.")
    ] = None,
    stereoset_examples: Annotated[
        int, typer.Option(min=2, help="Examples to draw of each of its splits.")
    ] = 120,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every draw.")] = 0,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16, float16.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1.")] = None,
    direction: Annotated[str, typer.Option(help="Vectors: reduce or increase.")] = "reduce",
    sets: Annotated[
        str | None, typer.Option(help="Vectors: a test or a file of word lists; default: by axis.")
    ] = None,
    neighbours: Annotated[
        int, typer.Option(help="Vectors: nearest words added to each word of the sets.")
    ] = 10,
    layers: Annotated[str, typer.Option(help="Encoders: last, layer.3, pooler, all, ...")] = "last",
    pool: Annotated[str | None, typer.Option(help="Encoders: first or mean token state.")] = None,
    components: Annotated[int | None, typer.Option(help="sentence: how many.")] = None,
    axis_texts: Annotated[
        Path | None, typer.Option(help="Encoders: cut counterfactual pairs from this text.")
    ] = None,
    steps: Annotated[int, typer.Option(help="cda, dropout: optimiser steps.")] = 500,
    sides: Annotated[str, typer.Option(help="cda: one or two.")] = "two",
    decay: Annotated[float, typer.Option(help="reweighting: lambda.")] = 50.0,
    suite: Annotated[
        str | None, typer.Option(help="Encoders: suite to prove with; default: a small one.")
    ] = None,
    generator: Annotated[
        str | None, typer.Option(help="Choice: masked model that writes wrong answers.")
    ] = None,
    task: Annotated[
        Path | None, typer.Option(help="Encoders: Social IQa, SQuAD or text,label file.")
    ] = None,
    task_limit: Annotated[int | None, typer.Option(min=20, help="First rows of --task.")] = None,
    json: Json = None,
) -> None:
    """Fit a mitigation, judge it on held-out contexts and text, and save it.

    The folder can be given wherever a model can: evenhand audit DIR
    """
    from evenhand.cli import mitigate_encoders as encoders

    if encoders.belongs_here(model, method):
        asked = encoders.Asked(
            model, out, method, axis, layers, pool, rounds, components, classifier, decay,
            axis_texts, texts, steps, sides, suite, generator, task, task_limit, as_published,
            seed, dtype, device,
        )  # fmt: skip
        encoders.mitigate_encoder(asked, json)
        return
    if method in ("attract-repel", "hard-projection", "soft-projection"):
        from evenhand.cli.mitigate_vectors import mitigate_vectors

        mitigate_vectors(
            model, out, json, export=export, axis=axis, sets=sets, method=method,
            direction=direction, amount=alpha, neighbours=neighbours, as_published=as_published,
            seed=seed, device=device,
        )  # fmt: skip
        return
    from dataclasses import replace

    from evenhand.mitigations.head import fit as job
    from evenhand.mitigations.head import save as saved
    from evenhand.mitigations.head.openings import read_texts
    from evenhand.models.vectors.files import resolve_vectors

    methods = method.split(",")
    settings = job.Settings(
        method=methods[0], axis=axis, classifier=classifier, rounds=rounds,
        alpha=_alpha(alpha), max_increase=_share(max_perplexity_increase), mixture=mixture,
        as_published=as_published, first_token_only=first_token_only, seed=seed,
        offset=not no_offset, vectors=vectors or "", tokens=tokens, sets=openings,
    )  # fmt: skip
    for other in methods[1:]:  # a wrong name is refused before any work
        replace(settings, method=other)
    saved.check_free(out)
    if export is not None:
        saved.check_free(export, "--export")
    if vectors:
        resolve_vectors(vectors)
    examples = _examples(stereoset, settings, stereoset_examples)
    passages = read_texts(texts) if texts else None
    loaded = causal(model, dtype, device)
    if export is not None:
        saved.check_exportable(settings, loaded)
    screen = output.console(stderr=True)
    material = job.collect(loaded, settings, passages, lambda text: screen.print(f"  {text}"))
    screen.print("  judging settings")
    fitted = job.fit_among(loaded, material, settings, methods)
    saved.save(fitted, loaded, model, out)
    result = {
        "folder": str(out), "method": fitted.settings.method, "axis": axis, "model": model,
        "before": fitted.before.as_dict(), "after": fitted.chosen.as_dict(), **fitted.facts,
        "points": [p.as_dict() for p in fitted.points],
    }  # fmt: skip
    if examples is not None:
        screen.print("  StereoSet under every setting")
        result["stereoset"] = _stereoset(loaded, material, fitted, examples)
    result["report"] = str(_report(result, fitted, loaded, out / "run"))
    if export is not None:
        result["export"] = str(export)
        result["export_logit_difference"] = saved.export(fitted.edit, loaded, export)
    if not output.write_json(result, json):
        _show(result)


def _alpha(text: str | None) -> float | str | None:
    if text is None or text == "learned":
        return text
    try:
        return float(text)
    except ValueError:
        return text


def _share(text: str) -> float:
    """2% or 0.02.

    >>> _share("2%"), _share("0.05")
    (0.02, 0.05)
    """
    from evenhand.errors import SpecError

    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise SpecError(
            f"--max-perplexity-increase {text!r}: expected a share such as 2% or 0.02."
        ) from None


def causal(spec: str, dtype: str | None, device: str | None) -> Any:
    """Load a causal model; any other kind is refused."""
    from evenhand.errors import ModelError
    from evenhand.models.loading.resolver import resolve
    from evenhand.models.loading.transformer import LoadOptions

    loaded: Any = resolve(spec, options=LoadOptions(dtype=dtype, device=device))
    if loaded.kind != "causal":
        raise ModelError(
            f"model {spec!r} is of kind {loaded.kind!r}. Accepted: causal language models. "
            "For word vectors: --method attract-repel. For features of other models use: "
            "evenhand erase FILE.npz"
        )
    return loaded


def _show(result: dict[str, Any]) -> None:
    before, after, fall = result["before"], result["after"], result["reduction"]
    rows = [
        {"number": name, "before": before[key], "after": after[key]}
        for name, key in (
            ("squared Hellinger, mean", "hellinger2"),
            ("squared Hellinger, median", "hellinger2_median"),
            ("KL, mean of both ways", "kl"),
            ("perplexity", "perplexity"),
            ("p(favourite next word)", "kept"),
        )
    ]
    output.print_table(rows, f"{result['method']} {result['axis']} on {result['model']}")
    out = output.console()
    out.print(
        f"Chosen: {after['rounds']} rounds, rank {after['rank']}, alpha {after['alpha']}. Measured "
        f"gap down by {fall['value']:.0%} [{fall['low']:.0%}, {fall['high']:.0%}] on "
        f"{result['held_out_pairs']} held-out pairs; perplexity {after['increase']:+.2%} on "
        f"{result['text_tokens']} tokens ({result['text']}).",
        markup=False,
    )
    out.print(f"Read it:   {result['report']}", markup=False)
    out.print(f"Use it:    evenhand audit {result['folder']}", markup=False)


def _examples(file: Path | None, settings: Any, count: int) -> Any:
    """StereoSet's examples for the trade-off, or None; a wrong file is refused before any work."""
    if file is None:
        return None
    from evenhand.mitigations.head import stereo

    stereo.check_mixture("hidden" if settings.as_published else settings.mixture)
    return stereo.examples_of(file, settings.axis, count, settings.seed)


def _stereoset(loaded: Any, material: Any, fitted: Any, examples: Any) -> Any:
    """StereoSet for all settings that were judged, and where the learned alpha lies."""
    from evenhand.mitigations.head import fit as autoregressive
    from evenhand.mitigations.head import stereo

    settings = fitted.settings
    mine = [p for p in fitted.points if p.method == settings.method]
    increases = {(p.rounds, p.alpha): p.increase for p in mine}
    tried = autoregressive.candidates(loaded, material, settings)
    rows = stereo.sweep(loaded, tried, increases, examples, settings.seed)
    return {"n": len(examples), **stereo.learned_against_fixed(rows), "rows": rows}


def _report(result: dict[str, Any], fitted: Any, loaded: Any, folder: Path) -> Path:
    """A run folder with every point that was judged, so that report and viewer can show it."""
    from evenhand.cli.pages import write_page
    from evenhand.runs.finding import Finding

    fall, after = result["reduction"], result["after"]
    claim = Finding(
        id="tradeoff/reduction", probe="tradeoff", metric="relative_fall", value=fall["value"],
        low=fall["low"], high=fall["high"], n=result["held_out_pairs"], attribute=result["axis"],
        model=loaded.name, detected=fall["low"] > 0,
        sentence=(
            f"{result['method']} lowers the measured gap between {result['axis']} contexts by "
            f"{fall['value']:.0%}, while perplexity changes by {after['increase']:+.1%}."
        ),
        method="mean squared Hellinger of held-out pairs; bootstrap over prompts",
    )  # fmt: skip
    points = [fitted.before.as_dict(), *(p.as_dict() for p in fitted.points)]
    tables = {"points": [{**p, "alpha": str(p["alpha"])} for p in points]}
    if "stereoset" in result:
        tables["stereoset"] = [{**r, "alpha": str(r["alpha"])} for r in result["stereoset"]["rows"]]
    return write_page(
        folder, loaded, result["model"], probe="tradeoff",
        title="What does the mitigation buy, and what does it cost?", findings=[claim],
        settings=result["settings"], tables=tables, summary={"reduction": fall},
    )  # fmt: skip
