from types import SimpleNamespace

import numpy as np
import pytest
import torch

from undermargin import recipes
from undermargin.recipes.second_split_forgetting import Memory, SecondSplitForgetting

BUDGET = recipes.Budget(epochs=6, batch_size=16, optimizer="adamw", learning_rate=0.01)


def test_what_counts_is_the_last_time_a_sample_was_remembered():
    answers = torch.tensor(  # of samples 1 to 4, all of label 1, after 0, 1 and 2 epochs
        [[1, 1, 0, 1], [1, 0, 0, 0], [1, 0, 0, 1]]
    )
    memory = Memory(np.array([1, 2, 3, 4]))
    for epochs, answer in enumerate(answers):
        logits = torch.nn.functional.one_hot(answer, 2).float()
        memory.ask(SimpleNamespace(labels=torch.tensor([0, 1, 1, 1, 1]), outputs=lambda rows, o=logits: o), epochs)
    assert memory.until.tolist() == [3, 1, 0, 3]  # always; lost at once; never learned; lost and found again
    again = Memory(np.array([1, 2, 3, 4]))
    again.load(memory.tensors())
    assert again.until.tolist() == memory.until.tolist()


def test_each_half_is_learned_once_and_watched_while_the_other_one_is_learned(noisy_blobs):
    x, y, is_mislabeled = noisy_blobs
    stages = []
    fitted = recipes.fit(
        (x, y),
        recipe="second_split_forgetting",
        budget=BUDGET,
        on_epoch=lambda stage, epoch, epochs: stages.append(stage),
    )
    assert list(dict.fromkeys(stages)) == ["first0a", "second0a", "first0b", "second0b", "retraining"]
    scores = fitted.scores["second_split_forgetting"]
    assert set(scores) <= set(range(BUDGET.epochs + 2))
    assert scores[is_mislabeled].mean() < scores[~is_mislabeled].mean() - 2
    assert fitted.verdicts.is_flagged[is_mislabeled].mean() > 0.8
    assert fitted.verdicts.is_flagged[~is_mislabeled].mean() < 0.2


def test_seeds_are_averaged_and_the_cutoff_can_be_a_known_rate(noisy_blobs):
    x, y, _ = noisy_blobs
    settings = SecondSplitForgetting(num_seeds=2, cutoff="rate:0.2")
    short = recipes.Budget(epochs=1, batch_size=32, optimizer="adamw", learning_rate=0.01)
    fitted = recipes.fit((x, y), recipe=settings, budget=short)
    assert set(fitted.scores["second_split_forgetting"] * 2 % 1) == {0.0}  # halves of whole epochs
    assert fitted.verdicts.is_flagged.mean() >= 0.2


class Killed(Exception):
    pass


def test_a_killed_one_ends_the_same(noisy_blobs, tmp_path):
    x, y, _ = noisy_blobs
    short = recipes.Budget(epochs=2, batch_size=32, optimizer="adamw", learning_rate=0.01)

    def kill(stage, epoch, epochs):
        if (stage, epoch) == ("second0b", 1):
            raise Killed

    asked = {"recipe": "second_split_forgetting", "budget": short}
    with pytest.raises(Killed):
        recipes.fit((x, y), **asked, folder=tmp_path, on_epoch=kill)
    resumed = recipes.fit((x, y), **asked, folder=tmp_path)
    whole = recipes.fit((x, y), **asked)
    np.testing.assert_array_equal(resumed.scores["second_split_forgetting"], whole.scores["second_split_forgetting"])
    np.testing.assert_array_equal(resumed.predict(np.arange(len(y))), whole.predict(np.arange(len(y))))
