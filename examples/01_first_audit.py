"""Audit the packaged model and read the findings from Python."""

import evenhand as eh

run = eh.audit("smollm2-135m", "quick", out="runs/example")
for finding in run.strongest:
    print(
        f"{finding.sentence}\n   {finding.metric} {finding.value:+.3f}"
        f" [{finding.low:.3f}, {finding.high:.3f}]  q {finding.q:.3f}"
    )
print("report:", run.report)
