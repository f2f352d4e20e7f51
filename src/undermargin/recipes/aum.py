"""AUM: find the mislabeled samples by their margins, remove them, train again (Pleiss et al. 2020)."""

from dataclasses import dataclass, replace

from undermargin.cutoffs import Cutoff
from undermargin.procedure import Fold, Procedure, folds, trainings
from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, trained_without
from undermargin.tracking.run import Run
from undermargin.training.engine import Budget
from undermargin.verdicts.identify import identify
from undermargin.verdicts.record import Verdicts


@dataclass(frozen=True)
class Aum:
    """The procedure's choices, the cutoff, and the batch size of its two trainings."""

    procedure: Procedure = Procedure.paper
    cutoff: str | Cutoff | None = None  # None: the procedure's percentile
    batch_size: int = 64  # of the two folds: small batches memorize less; the last training has its own
    is_whole: bool = False  # train the folds past the drops of the learning rate, for the ablation that does so

    def fit(self, lesson: Lesson) -> Fitted:
        """Two trainings with threshold samples, before any drop of the learning rate; then one without the flagged."""
        return trained_without(lesson, "aum", self.verdicts(self.runs(lesson)["aum"]))

    def verdicts(self, runs: list[Run]) -> Verdicts:
        """Judge every sample from its folds' runs."""
        if self.cutoff is not None:
            return identify(runs, self.cutoff)
        return identify(runs, self.procedure.percentile_cutoff, percentile=self.procedure.percentile)

    def runs(self, lesson: Lesson, scores: tuple[str, ...] = ("aum",)) -> dict[str, list[Run]]:
        """The runs of both folds, by score."""
        labels = lesson.labels[lesson.rows]
        runs: dict[str, list[Run]] = {name: [] for name in scores}
        for fold, seed in trainings(labels, lesson.num_classes, seed=lesson.seed, procedure=self.procedure):
            _, tracker = replace(self.on_fold(lesson, fold), seed=seed, scores=scores).train(f"fold{fold.number}")
            probabilities = lesson.own(tracker.probabilities())
            for name in scores:
                run = Run(
                    lesson.own(tracker.scores(name)),
                    is_threshold=fold.is_threshold,
                    labels=labels,
                    fold=fold.number,
                    score=name,
                    probabilities=probabilities,
                )
                runs[name].append(run)
        return runs

    def on_fold(self, lesson: Lesson, fold: Fold) -> Lesson:
        """The lesson of one fold: the extra label on its threshold samples, until the learning rate first drops."""
        worn = lesson.labels.copy()
        worn[lesson.rows] = fold.labels
        budget, skip_epochs = self.budget(lesson.budget), self.procedure.skip_epochs
        return replace(lesson, labels=worn, num_outputs=fold.num_outputs, budget=budget, skip_epochs=skip_epochs)

    def folds(self, lesson: Lesson) -> list[Fold]:
        """The two folds of the lesson's training samples."""
        labels = lesson.labels[lesson.rows]
        return folds(labels, lesson.num_classes, seed=lesson.seed, procedure=self.procedure)

    def budget(self, budget: Budget) -> Budget:
        """The budget of a fold: that of a complete training, until the learning rate first drops.

        >>> Aum().budget(Budget(300, 256, drops=(0.5, 0.75))).epochs
        150
        """
        budget = replace(budget, batch_size=min(self.batch_size, budget.batch_size))
        epochs = int(min(budget.drops, default=1) * budget.epochs)
        return budget if self.is_whole else replace(budget, epochs=epochs, drops=())
