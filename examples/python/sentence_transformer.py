"""Mitigate a sentence transformer and test it again: python ... SENTENCE_TRANSFORMER"""

import sys

from sentence_transformers import SentenceTransformer

import evenhand as eh

model = SentenceTransformer(sys.argv[1])
calmer = eh.mitigate(model, "leace", axis="gender")
before = eh.audit(model, ["association"], out="runs/before")
after = eh.audit(calmer.model, ["association"], out="runs/after")
print(eh.compare(before, after).changes[0].headline)
