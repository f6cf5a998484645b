"""Audit a model that is in memory already: python object_in_memory.py CHECKPOINT"""

import sys

from transformers import AutoModelForCausalLM, AutoTokenizer

import evenhand as eh

model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
asked = eh.make_probe("underspecified", {"attributes": ["nurse", "pilot"], "pairs": 20})
run = eh.audit(model, [asked], tokenizer=tokenizer, out="runs/object")
print(run.to_pandas()[["value", "low", "high", "q", "sentence"]])
print(eh.gate(run).reason)
