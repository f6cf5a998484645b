"""Audit gensim's KeyedVectors: python keyed_vectors.py VECTORS.txt"""

import sys

from gensim.models import KeyedVectors

import evenhand as eh

vectors = KeyedVectors.load_word2vec_format(sys.argv[1])
run = eh.audit(vectors, out="runs/vectors")
for finding in run["association/*"]:
    print(f"{finding.sentence} {finding.value:+.2f} [{finding.low:.2f}, {finding.high:.2f}]")
