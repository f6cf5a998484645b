"""The cluster files that documentation sends people to are well formed and name what exists."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "cluster"


def test_the_slurm_script_parses_and_uses_options_that_exist() -> None:
    from evenhand.cli.main import app

    script = EXAMPLES / "slurm.sh"
    if shutil.which("bash"):
        subprocess.run(["bash", "-n", str(script)], check=True)
    import typer

    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for line in re.findall(r"^\s*evenhand (.*)$", script.read_text(), re.M):
        name, *words = line.split()
        known = {option for p in commands[name].params for option in p.opts}
        assert {w for w in words if w.startswith("--")} <= known


def test_the_kubernetes_manifest_gives_every_pod_the_shared_volume() -> None:
    yaml: Any = pytest.importorskip("yaml")
    claim, cluster = yaml.safe_load_all((EXAMPLES / "kuberay.yaml").read_text())
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    groups = [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]
    images = set()
    for group in groups:
        pod = group["template"]["spec"]
        (volume,) = pod["volumes"]
        assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
        (container,) = pod["containers"]
        assert container["volumeMounts"] == [{"name": volume["name"], "mountPath": "/runs"}]
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        images.add(container["image"])
    assert len(images) == 1
