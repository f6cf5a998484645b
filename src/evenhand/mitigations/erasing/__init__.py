"""Erasing a label from features: INLP, LEACE and SentenceDebias on arrays.

from evenhand.mitigations.erasing import LEACE

calm = LEACE().fit(X, y)          # as in scikit-learn
calm.transform(X_new)
"""

from evenhand.mitigations.erasing.erasers import INLP, LEACE, SentenceDebias

__all__ = ["INLP", "LEACE", "SentenceDebias"]
