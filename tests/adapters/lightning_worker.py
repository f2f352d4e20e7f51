"""One of two ranks that train with Lightning; test_lightning.py starts them."""

import json
import sys
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from lightning.pytorch.callbacks import ModelCheckpoint

from tests.adapters.lightning_parts import Outage, callback, fit
from tests.adapters.torch_support import loader

OPTIONS = {"strategy": "ddp", "devices": 2, "accumulate_grad_batches": 2, "use_distributed_sampler": False}


def main():
    folder = Path(sys.argv[1])
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()

    def train(watching, *others, **options):
        return fit(folder, loader(5, rank=rank, ranks=2), watching, *others, **OPTIONS | options)

    whole = callback()
    module = train(whole)
    saving = ModelCheckpoint(folder, "part", every_n_train_steps=5)  # of 3 steps in an epoch: in mid-epoch
    try:
        train(callback(), saving, Outage(1, 5), enable_checkpointing=True)
    except InterruptedError:
        resumed = callback()
        train(resumed, checkpoint=folder / "part.ckpt")
    found = {
        "rows": module.stream.rows,
        "aum": whole.tracker.scores().tolist(),
        "suggested": whole.tracker.suggestions()[0].tolist(),
        "resumed": resumed.tracker.scores().tolist(),
        "resumed_suggested": resumed.tracker.suggestions()[0].tolist(),
    }
    (folder / f"rank{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
