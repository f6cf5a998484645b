"""Any object that answers requests can be audited. Here: a scripted model with a known lean."""

import tempfile

import evenhand as eh
from evenhand.audit.suites import parse_suite


def answer(prefix: str, continuation: str) -> float:
    """Log-likelihood of a name: women's names are likelier when the question is about nurses."""
    asked = "was a nurse" in prefix and "never" not in prefix
    woman = continuation.strip() in {
        "Mary",
        "Patricia",
        "Linda",
        "Barbara",
        "Elizabeth",
        "Jennifer",
    }
    return -1.0 if asked and woman else -2.0


model = eh.ScriptedModel({"continuation": answer}, name="known-lean")
suite = parse_suite(
    {"probe": [{"name": "underspecified", "attributes": ["nurse", "pilot"], "pairs": 70}]},
    "example",
    "example",
)
with tempfile.TemporaryDirectory() as folder:
    run = eh.audit(model, suite, out=f"{folder}/run")
    for finding in run.findings:
        if finding.metric == "gamma":
            print(f"{finding.attribute}: {finding.value:+.3f}, q {finding.q:.3f}")
