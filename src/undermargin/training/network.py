"""The training loop for networks, for any device, precision and number of processes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from undermargin.errors import TrainingError
from undermargin.models.group import features, first
from undermargin.training.augmentation import Augment
from undermargin.training.engine import Budget, Logits, Observe, Rows
from undermargin.training.inputs import Batch, Inputs, PlacedInputs
from undermargin.training.objective import Objective, Step

OPTIMIZER = "optimizer."  # prefixes of tensors in a checkpoint
MODEL = "model."
OBJECTIVE = "objective."
SCALER = "scaler."  # the gradient scaler, with fp16


@cache
def accelerator(precision: str = "no") -> Accelerator:
    """The device, the precision (no, fp16, bf16) and the processes of this job."""
    has_device = torch.cuda.is_available() or torch.backends.mps.is_available()
    try:
        # without a GPU, Accelerate starts distributed training only with cpu=True
        return Accelerator(mixed_precision=precision, cpu=not has_device)
    except ValueError as error:
        raise TrainingError(f"precision {precision!r} is not available in this process: {error}") from None


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
        objective: Objective | None = None,
    ) -> None:
        self.accelerator = accelerator(precision)
        self.device = self.accelerator.device
        self.inputs = PlacedInputs(inputs, self.device)
        self.labels = labels.to(self.device)
        self.rows = torch.arange(len(labels)) if rows is None else rows
        self.budget = budget
        self.seed = seed
        self.augment = augment
        self.objective = objective or Objective()
        self.network = model  # unwrapped; `self.model` may be wrapped for distributed training
        self.accelerator.free_memory()  # otherwise Accelerate keeps a reference to every network it has prepared
        self.model = self.accelerator.prepare(model)
        # not wrapped: Accelerate's wrapper looks for an optional package on disk at every step
        self.optimizer = _optimizer(model, budget)
        if self.accelerator.scaler is not None:  # reset: an earlier training may have changed it
            self.accelerator.scaler.load_state_dict(torch.amp.GradScaler(self.device.type).state_dict())

    def run_epoch(self, epoch: int, observe: Observe | None = None) -> None:
        """Train on every sample once; `observe(logits, labels, indices)` is called at every step."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
        order = self.rows[torch.randperm(len(self.rows), generator=generator)]
        for group in self.optimizer.param_groups:
            group["lr"] = self.budget.rate(epoch)
        generator.manual_seed(generator.initial_seed() + self.accelerator.process_index)  # different on every rank
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(int(torch.randint(2**62, (1,), generator=generator)))  # for dropout
            self.objective.begin_epoch(self, epoch, generator)
            batches = self.objective.batches(order, self.budget.batch_size, epoch)
            batches = _without_remainder(batches, self.accelerator.num_processes)
            self.model.train()
            rank, num_processes = self.accelerator.process_index, self.accelerator.num_processes
            shares = [batch[rank::num_processes] for batch in batches]  # the part of each batch for this process
            for number, (indices, batch) in enumerate(self.inputs.batches(shares)):
                share = (epoch + number / len(batches)) / self.budget.epochs
                inputs = self.augment(batch, generator) if self.augment else batch
                step = self._forward(indices, inputs, epoch, share, generator)
                if observe is not None:
                    observe(first(step.outputs), step.labels, step.indices)
                self._update(step)

    def _forward(self, indices: Tensor, inputs: Batch, epoch: int, share: float, generator: torch.Generator) -> Step:
        with self.accelerator.autocast():
            outputs = self.model(*inputs)
        return Step(
            outputs=outputs.float(),
            labels=self.labels[indices],
            indices=indices,
            epoch=epoch,
            share=share,
            generator=generator,
            evaluated=lambda: self._evaluated(inputs),
        )

    def _update(self, step: Step) -> None:
        self.optimizer.zero_grad()
        loss, scaler = self.objective.loss(step), self.accelerator.scaler
        if scaler is None:
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(self.optimizer)
            scaler.update()

    @torch.no_grad()
    def _evaluated(self, inputs: Batch) -> Tensor:
        self.model.eval()
        with self.accelerator.autocast():
            outputs: Tensor = self.network(*inputs)
        self.model.train()
        return outputs.float()

    def predict(self, rows: Rows) -> Logits:
        """Logits of these rows, which need not be part of the training set: (rows, outputs)."""
        return first(self.outputs(rows)).cpu().numpy()

    @torch.no_grad()
    def outputs(self, rows: Rows, generator: torch.Generator | None = None) -> Tensor:
        """Logits of these rows, with several networks of each of them: (rows, outputs) or (rows, networks, outputs).

        With a generator, inputs are augmented as in training.
        """
        self.model.eval()
        parts = self.inputs.pieces(torch.from_numpy(rows))
        if self.augment and generator:
            augment, drawn = self.augment, generator
            parts = (augment(part, drawn) for part in parts)
        with self.accelerator.autocast():
            return torch.cat([self.network(*part).float() for part in parts])

    def features(self, rows: Rows) -> Tensor:
        """The inputs of the last linear layer of the first network: (rows, features)."""
        return features(self.network, lambda: self.outputs(rows))

    def tensors(self) -> dict[str, Tensor]:
        """The state of the training as named tensors, for a checkpoint."""
        optimized = {
            f"{number}.{name}": torch.as_tensor(value)
            for number, values in self.optimizer.state_dict()["state"].items()
            for name, value in values.items()
            if value is not None
        }
        scaler = self.accelerator.scaler
        parts = {
            MODEL: _untied(self.network.state_dict()),
            OPTIMIZER: optimized,
            OBJECTIVE: self.objective.tensors(),
            SCALER: {name: torch.tensor(value) for name, value in scaler.state_dict().items()} if scaler else {},
        }
        return {prefix + name: value for prefix, part in parts.items() for name, value in part.items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `tensors`."""
        self.network.load_state_dict(_named(tensors, MODEL))
        self.objective.load(_named(tensors, OBJECTIVE))
        scaler = {name: value.item() for name, value in _named(tensors, SCALER).items()}
        if self.accelerator.scaler is not None and scaler:
            self.accelerator.scaler.load_state_dict(scaler)
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in _named(tensors, OPTIMIZER).items():
            number, key = name.split(".", 1)
            state.setdefault(int(number), {})[key] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})


def _named(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names start with the prefix, with the prefix removed."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _untied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors with shared memory (tied weights) copied, because safetensors does not accept shared memory."""
    seen: set[int] = set()
    return {
        name: value.clone() if value.data_ptr() in seen or seen.add(value.data_ptr()) else value  # type: ignore[func-returns-value]
        for name, value in tensors.items()
    }


def _optimizer(model: nn.Module, budget: Budget) -> torch.optim.Optimizer:
    # fused: one kernel for all parameters is several times faster for small networks than one kernel each
    if budget.optimizer == "adamw":
        return torch.optim.AdamW(
            model.parameters(), lr=budget.learning_rate, weight_decay=budget.weight_decay, fused=True
        )
    return torch.optim.SGD(
        model.parameters(),
        lr=budget.learning_rate,
        momentum=budget.momentum,
        nesterov=True,
        weight_decay=budget.weight_decay,
        fused=True,
    )


def _without_remainder(batches: list[Tensor], num_processes: int) -> list[Tensor]:
    """Merge the last batch with the one before it if it has fewer than two samples per process, which is too few for
    batch normalization."""
    if len(batches) > 1 and len(batches[-1]) < 2 * num_processes:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


def build(make: Callable[[int], nn.Module], num_outputs: int, *, seed: int) -> nn.Module:
    """A network initialized from this seed; the global random state is unchanged."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(num_outputs)


@dataclass(frozen=True)
class NetworkPlan:
    """A network and its inputs; see `Plan`."""

    model: str
    make_model: Callable[[int], nn.Module]
    inputs: Inputs
    budget: Budget
    augment: Augment | None = None
    precision: str = "no"

    def start(
        self,
        labels: Rows,
        num_outputs: int,
        *,
        seed: int,
        budget: Budget,
        rows: Rows | None = None,
        objective: Objective | None = None,
    ) -> Training:
        """Start a training on these labels (samples,), restricted to `rows` if given."""
        return Training(
            build(self.make_model, num_outputs, seed=seed),
            self.inputs,
            torch.from_numpy(labels),
            budget,
            seed=seed,
            augment=self.augment,
            rows=None if rows is None else torch.from_numpy(rows),
            precision=self.precision,
            objective=objective,
        )
