"""Two checkpoints of one training, compared: python training_loop.py CHECKPOINT"""

import sys

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import evenhand as eh

model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1])
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
batch = tokenizer(["she said no", "he said yes"], padding=True, return_tensors="pt")
optimizer, runs = torch.optim.AdamW(model.parameters(), lr=0.01), []
for epoch in range(2):
    runs.append(eh.audit(model, tokenizer=tokenizer, out=f"runs/epoch-{epoch}"))
    model(**batch, labels=torch.tensor([1, 0])).loss.backward()
    optimizer.step()
print(eh.compare(*runs).changes[0].headline)
