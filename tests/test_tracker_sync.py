"""`update` never waits for the device: shown on the level of dispatched operations."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from undermargin import Tracker, Trajectories
from undermargin.tracking.epoch import BUFFER
from undermargin.tracking.scores import SCORES

# operations that read a value on the host, or whose result's shape depends on values
WAITING = (
    "_local_scalar_dense",
    "item",
    "equal",
    "is_nonzero",
    "nonzero",
    "masked_select",
    "unique",
    "unique_dim",
)


class Watch(TorchDispatchMode):
    """Notes every operation, and refuses those that would wait."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.removeprefix("aten::")
        self.seen.append(name)
        assert name not in WAITING, f"{name} waits for the device"
        result = func(*args, **(kwargs or {}))
        came_from = {str(a.device.type) for a in args if isinstance(a, torch.Tensor)}
        if isinstance(result, torch.Tensor) and "meta" in came_from:
            assert result.device.type == "meta", f"{name} copies to the host"
        return result


def batch(device, size=64, classes=10, dtype=torch.float32):
    return (
        torch.randn(size, classes, device=device, dtype=dtype),
        torch.zeros(size, dtype=torch.long, device=device),
        torch.arange(size, device=device),
    )


@pytest.fixture
def without_refusal(monkeypatch):
    """Let tensors without values into a tracker, which refuses them."""
    monkeypatch.setattr("undermargin.tracking.tracker.as_logits", lambda logits: logits)


@pytest.mark.usefixtures("without_refusal")
@pytest.mark.parametrize("settings", [{}, {"scores": list(SCORES)}, {"suggest": 9}, {"ids": list(range(5, 505))}])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_update_on_a_device_reads_nothing_back(settings, dtype, tmp_path):
    # tensors on the meta device have no values: whatever needs one, or copies one to the host, fails
    with Watch() as watch:
        tracker = Tracker(500, **settings)
        for _ in range(40):  # long enough for everything that is buffered to be added more than once
            tracker.update(*batch("meta", size=4096, dtype=dtype))
            tracker.update(*batch("meta", size=8000, dtype=dtype))
    assert watch.seen.count("index_add_") > 1


@pytest.mark.usefixtures("without_refusal")
def test_recording_full_logits_reads_nothing_back(tmp_path):
    with Watch():
        tracker = Tracker(500, trajectories=Trajectories(tmp_path, logits_of=[1, 2]))
        for _ in range(40):
            tracker.update(*batch("meta", size=4096))


def test_the_watch_would_notice():
    with pytest.raises(AssertionError, match="waits"), Watch():
        torch.ones(3).sum().item()
    with pytest.raises(NotImplementedError, match="no data"), Watch():
        torch.ones(3, device="meta").cpu()


@pytest.mark.parametrize("size", [64, 256])
def test_a_step_of_aum_dispatches_at_most_twelve_operations(size):
    tracker = Tracker(500)
    given = batch("cpu", size=size)
    tracker.update(*given)
    steps = 3 * BUFFER // (10 * size)
    with Watch() as watch:
        for _ in range(steps):
            tracker.update(*given)
    assert len(watch.seen) / steps <= 5  # most steps copy their batch; one in many adds all copies
    fresh = Tracker(500)
    with Watch() as watch:
        fresh.update(*given)
    assert len(watch.seen) <= 12
