"""Does a fine-tuned classifier judge texts by the names in them? python ... CHECKPOINT LABEL"""

import sys

from transformers import pipeline

import evenhand as eh

classify = pipeline("text-classification", model=sys.argv[1])
names = eh.make_probe("counterfactual", {"swaps": ["names"], "bad": [sys.argv[2]]})
run = eh.audit(classify, [names], out="runs/classifier")
for finding in run.strongest:
    print(finding.harm, finding.sentence)
