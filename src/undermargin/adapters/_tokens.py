"""Token classification: a sample is one labeled token, and verdicts are read sentence by sentence."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from undermargin import Verdicts
from undermargin.errors import InputError

IGNORED = -100  # the label that losses skip: special tokens, padding, later parts of a word

Labels = npt.NDArray[np.int64]


class TokenIndex:
    """Numbers the labeled tokens of a data set from 0, sentence by sentence; tokens with negative labels have none.

    `labels` holds a list of labels for each sentence, as the model is trained on them: aligned with the tokens of the
    tokenizer, truncated, and -100 where the loss ignores a token.

    >>> tokens = TokenIndex([[-100, 0, 1, -100], [2]])
    >>> tokens.num_samples, tokens.labels.tolist(), tokens.ids
    (3, [0, 1, 2], ['0:1', '0:2', '1:0'])
    """

    def __init__(self, labels: Sequence[Sequence[int]]) -> None:
        self._given = [np.asarray(one, dtype=np.int64) for one in labels]
        counts = np.array([(one >= 0).sum() for one in self._given], dtype=np.int64)
        if not counts.sum():
            raise InputError(f"none of the tokens of {len(counts)} sentences has a label of 0 or more")
        self.starts = np.concatenate(([0], np.cumsum(counts)))  # (sentences + 1,) the first token of each sentence
        self.labels: Labels = np.concatenate([one[one >= 0] for one in self._given])  # (tokens,)
        self.positions: Labels = np.concatenate([np.flatnonzero(one >= 0) for one in self._given])  # in the sentence
        self.sentences: Labels = np.repeat(np.arange(len(counts)), counts)  # (tokens,)
        self._on_device = torch.from_numpy(self.starts)

    @property
    def num_samples(self) -> int:
        """The number of labeled tokens."""
        return len(self.labels)

    @property
    def ids(self) -> list[str]:
        """A name for each token, sentence:position."""
        return [f"{sentence}:{position}" for sentence, position in zip(self.sentences, self.positions, strict=True)]

    def relabeled(self, labels: npt.ArrayLike) -> list[list[int]]:
        """One list of labels for each sentence, with these labels (tokens,), such as `fold.labels`, in their places."""
        flat = np.asarray(labels)
        if flat.shape != self.labels.shape:
            raise InputError(
                f"labels have shape {flat.shape}, expected ({self.num_samples},), one for each labeled token"
            )
        changed = [one.copy() for one in self._given]
        for sentence, one in enumerate(changed):
            one[one >= 0] = flat[self.starts[sentence] : self.starts[sentence + 1]]
        return [one.tolist() for one in changed]

    def indices(self, sentences: Tensor, labels: Tensor) -> Tensor:
        """The index of every token of a batch: (batch,), (batch, tokens) -> (batch, tokens).

        The k-th labeled token of a row is the k-th of its sentence, on whichever side the row is padded. Where their
        number is not the sentence's, it is unknown which tokens these are: their index is out of range.
        """
        if self._on_device.device != sentences.device:
            self._on_device = self._on_device.to(sentences.device)
        is_labeled = labels >= 0
        rank = is_labeled.cumsum(1) - 1
        starts, ends = self._on_device[sentences], self._on_device[sentences + 1]
        is_whole = is_labeled.sum(1) == ends - starts
        return torch.where(is_whole[:, None], starts[:, None] + rank, self.num_samples)


def per_sentence(
    verdicts: Verdicts, tokens: TokenIndex, texts: Sequence[Sequence[str]] | None = None
) -> list[dict[str, Any]]:
    """One row for each sentence with labeled tokens, most suspicious first.

    A sentence is flagged if one of its tokens is, and its score is its lowest token's. `flagged` lists those tokens:
    position in the sentence, label, suggested label and score, and their text where `texts` gives the tokens.
    """
    if len(verdicts) != tokens.num_samples:
        raise InputError(f"{len(verdicts)} verdicts for {tokens.num_samples} labeled tokens; expected one each")
    # a sentence comes where its most suspicious token comes
    order = dict.fromkeys(tokens.sentences[verdicts.order].tolist())
    return [_row(verdicts, tokens, sentence, texts) for sentence in order]


def _row(verdicts: Verdicts, tokens: TokenIndex, sentence: int, texts: Any) -> dict[str, Any]:
    rows = range(int(tokens.starts[sentence]), int(tokens.starts[sentence + 1]))
    flagged = [_token(verdicts, tokens, row, texts) for row in rows if verdicts[row] == "flagged"]
    scores = verdicts.scores[rows.start : rows.stop]
    found = {verdicts[row] for row in rows}
    return {
        "index": sentence,
        "verdict": next(name for name in ("flagged", "kept", "unjudged") if name in found),
        "score": float(np.nanmin(scores)) if not np.isnan(scores).all() else float("nan"),
        "num_tokens": len(rows),
        "num_flagged": len(flagged),
        "flagged": flagged,
    }


def _token(verdicts: Verdicts, tokens: TokenIndex, row: int, texts: Any) -> dict[str, Any]:
    position = int(tokens.positions[row])
    found: dict[str, Any] = {"position": position, "label": verdicts.name(int(tokens.labels[row]))}
    if verdicts.suggested_labels is not None and (suggested := int(verdicts.suggested_labels[row])) >= 0:
        found["suggested_label"] = verdicts.name(suggested)
    if texts is not None:
        found["text"] = texts[int(tokens.sentences[row])][position]
    return found | {"score": float(verdicts.scores[row])}
