"""AUM: find the mislabeled samples by their margins, remove them, train again (Pleiss et al. 2020)."""

from dataclasses import dataclass, replace

from undermargin.folds import Procedure, folds
from undermargin.identify import identify
from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, trained_without
from undermargin.run import Run


@dataclass(frozen=True)
class Aum:
    """The procedure's choices, the cutoff, and the batch size of its two trainings."""

    procedure: Procedure = Procedure.paper
    cutoff: str = "paper"
    batch_size: int = 64  # of the two folds; the last training has its own

    def fit(self, lesson: Lesson) -> Fitted:
        """Two trainings with threshold samples, before any drop of the learning rate; then one without the flagged."""
        budget = replace(lesson.budget, batch_size=min(self.batch_size, lesson.budget.batch_size), drops=())
        labels = lesson.labels[lesson.rows]
        runs: list[Run] = []
        for fold in folds(labels, lesson.num_classes, seed=lesson.seed, procedure=self.procedure):
            worn = lesson.labels.copy()
            worn[lesson.rows] = fold.labels
            watching = replace(
                lesson,
                labels=worn,
                num_outputs=fold.num_outputs,
                budget=budget,
                scores=("aum",),
                skip_epochs=self.procedure.skip_epochs,
            )
            _, tracker = watching.train(f"fold{fold.number}")
            scores = tracker.scores("aum")[lesson.rows]
            runs.append(Run(scores=scores, is_threshold=fold.is_threshold, labels=labels, fold=fold.number))
        return trained_without(lesson, "aum", identify(runs, self.cutoff))
