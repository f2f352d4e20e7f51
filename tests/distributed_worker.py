"""One rank of a distributed job; test_distributed.py starts several of them."""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler

from tests.test_distributed import NUM_EPOCHS, NUM_SAMPLES, data
from undermargin import Tracker, Trajectories
from undermargin.errors import InputError, NotMergedError
from undermargin.tracking.scores import SCORES


def indices_of_this_rank(epoch):
    sampler = DistributedSampler(range(NUM_SAMPLES), shuffle=True)
    sampler.set_epoch(epoch)
    return torch.tensor(list(sampler))


def observe(tracker, epoch, indices):
    for batch in indices.split(8):
        tracker.update(data(epoch)[batch], batch % 3, batch)


def error_of(call):
    try:
        call()
    except NotMergedError as error:
        return str(error)
    return ""


def epochs(folder):
    tracker = Tracker(NUM_SAMPLES, list(SCORES), suggest=4)
    for epoch in range(NUM_EPOCHS):
        observe(tracker, epoch, indices_of_this_rank(epoch))
        tracker.end_epoch()
    return {name: tracker.scores(name).tolist() for name in SCORES} | {"suggested": tracker.suggestions()[0].tolist()}


def unmerged(folder):
    tracker = Tracker(NUM_SAMPLES)
    observe(tracker, 0, indices_of_this_rank(0))
    found = {"scores_error": error_of(tracker.scores), "state_error": error_of(tracker.state_dict)}
    tracker.reduce()
    found["aum"] = tracker.scores().tolist()
    observe(tracker, 0, indices_of_this_rank(0))  # going on after a reduce must not count the sum once a rank
    tracker.reduce()
    return found | {"aum_again": tracker.scores().tolist()}


def first_part(folder):
    tracker = Tracker(NUM_SAMPLES)
    observe(tracker, 0, indices_of_this_rank(0))
    tracker.end_epoch()
    observe(tracker, 1, torch.arange(20)[dist.get_rank() :: dist.get_world_size()])
    tracker.reduce()
    if dist.get_rank() == 0:
        tracker.save(folder / "tracker.safetensors")
    return {}


def second_part(folder):
    tracker = Tracker.load(folder / "tracker.safetensors")
    observe(tracker, 1, torch.arange(20, NUM_SAMPLES)[dist.get_rank() :: dist.get_world_size()])
    tracker.end_epoch()
    observe(tracker, 2, indices_of_this_rank(2))
    tracker.end_epoch()
    return {"aum": tracker.scores().tolist()}


def idle_rank(folder):
    tracker = Tracker(NUM_SAMPLES)
    if dist.get_rank() == 0:
        observe(tracker, 0, torch.arange(NUM_SAMPLES))
    tracker.end_epoch()
    return {"aum": tracker.scores().tolist()}


def recording_on_one_rank(folder):
    trajectories = Trajectories(folder / "trajectories", logits_of=[1]) if dist.get_rank() == 0 else None
    tracker = Tracker(NUM_SAMPLES, trajectories=trajectories)
    observe(tracker, 0, indices_of_this_rank(0))
    try:
        tracker.end_epoch()
    except InputError as error:
        return {"error": str(error)}
    return {}


def main():
    folder, word = Path(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    found = globals()[word.replace("-", "_")](folder)
    (folder / f"rank{dist.get_rank()}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
