"""Choosing names from tables, and what else tells groups apart."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from evenhand.cli.main import app
from evenhand.errors import EvenhandError
from evenhand.words.names import as_lexicon, lint, read_names, select


@pytest.fixture
def tables(tmp_path):
    nyc = tmp_path / "nyc.csv"
    nyc.write_text(
        "Year of Birth,Gender,Ethnicity,Child's First Name,Count\n"
        "2012,FEMALE,ASIAN AND PACI,TENZIN,19\n2012,MALE,ASIAN AND PACI,TENZIN,20\n"
        "2012,FEMALE,ASIAN AND PACIFIC ISLANDER,AIZA,300\n"
        "2012,MALE,HISPANIC,IKER,210\n2013,MALE,HISPANIC,Iker,10\n"
        "2012,FEMALE,BLACK NON HISPANIC,NIA,250\n2012,FEMALE,WHITE NON HISPANIC,NIA,250\n"
    )
    return nyc


def test_shares_follow_the_equations_and_years_and_cases_are_added(tables):
    names = read_names([tables])
    assert names["Iker"].count == 220
    assert names["Tenzin"].female == pytest.approx(19 / 39)  # the paper's 0.487
    assert names["Nia"].race == {"black": 0.5, "white": 0.5}


def test_thresholds_frequency_and_gender_decide(tables):
    groups = select(read_names([tables]))
    assert [n.name for n in groups["asian_female"]] == ["Aiza"]
    assert [n.name for n in groups["hispanic_male"]] == ["Iker"]
    assert not groups["black_female"]
    rare = select(read_names([tables]), frequency=0, gender=0.5)
    assert [n.name for n in rare["asian_male"]] == ["Tenzin"]


def test_tables_fill_in_what_others_lack(tmp_path):
    shares = tmp_path / "race.csv"
    shares.write_text("name,white,black,hispanic,asian,other\nTIA,0.05,0.93,0.01,0.01,0\n")
    sexes = tmp_path / "ssa.csv"
    sexes.write_text("name,sex,n_total\nTia,F,900\nTia,M,10\n")
    groups = select(read_names([shares, sexes]))
    assert [n.name for n in groups["black_female"]] == ["Tia"]


def test_census_percentages_give_race_and_gender(tmp_path):
    table = tmp_path / "census.csv"
    table.write_text(
        "name,rank,count,pctwhite,pctblack,pctapi,pcthispanic,pctmale,pctfemale\n"
        "NGUYET,1,900,1.0,0.5,97.5,1.0,2.0,98.0\nJOSE,2,5000,4,1,5,(S),99,1\n"
    )
    names = read_names([table])
    assert names["Nguyet"].race["asian"] == pytest.approx(0.975)
    assert names["Nguyet"].female == 0.98
    assert names["Jose"].race["hispanic"] == 0.0  # a suppressed cell
    assert [n.name for n in select(names)["asian_female"]] == ["Nguyet"]


def test_the_lexicon_written_is_one_that_probes_read(tables, tmp_path):
    from evenhand.words.lexicons import groups as find

    path = tmp_path / "mine.toml"
    path.write_text(as_lexicon(select(read_names([tables])), "Mine", "A test (2026)"))
    assert find(["selected_asian_female"], extra=[path])["selected_asian_female"].terms == ("Aiza",)


def test_unknown_tables_are_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(EvenhandError, match="no name table"):
        read_names([path])


def test_length_confounds_and_overlaps_are_found():
    short = ["Bo", "Al", "Ed", "Cy", "Jo", "Di"]
    long = ["Alexandra", "Guadalupe", "Esmeralda", "Stephanie", "Marcellus", "Bo"]
    made = lint({"short": short, "long": long}, counts={"Bo": 100.0})
    assert made["confounds"][0]["feature"] == "letters"
    assert made["confounds"][0]["p"] < 0.02
    assert made["overlaps"][0]["names"] == ["Bo"]


def test_lint_of_the_packaged_groups_from_the_command_line():
    made = CliRunner().invoke(app, ["names", "lint", "--json", "-"])
    assert made.exit_code == 0, made.output
    found = json.loads(made.stdout)
    assert len(found["groups"]) == 8
    assert len(found["confounds"]) == 28


@pytest.mark.shared
def test_the_papers_tables_give_names_for_every_group(shared):
    folder = shared / "data/names"
    made = CliRunner().invoke(
        app, ["names", "select", str(folder / "rosenman_first_name_race.csv.xz"),
              str(folder / "ssa_babynames_totals_1880_2017.csv.xz"), "--most", "80",
              "--json", "-"],
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    groups = json.loads(made.stdout)["groups"]
    assert all(len(names) >= 40 for names in groups.values()), {
        g: len(n) for g, n in groups.items()
    }
    assert "Latoya" in groups["black_female"]


def test_groups_are_told_from_vectors_only_when_the_vectors_know_them():
    import numpy as np

    from evenhand.words.names import predict_groups

    rng = np.random.default_rng(0)
    groups = ["a"] * 30 + ["b"] * 30
    noise = rng.normal(size=(60, 5))
    known = noise + 2.0 * (np.arange(60) < 30)[:, None]
    told = predict_groups(known, groups, permutations=39)
    assert told["accuracy"] > 0.9
    assert told["low"] <= told["accuracy"] <= told["high"]
    assert told["p_permuted"] == 1 / 40
    assert told["p"] < 0.001
    assert 0.4 < told["null_mean"] < 0.6
    assert predict_groups(noise, groups, permutations=39)["p"] > 0.05
    with pytest.raises(EvenhandError, match="three or more names"):
        predict_groups(known, ["a"] * 58 + ["b"] * 2)


def test_an_accuracy_that_permuted_groups_reach_too_is_not_told():
    import numpy as np

    from evenhand.words.names import beside_chance

    skewed = np.array([0.0] * 2 + [0.5] * 37)
    found = beside_chance(0.0, skewed, 60)
    assert found.p == pytest.approx(3 / 40)
    assert found.low < skewed.mean() < found.high
    assert beside_chance(1.0, skewed, 60).p < 0.001


def embedding(text):
    """A vector of what is marked: its length, and how many parts are marked."""
    import re

    parts = re.findall("⟦(.+?)⟧", text)
    return {"vector": [float(len(parts[0])), float(len(parts))]}


def test_the_name_itself_is_embedded_in_the_same_contexts_for_every_name():
    import numpy as np

    from evenhand.models.adapters.scripted import ScriptedModel
    from evenhand.runner.ask import Ask
    from evenhand.words.names import name_requests, name_vectors

    ask = Ask(ScriptedModel({"embed": embedding}))
    contexts = ["{name} sang. How is {name}?", "Yes, {name}."]
    made = name_vectors(ask(name_requests(["Bo", "Tia"], contexts), "names"), 2)
    assert np.allclose(made, [[2.0, 1.5], [3.0, 1.5]])
    with pytest.raises(EvenhandError, match="needs {name}"):
        name_requests(["Bo"], ["no place"])


def test_the_study_reports_each_axis_and_a_map():
    from evenhand.models.adapters.scripted import ScriptedModel
    from evenhand.probes.name_study import NameStudy
    from evenhand.runner.ask import Ask
    from evenhand.words.lexicons import groups as find

    women = set(find(["female"])["female"].terms)

    def knows_gender(text):
        import re
        import zlib

        name = re.findall("⟦(.+?)⟧", text)[0]
        noise = zlib.crc32(name.encode()) / 2**32
        return {"vector": [3.0 * (name in women) + noise, noise]}

    probe = NameStudy(names=8, context_count=1, permutations=39, folds=4)
    made = probe.run(Ask(ScriptedModel({"embed": knows_gender})), 0)
    by = {f.id: f for f in made.findings}
    assert by["name-study/gender"].value == 1.0
    assert by["name-study/gender"].q <= 0.05
    assert "can be told" in by["name-study/gender"].sentence
    assert by["name-study/race"].q > 0.05
    assert "was not detected" in by["name-study/race"].otherwise
    assert by["name-study/gender"].generalises_over == ("names",)
    assert made.placebos[0].tests == 100
    assert made.placebos[0].alarms <= 7
    assert {"name", "group", "x", "y"} <= set(made.tables["map"].column_names)
    assert made.tables["map"].num_rows == 64


def test_the_study_runs_from_the_command_line_on_a_causal_model(tiny):
    pytest.importorskip("torch", reason="needs the hf extra")
    made = CliRunner().invoke(
        app, ["names", "study", tiny("causal"), "asian_female", "asian_male", "--names", "4",
              "--count", "2", "--permutations", "19", "--json", "-"],
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    found = json.loads(made.stdout)
    assert [row["axis"] for row in found["axes"]] == ["gender"]
    assert found["axes"][0]["names"] == 8
