"""One of two ranks that train with Hugging Face's Trainer; test_huggingface.py starts them."""

import json
import sys
import warnings
from pathlib import Path

import torch
import torch.distributed as dist

from tests.adapters.huggingface_parts import NUM_CLASSES, record, text_trainer
from tests.adapters.torch_support import NUM_SAMPLES
from undermargin import Tracker
from undermargin.adapters.huggingface import observe


def main():
    folder = Path(sys.argv[1])
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    # seven batches a rank, four steps an epoch: step 6 is in the middle of the second one
    options = {"batch_size": 4, "gradient_accumulation_steps": 2, "ddp_backend": "gloo", "save_strategy": "steps"}
    whole, resumed = (Tracker(NUM_SAMPLES, suggest=NUM_CLASSES) for _ in range(2))
    trainer = text_trainer(folder, save_steps=6, **options)
    rows = record(trainer)
    observe(trainer, whole)
    trainer.train()
    again = text_trainer(folder, save_steps=100, **options)
    observe(again, resumed)
    again.train(resume_from_checkpoint=str(folder / "checkpoint-6"))
    found = {
        "rows": rows,
        "aum": whole.scores().tolist(),
        "suggested": whole.suggestions()[0].tolist(),
        "resumed": resumed.scores().tolist(),
        "resumed_suggested": resumed.suggestions()[0].tolist(),
    }
    (folder / f"rank{dist.get_rank()}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
