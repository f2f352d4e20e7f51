"""What the tests of the torch adapters share: data, the plain loop they are compared with, processes and examples."""

import json
import math
import os
import resource
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler

import undermargin
from undermargin import IndexedDataset

ROOT = Path(__file__).parent.parent.parent
NUM_SAMPLES, NUM_CLASSES, BATCH = 51, 3, 10  # odd, and the last batch is short: it holds one sample

needs_scan = pytest.mark.skipif(not hasattr(undermargin, "Scan"), reason="the examples end with Scan.of")


class Blobs(Dataset):
    """Three clouds with some wrong labels, as tuples (x, label) or as mappings."""

    def __init__(self, *, as_mapping=False):
        generator = torch.Generator().manual_seed(1)
        true = torch.arange(NUM_SAMPLES) % NUM_CLASSES
        self.x = torch.randn(NUM_SAMPLES, 4, generator=generator) + 3 * torch.eye(NUM_CLASSES, 4)[true]
        self.labels = torch.where(torch.arange(NUM_SAMPLES) % 7 == 0, (true + 1) % NUM_CLASSES, true)
        self.as_mapping = as_mapping

    def __len__(self):
        return NUM_SAMPLES

    def __getitem__(self, index):
        x, label = self.x[index], int(self.labels[index])
        return {"x": x, "label": label} if self.as_mapping else (x, label)

    def indices_of(self, x):
        """Which samples these are, by what they look like: no index of the framework or of ours is trusted."""
        return (x[:, None] == self.x).all(2).nonzero()[:, 1]


class Resumable(DataLoader):
    """A loader that resumes in the middle of an epoch: it tells how many batches it gave, and skips them."""

    given, skipped = 0, 0

    def __iter__(self):
        skipped, self.skipped = self.skipped, 0
        for number, batch in enumerate(super().__iter__()):
            self.given = number + 1
            if number >= skipped:
                yield batch

    def state_dict(self):
        return {"given": self.given % len(self)}

    def load_state_dict(self, state):
        self.skipped = state["given"]


def loader(batch_size, *, rank=0, ranks=1, as_mapping=False):
    """Shuffled by the epoch's number alone, so that a resumed training sees the same batches."""
    data = IndexedDataset(Blobs(as_mapping=as_mapping))
    sampler = DistributedSampler(data, num_replicas=ranks, rank=rank, shuffle=True, seed=3)
    return Resumable(data, batch_size, sampler=sampler)


class Stream:
    """What a training step saw, written down by the step itself: rows of epoch, index, label and logits."""

    def __init__(self):
        self.data, self.rows = Blobs(), []

    def write(self, epoch, x, labels, logits):
        indices, rows = self.data.indices_of(x).tolist(), logits.detach().double().tolist()
        for index, label, row in zip(indices, labels.tolist(), rows, strict=True):
            self.rows.append((epoch, index, label, row))


def aum(rows, num_samples=NUM_SAMPLES):
    """The plain loop: the mean margin within each epoch, then the mean over epochs, in float64."""
    margins = defaultdict(lambda: defaultdict(list))
    for epoch, index, label, logits in rows:
        others = [value for number, value in enumerate(logits) if number != label]
        margins[index][epoch].append(logits[label] - max(others))
    means = {index: [math.fsum(seen) / len(seen) for seen in epochs.values()] for index, epochs in margins.items()}
    return [math.fsum(means[index]) / len(means[index]) if index in means else math.nan for index in range(num_samples)]


def assert_equal_scores(found, expected):
    """To float32 precision, in the same order; and not all of them alike, which any order would fit."""
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)
    assert len(np.unique(np.asarray(expected)[~np.isnan(expected)])) > 10


def torchrun(tmp_path, worker, *words, ranks=2):
    """Start real processes of a worker module; what each of them wrote as JSON."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    result = subprocess.run(
        [*command, "-m", f"tests.adapters.{worker}", str(tmp_path), *words],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
        env=environment,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    return [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(ranks)]


def run_example(name, tmp_path, *, seconds=20):
    """Run an example from its own file; it must be short and quick (in CPU time) and leave a report."""
    file = ROOT / "examples" / f"{name}.py"
    assert len(file.read_text().splitlines()) < 60
    started = cpu_seconds()
    result = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False
    )
    assert result.returncode == 0, result.stderr[-4000:]
    assert list(tmp_path.glob("scans/*/report.html"))
    assert cpu_seconds() - started < seconds
    return result.stdout


def cpu_seconds():
    """Of the processes that this one has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def assert_page_shows(page, example):
    """The page of a framework contains its example, word for word."""
    text = (ROOT / "docs" / "frameworks" / f"{page}.md").read_text()
    assert f"```python\n{(ROOT / 'examples' / f'{example}.py').read_text()}```" in text


def error_without(framework, adapter):
    """What importing an adapter says where its framework is not installed, after `import undermargin` went well."""
    blocked = "".join(f"sys.modules[{name!r}] = None; " for name in framework.split())
    code = f"import sys; {blocked}import undermargin; import undermargin.adapters.{adapter}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    return result.stderr.strip().splitlines()[-1]
