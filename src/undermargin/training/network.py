"""One plain training loop for networks, on whatever device, precision and number of processes there is."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from undermargin.data.pixels import Pixels
from undermargin.errors import TrainingError
from undermargin.training.engine import Budget, Logits, Observe, Rows

Input = Tensor | Pixels  # a row a sample; pixels on disk are read batch by batch
Inputs = tuple[Input, ...]  # what a model takes
Augment = Callable[[tuple[Tensor, ...], torch.Generator], tuple[Tensor, ...]]

OPTIMIZER = "optimizer."  # prefix of the optimizer's tensors in a checkpoint
MODEL = "model."
SCALER = "scaler."  # of the gradients, with fp16
PREDICTED_TOGETHER = 1024
BATCHES_AHEAD = 2  # that are read from disk while others are trained on


@cache
def accelerator(precision: str = "no") -> Accelerator:
    """The device, the precision (no, fp16, bf16) and the processes of this job."""
    has_device = torch.cuda.is_available() or torch.backends.mps.is_available()
    try:
        # without a GPU, Accelerate makes processes work together only if it is told that the CPU is meant
        return Accelerator(mixed_precision=precision, cpu=not has_device)
    except ValueError as error:
        raise TrainingError(f"precision {precision!r} cannot be used in this process: {error}") from None


class Training:
    """A network, its optimizer and its data; see `Engine`."""

    def __init__(
        self,
        model: nn.Module,
        inputs: Inputs,
        labels: Tensor,
        budget: Budget,
        *,
        seed: int,
        augment: Augment | None = None,
        rows: Tensor | None = None,
        precision: str = "no",
    ) -> None:
        self.accelerator = accelerator(precision)
        self.device = self.accelerator.device
        self.inputs = tuple(values.to(self.device) if isinstance(values, Tensor) else values for values in inputs)
        self.labels = labels.to(self.device)
        self.rows = torch.arange(len(labels)) if rows is None else rows
        self.budget = budget
        self.seed = seed
        self.augment = augment
        self.network = model  # the bare one; `model` may be wrapped for several processes
        self.accelerator.free_memory()  # it would hold on to every network it has ever seen
        self.model, self.optimizer = self.accelerator.prepare(model, _optimizer(model, budget))
        if self.accelerator.scaler is not None:  # as if no other training had gone before
            self.accelerator.scaler.load_state_dict(torch.amp.GradScaler(self.device.type).state_dict())

    def run_epoch(self, epoch: int, observe: Observe | None = None) -> None:
        """Show every sample once; `observe(logits, labels, indices)` sees every step."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
        order = self.rows[torch.randperm(len(self.rows), generator=generator)]
        batches = _batches(order, self.budget.batch_size, self.accelerator.num_processes)
        for group in self.optimizer.param_groups:
            group["lr"] = self.budget.rate(epoch)
        generator.manual_seed(generator.initial_seed() + self.accelerator.process_index)  # each rank draws its own
        self.model.train()
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(int(torch.randint(2**62, (1,), generator=generator)))  # for dropout
            for indices, batch in self._loaded(batches):
                self._step(indices, batch, generator, observe)

    def _step(
        self, indices: Tensor, batch: tuple[Tensor, ...], generator: torch.Generator, observe: Observe | None
    ) -> None:
        labels = self.labels[indices]
        with self.accelerator.autocast():
            logits = self.model(*(self.augment(batch, generator) if self.augment else batch))
        if observe is not None:
            observe(logits, labels, indices)
        self.optimizer.zero_grad()
        self.accelerator.backward(F.cross_entropy(logits.float(), labels))
        self.optimizer.step()

    def _loaded(self, batches: list[Tensor]) -> Iterator[tuple[Tensor, tuple[Tensor, ...]]]:
        """This process's share of every batch, on the device; what is on disk is read ahead in a thread."""
        shares = [batch[self.accelerator.process_index :: self.accelerator.num_processes] for batch in batches]
        if all(isinstance(values, Tensor) for values in self.inputs):
            yield from ((indices.to(self.device), self._take(indices)) for indices in shares)
            return
        with ThreadPoolExecutor(1) as thread:
            waiting = [thread.submit(self._take, indices) for indices in shares[:BATCHES_AHEAD]]
            for number, indices in enumerate(shares):
                if number + BATCHES_AHEAD < len(shares):
                    waiting.append(thread.submit(self._take, shares[number + BATCHES_AHEAD]))
                yield indices.to(self.device), waiting.pop(0).result()

    def _take(self, indices: Tensor) -> tuple[Tensor, ...]:
        return tuple(
            values[indices.to(values.device)]
            if isinstance(values, Tensor)
            else torch.from_numpy(values[indices.tolist()]).to(self.device)
            for values in self.inputs
        )

    @torch.no_grad()
    def predict(self, rows: Rows) -> Logits:
        """Logits of these samples, whether they were trained on or not: (rows, outputs)."""
        self.model.eval()
        parts = torch.split(torch.from_numpy(rows), PREDICTED_TOGETHER)
        with self.accelerator.autocast():
            return np.concatenate([self.network(*self._take(part)).float().cpu().numpy() for part in parts])

    def tensors(self) -> dict[str, Tensor]:
        """Everything that training has changed, by name."""
        model = {MODEL + name: value for name, value in _untied(self.network.state_dict()).items()}
        state = self.optimizer.state_dict()["state"]
        scaler = self.accelerator.scaler.state_dict() if self.accelerator.scaler is not None else {}
        model |= {SCALER + name: torch.tensor(value) for name, value in scaler.items()}
        return model | {
            f"{OPTIMIZER}{number}.{name}": torch.as_tensor(value)
            for number, values in state.items()
            for name, value in values.items()
            if value is not None
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `tensors` gave."""
        model = {name.removeprefix(MODEL): value for name, value in tensors.items() if name.startswith(MODEL)}
        self.network.load_state_dict(model)
        scaler = {name.removeprefix(SCALER): value.item() for name, value in tensors.items() if name.startswith(SCALER)}
        if self.accelerator.scaler is not None and scaler:
            self.accelerator.scaler.load_state_dict(scaler)
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith(OPTIMIZER):
                number, key = name.removeprefix(OPTIMIZER).split(".", 1)
                state.setdefault(int(number), {})[key] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})


def _untied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that lie in one piece of memory, as tied weights do, each in its own: safetensors refuses others."""
    seen: set[int] = set()
    return {
        name: value.clone() if value.data_ptr() in seen or seen.add(value.data_ptr()) else value  # type: ignore[func-returns-value]
        for name, value in tensors.items()
    }


def _optimizer(model: nn.Module, budget: Budget) -> torch.optim.Optimizer:
    if budget.optimizer == "adamw":
        return torch.optim.AdamW(model.parameters(), lr=budget.learning_rate, weight_decay=budget.weight_decay)
    return torch.optim.SGD(
        model.parameters(),
        lr=budget.learning_rate,
        momentum=budget.momentum,
        nesterov=True,
        weight_decay=budget.weight_decay,
    )


def _batches(order: Tensor, batch_size: int, num_processes: int) -> list[Tensor]:
    """Batches in this order; a last one with less than two samples a process, which have no batch statistics, joins
    the one before."""
    batches = list(torch.split(order, batch_size))
    if len(batches) > 1 and len(batches[-1]) < 2 * num_processes:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


def build(make: Callable[[int], nn.Module], num_outputs: int, *, seed: int) -> nn.Module:
    """A network with weights drawn from this seed, the global random state left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(num_outputs)


@dataclass(frozen=True)
class NetworkPlan:
    """A network and what it is trained on; see `Plan`."""

    model: str
    make_model: Callable[[int], nn.Module]
    inputs: Inputs
    budget: Budget
    augment: Augment | None = None
    precision: str = "no"

    def start(self, labels: Rows, num_outputs: int, *, seed: int, budget: Budget, rows: Rows | None = None) -> Training:
        """A training on these labels (samples,), of these rows alone if they are given."""
        return Training(
            build(self.make_model, num_outputs, seed=seed),
            self.inputs,
            torch.from_numpy(labels),
            budget,
            seed=seed,
            augment=self.augment,
            rows=None if rows is None else torch.from_numpy(rows),
            precision=self.precision,
        )
