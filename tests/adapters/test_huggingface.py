"""Stock Trainers, observed: sequences, images and tokens, checkpoints, two processes."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.adapters import huggingface_parts as parts
from tests.adapters.torch_support import (
    NUM_SAMPLES,
    assert_equal_scores,
    assert_page_shows,
    aum,
    error_without,
    needs_scan,
    run_example,
    torchrun,
)
from undermargin import IndexedDataset, Run, Tracker, folds, identify
from undermargin.adapters.huggingface import TokenIndex, class_names, observe, per_sentence
from undermargin.errors import InputError, UndermarginWarning


def own_loss(outputs, labels, num_items_in_batch=None):
    return F.cross_entropy(outputs["logits"], labels)


TRAININGS = {
    "sequences": lambda folder: parts.text_trainer(folder),
    "images": lambda folder: parts.make_trainer(folder, parts.vit(), parts.images()),
    "a view of a data set": lambda folder: parts.text_trainer(
        folder, data=IndexedDataset(parts.texts(with_index=False))
    ),
    "smoothing, accumulation, evaluation": lambda folder: parts.text_trainer(
        folder,
        label_smoothing_factor=0.1,
        gradient_accumulation_steps=4,
        eval_strategy="steps",
        eval_steps=1,
        evaluated=parts.texts(),
    ),
    "without the private names": lambda folder: parts.text_trainer(
        folder, data=parts.texts().remove_columns("source"), remove_unused_columns=False
    ),
}


@pytest.mark.parametrize("training", TRAININGS)
def test_scores_are_those_of_a_plain_loop_over_the_same_batches(training, tmp_path):
    trainer, tracker = TRAININGS[training](tmp_path), Tracker(NUM_SAMPLES)
    rows = parts.record(trainer)
    observe(trainer, tracker)
    trainer.train()
    assert_equal_scores(tracker.scores(), aum(rows))
    assert tracker.epoch == 3


@pytest.mark.parametrize("training", TRAININGS)
def test_losses_and_weights_are_bit_equal_with_and_without_observing(training, tmp_path):
    ends = []
    for is_observed in (False, True):
        trainer = TRAININGS[training](tmp_path)
        if is_observed:
            observe(trainer, Tracker(NUM_SAMPLES))
        elif not trainer.args.remove_unused_columns:
            trainer.train_dataset = trainer.train_dataset.remove_columns("index")
        trainer.train()
        losses = [(line.get("loss"), line.get("eval_loss")) for line in trainer.state.log_history]
        ends.append((losses, {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}))
    assert ends[0][0] == ends[1][0]
    assert all(torch.equal(ends[0][1][name], ends[1][1][name]) for name in ends[0][1])


@pytest.mark.parametrize("step", [9, 12, 18], ids=["mid-epoch", "last step of an epoch", "finished"])
def test_a_training_resumed_from_a_checkpoint_ends_with_the_scores_of_an_uninterrupted_one(step, tmp_path):
    whole, resumed = (Tracker(NUM_SAMPLES, suggest=3) for _ in range(2))
    trainer = parts.text_trainer(tmp_path, save_strategy="steps", save_steps=step)  # six steps an epoch
    observe(trainer, whole)
    trainer.train()
    again = parts.text_trainer(tmp_path)
    observe(again, resumed)
    again.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{step}") if step < 18 else True)
    assert_equal_scores(resumed.scores(), whole.scores())
    assert resumed.suggestions()[0].tolist() == whole.suggestions()[0].tolist()
    assert resumed.epoch == whole.epoch == 3


def test_two_ranks_count_every_sample_once_an_epoch_and_resume_in_mid_epoch(tmp_path):
    ranks = torchrun(tmp_path, "huggingface_worker")
    rows = [row for found in ranks for row in found["rows"]]
    times = Counter((epoch, index) for epoch, index, *_ in rows)
    assert len(times) == 3 * NUM_SAMPLES
    assert 2 in times.values()  # Accelerate evens out the batches with samples that were there already
    for found in ranks:
        assert_equal_scores(found["aum"], aum(rows))
        assert_equal_scores(found["resumed"], found["aum"])
        assert found["resumed_suggested"] == found["suggested"]


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_sample_of_token_classification_is_a_labeled_token(side, tmp_path):
    tokens = TokenIndex(parts.token_labels())
    fold, _ = folds(tokens.labels, parts.NUM_CLASSES)
    trainer = parts.tag_trainer(tmp_path, tokens.relabeled(fold.labels), side=side)
    tracker = Tracker(tokens.num_samples)
    rows = parts.record(trainer)
    observe(trainer, tracker, tokens=tokens)
    trainer.train()
    by_token = {(sentence, position): row for row, (sentence, position) in enumerate(places(parts.token_labels()))}
    flat = []
    for epoch, sentence, given, logits in rows:
        padding = len(given) - len(parts.sentences()[sentence]) if side == "left" else 0
        for position, label in enumerate(given):
            if label >= 0:
                flat.append((epoch, by_token[sentence, position - padding], label, logits[position]))
    assert_equal_scores(tracker.scores(), aum(flat, tokens.num_samples))
    assert any(label == parts.NUM_CLASSES for _, _, label, _ in flat)  # threshold samples were trained on
    assert tracker.run(fold, ids=tokens.ids).ids == [f"{sentence}:{position}" for sentence, position in by_token]


def places(given):
    return [(sentence, position) for sentence, one in enumerate(given) for position, y in enumerate(one) if y >= 0]


def test_verdicts_of_tokens_are_told_sentence_by_sentence():
    tokens = TokenIndex([[-100, 0, 1], [-100], [1, -100, 0], [0]])
    scores, is_threshold = np.array([5.0, 6.0, -3.0, -2.0, 0.0]), np.arange(5) == 4
    suggested = {"suggested_labels": [1, 0, 0, 1, 1], "suggestion_confidence": [0.9] * 5}
    run = Run(scores, is_threshold, labels=tokens.labels, class_names="AB", **suggested)
    words = [["[CLS]", "Paris", "is"], ["[CLS]"], ["of", "course", "Rome"], ["Oslo"]]
    assert per_sentence(identify(run), tokens, words) == [
        {
            "index": 2,
            "verdict": "flagged",
            "score": -3.0,
            "num_tokens": 2,
            "num_flagged": 2,
            "flagged": [
                {"position": 0, "label": "B", "suggested_label": "A", "text": "of", "score": -3.0},
                {"position": 2, "label": "A", "suggested_label": "B", "text": "Rome", "score": -2.0},
            ],
        },
        {"index": 0, "verdict": "kept", "score": 5.0, "num_tokens": 2, "num_flagged": 0, "flagged": []},
        {"index": 3, "verdict": "unjudged", "score": pytest.approx(np.nan, nan_ok=True), "num_tokens": 1}
        | {"num_flagged": 0, "flagged": []},
    ]
    with pytest.raises(InputError, match="5 verdicts for 2 labeled tokens"):
        per_sentence(identify(run), TokenIndex([[0, 1]]))


def test_a_sentence_with_other_tokens_than_it_had_is_not_counted():
    tokens = TokenIndex([[0, 1, 2], [1]])
    sentences, labels = torch.tensor([0, 1]), torch.tensor([[0, 1, -100], [-100, 1, -100]])
    assert tokens.indices(sentences, labels).tolist() == [[4, 4, 4], [2, 3, 3]]
    with pytest.raises(InputError, match=r"labels have shape \(3,\), expected \(4,\)"):
        tokens.relabeled([0, 1, 2])
    with pytest.raises(InputError, match="none of the tokens of 2 sentences"):
        TokenIndex([[-100], []])


def test_class_names_are_those_of_the_model_without_the_extra_label():
    assert class_names(parts.bert(), 3) == ["sports", "science", "politics"]
    with pytest.raises(InputError, match="4 entries, expected at least 9"):
        class_names(parts.bert(), 9)


def test_what_cannot_be_observed_is_an_error_that_says_what_to_do(tmp_path):
    trainer = parts.text_trainer(tmp_path, data=parts.texts(with_index=False))
    observe(trainer, Tracker(NUM_SAMPLES))
    with pytest.raises(InputError, match="no entry 'index', only input_ids, .*Train on IndexedDataset"):
        trainer.train()
    with pytest.raises(InputError, match="observed already"):
        observe(trainer, Tracker(NUM_SAMPLES))
    trainer = parts.tag_trainer(tmp_path, parts.token_labels())
    observe(trainer, Tracker(NUM_SAMPLES))
    with pytest.raises(InputError, match="tokens=TokenIndex"):
        trainer.train()
    trainer = parts.text_trainer(tmp_path)
    trainer.compute_loss = lambda model, inputs, return_outputs, **named: model(**inputs).loss
    observe(trainer, Tracker(NUM_SAMPLES))
    with pytest.raises(InputError, match="returned the loss alone"):
        trainer.train()
    with pytest.raises(InputError, match="auto_find_batch_size"):
        observe(parts.text_trainer(tmp_path, auto_find_batch_size=True), Tracker(NUM_SAMPLES))


def test_another_version_of_transformers_is_told_the_public_way(tmp_path):
    trainer = parts.text_trainer(tmp_path)
    trainer._set_signature_columns_if_needed = None
    observe(trainer, Tracker(NUM_SAMPLES))
    with pytest.raises(InputError, match="remove_unused_columns=False"):
        trainer.train()


def test_a_checkpoint_without_a_tracker_is_resumed_with_a_warning(tmp_path):
    parts.text_trainer(tmp_path, save_strategy="steps", save_steps=9).train()
    trainer, tracker = parts.text_trainer(tmp_path), Tracker(NUM_SAMPLES)
    observe(trainer, tracker)
    with pytest.warns(UndermarginWarning, match="checkpoint-18 holds no undermargin.safetensors"):
        trainer.train(resume_from_checkpoint=True)


def test_a_loss_of_the_users_own_and_prediction_without_labels_work(tmp_path):
    trainer, tracker = parts.text_trainer(tmp_path), Tracker(NUM_SAMPLES)
    trainer.compute_loss_func = own_loss
    rows = parts.record(trainer)
    observe(trainer, tracker)
    trainer.train()
    assert_equal_scores(tracker.scores(), aum(rows))
    scores = tracker.scores()
    trainer.predict(parts.texts().remove_columns("label"))
    assert np.array_equal(tracker.scores(), scores)


def test_without_transformers_the_adapter_names_the_extra():
    message = error_without("transformers", "huggingface")
    assert message.endswith('transformers is not installed. Run: pip install "undermargin[huggingface]"')


@needs_scan
def test_the_example_finds_the_flipped_labels(tmp_path):
    run_example("huggingface_digits", tmp_path)


def test_the_page_shows_the_example():
    assert_page_shows("huggingface", "huggingface_digits")
