"""The viewer over plain HTTP: what it serves, what it refuses, and what it never runs."""

from __future__ import annotations

import csv
import http.client
import io
import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

import made_runs
from evenhand.errors import RunError
from evenhand.runs.record import RunWriter
from evenhand.viewer import Server, listen
from evenhand.viewer.folders import Progress


def ask(
    address: str, path: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of one request; the path is sent as it is."""
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=20)
    named = {k.replace("_", "-"): v for k, v in headers.items()}
    connection.putrequest(method, path, skip_host="Host" in named)
    for name, value in named.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode("utf-8")
    found = {k.lower(): v for k, v in answer.getheaders()}
    connection.close()
    return answer.status, found, text


PAGES = [
    "/", "/run/first", "/run/first/charts", "/run/first/items/underspecified",
    "/run/first/finding?id=underspecified/gamma/nurse", "/compare?run=first&run=second",
    "/run/hostile", "/run/hostile/charts", "/run/hostile/items/underspecified", "/nothing",
]  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
def test_every_answer_carries_strict_headers(address: str, path: str) -> None:
    _, headers, _ = ask(address, path)
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "server" not in headers


def test_the_report_runs_in_a_sandbox_of_its_own(address: str) -> None:
    status, headers, text = ask(address, "/run/first/report")
    assert status == 200
    policy = headers["content-security-policy"]
    assert "sandbox allow-scripts;" in policy
    assert policy.startswith("default-src 'none'; script-src 'unsafe-inline';")
    assert "http" not in policy
    assert "May it ship?" in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_reading_is_allowed(address: str, method: str) -> None:
    status, headers, _ = ask(address, "/", method)
    assert (status, headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost:80x", "", "0.0.0.0"],
)
def test_a_foreign_host_is_refused(address: str, host: str) -> None:
    status, _, text = ask(address, "/", Host=host)
    assert status == 403
    assert "first" not in text


def test_local_names_are_answered(address: str) -> None:
    port = urlsplit(address).port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
        assert ask(address, "/", Host=host)[0] == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1"])
def test_a_foreign_origin_is_refused(address: str, origin: str) -> None:
    assert ask(address, "/run/first/progress.json", Origin=origin)[0] == 403


def test_its_own_origin_is_answered(address: str) -> None:
    status, headers, _ = ask(address, "/run/first/progress.json", Origin=address.rstrip("/"))
    assert status == 200
    assert "access-control-allow-origin" not in headers


def test_another_sites_script_cannot_load_anything(address: str) -> None:
    cross = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"}
    assert ask(address, "/run/first/findings.csv", **cross)[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        "/run/../secret.txt", "/run/..%2fsecret.txt", "/run/%2e%2e/%2e%2e/etc/passwd",
        "/static/..%2f..%2fapp.py", "/static/../app.py", "//etc/passwd",
        "/run/first/../../secret.txt",
        "/run/first/items/..%2f..%2fsecret", "/run/first/items/underspecified?table=../../run",
        "/run/first/items/underspecified/..%2f..%2frun.json", "/run/no-run", "/run/first%00",
        "/run/first/figure/underspecified/1.exe", "/run/first/figure/../1.svg",
    ],
)  # fmt: skip
def test_paths_out_of_the_folder_are_refused(address: str, path: str) -> None:
    status, _, text = ask(address, path)
    assert status == 404
    assert "secret\n" not in text
    assert "root:" not in text


def test_the_list_names_runs_and_marks_the_damaged_one(address: str) -> None:
    _, _, text = ask(address, "/")
    assert "4 runs" in text
    assert '<span class="status damaged">damaged</span>' in text
    assert "no-run" not in text
    assert "1 of 3" in text  # differences detected in the ordinary runs


def test_the_list_is_searched_and_filtered(address: str) -> None:
    found = ask(address, "/?search=OTHER-model")[2]
    assert "/run/second" in found
    assert "/run/first" not in found
    assert "/run/damaged" in ask(address, "/?status=damaged")[2]
    assert "No runs here that match" in ask(address, "/?search=nothing-like-it")[2]


def test_findings_are_filtered_by_probe_verdict_and_words(address: str) -> None:
    def ids(query: str) -> list[str]:
        page = ask(address, f"/run/first?{query}")[2].partition('class="findings"')[2]
        return re.findall(r'data-finding="([^"]+)"', page)

    assert ids("verdict=detected") == ["underspecified/gamma/nurse"]
    assert ids("probe=divergence") == ["divergence/gender/female-male"]
    assert ids("search=hunter+male") == ["underspecified/gamma/hunter"]
    assert len(ids("")) == 5
    assert ids("")[0] == "underspecified/gamma/nurse"
    assert [i.rsplit("/")[-1] for i in ids("sort=about")][:2] == ["chef", "female-male"]
    assert ids("sort=nonsense") == ids("")


def test_a_finding_leads_to_its_items(address: str) -> None:
    text = ask(address, "/run/first/finding?id=underspecified/gamma/nurse")[2]
    (link,) = re.findall(r'class="button" href="([^"]+)"', text)
    assert link == "/run/first/items/underspecified?attribute=nurse"
    items = ask(address, link)[2]
    assert "3 rows found." in items
    assert '<td dir="auto">nurse</td>' in items
    assert '<td dir="auto">hunter</td>' not in items


def test_items_as_csv_hold_the_filtered_rows(address: str) -> None:
    _, headers, text = ask(address, "/run/first/items/underspecified/rows.csv?attribute=hunter")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {r["attribute"] for r in rows} == {"hunter"}
    assert [r["lean"] for r in rows] == ["-0.1", "0.0", "-0.2"]
    assert headers["content-disposition"].startswith("attachment;")


def test_findings_and_figures_can_be_downloaded(address: str) -> None:
    pytest.importorskip("vl_convert", reason="needs the report extra")
    assert "underspecified/gamma/nurse" in ask(address, "/run/first/findings.csv")[2]
    status, headers, svg = ask(address, "/run/first/figure/underspecified/1.svg")
    assert (status, headers["content-type"]) == (200, "image/svg+xml")
    assert "nurse" in svg


def test_runs_are_compared_finding_by_finding(address: str) -> None:
    text = ask(address, "/compare?run=first&run=second")[2]
    assert "2 runs side by side" in text
    assert text.count("+0.312") >= 2
    assert "Choose two or more runs" in ask(address, "/compare?run=first")[2]
    assert ask(address, "/compare?run=first&run=missing")[0] == 404


def test_hostile_text_stays_text_on_every_page(address: str) -> None:
    finding = quote("underspecified/gamma/script")
    for path in [p for p in PAGES if "hostile" in p] + [
        f"/run/hostile/finding?id={finding}", "/compare?run=hostile&run=first", "/",
    ]:  # fmt: skip
        status, _, text = ask(address, path)
        assert status == 200, path
        assert "<script>window" not in text
        assert "<img src=x" not in text
        assert "<b onmouseover" not in text
        assert not {"\x1b", "\u202e"} & set(text)
        assert len(text) < 1_000_000


def test_a_hostile_request_is_not_repeated_unescaped(address: str) -> None:
    attack = quote('"><script>alert(1)</script>')
    for path in (f"/?search={attack}", f"/run/first?search={attack}&probe={attack}",
                 f"/run/first/items/underspecified?attribute={attack}&{attack}={attack}",
                 f"/run/{attack}", f"/compare?run={attack}", "/run/first?page=-1",
                 "/run/first?page=9999999999999",
                 "/run/first/items/underspecified?page=%00"):  # fmt: skip
        status, _, text = ask(address, path)
        assert status in (200, 404), path
        assert "<script>alert" not in text


def test_head_is_answered_without_a_body(address: str) -> None:
    status, _, text = ask(address, "/", "HEAD")
    assert (status, text) == (200, "")


def test_ten_clients_at_once_get_ten_right_answers(address: str) -> None:
    def count(number: int) -> str:
        job = ("nurse", "hunter")[number % 2]
        return ask(address, f"/run/first/items/underspecified?attribute={job}")[2]

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(count, range(60)))
    assert all("3 rows found." in text for text in answers)


def test_one_run_can_be_viewed_alone(runs: Path) -> None:
    with Server(runs / "first") as server:
        assert "1 run" in ask(server.address, "/")[2]
        assert ask(server.address, "/run/second")[0] == 404


def test_a_taken_port_is_named_with_the_way_out() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(RunError, match=f"port {port} cannot be used.*--port 0"):
            listen(port)


def running(folder: Path) -> Path:
    known = {**made_runs.facts(), "status": "running", "probes": {}, "finished": None}
    RunWriter(folder).facts(known)
    (folder / "scores").mkdir()
    return folder


def test_progress_counts_stored_inputs_and_tells_a_killed_run(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from evenhand.runs.record import Run

    folder = running(tmp_path / "run")
    progress, run = Progress(), Run.open(folder)
    known = run.facts
    RunWriter(folder).facts({**known, "models": {}})  # looked at before its model is loaded
    assert progress.of(Run.open(folder))["planned"] is None
    RunWriter(folder).facts(known)
    (folder / ".lock").touch()
    assert progress.of(run)["status"] == "stopped"  # nobody holds the lock
    with RunWriter(folder).held():
        pq.write_table(pa.table({"x": [1, 2, 3]}), folder / "scores" / "a.b.parquet")
        first = progress.of(run)
        pq.write_table(pa.table({"x": [1, 2]}), folder / "scores" / "c.d.parquet")
        second = progress.of(run)
    assert (first["status"], first["inputs"], first["now"]) == ("running", 3, "underspecified")
    assert (second["inputs"], second["shards"]) == (5, 2)
    assert first["planned"] > 100
    assert second["left"] > 0


def test_an_unfinished_run_shows_how_far_it_is(tmp_path: Path) -> None:
    running(tmp_path / "runs" / "now")
    with Server(tmp_path / "runs") as server:
        status, _, text = ask(server.address, "/run/now")
        assert status == 200
        assert 'data-progress="/run/now/progress.json"' in text
        facts = json.loads(ask(server.address, "/run/now/progress.json")[2])
        assert facts["inputs"] == 0
