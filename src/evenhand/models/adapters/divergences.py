"""How far two next-token distributions are apart."""

from __future__ import annotations

from typing import Any

import numpy as np


def divergences(torch: Any, log_p: Any, log_q: Any) -> tuple[float, float, float, float]:
    """KL(p||q), KL(q||p), squared Hellinger and Jensen-Shannon (nats) of two distributions.

    Summed in float64 from log-probabilities: H^2 = 1/2 sum (sqrt p - sqrt q)^2 lies in [0, 1]
    by construction and nothing is ever 0 * log 0: tokens that neither side allows count nothing.
    NaN stays NaN, so that whoever asked can refuse it.
    """
    log_p, log_q = log_p.double(), log_q.double()
    log_p, log_q = log_p - log_p.logsumexp(-1), log_q - log_q.logsumexp(-1)
    p, q = log_p.exp(), log_q.exp()
    none = torch.zeros_like(p)
    kl_pq = float(torch.where(log_p == -torch.inf, none, p * (log_p - log_q)).sum())
    kl_qp = float(torch.where(log_q == -torch.inf, none, q * (log_q - log_p)).sum())
    root = (log_p / 2).exp() - (log_q / 2).exp()
    hellinger2 = float(0.5 * (root * root).sum())
    # Equal entries keep their value, so that identical contexts cancel to the last bit.
    log_m = torch.logaddexp(log_p, log_q) - float(np.log(2.0))
    log_m = torch.where(log_p == log_q, log_p, log_m)
    from_p = torch.where(log_p == -torch.inf, none, p * (log_p - log_m))
    from_q = torch.where(log_q == -torch.inf, none, q * (log_q - log_m))
    js = float(0.5 * from_p.sum() + 0.5 * from_q.sum())
    # max(nan, 0.0) is nan where max(0.0, nan) would be 0.
    return max(kl_pq, 0.0), max(kl_qp, 0.0), min(hellinger2, 1.0), max(js, 0.0)
