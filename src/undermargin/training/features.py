"""Feature vectors from texts and numeric columns, computed without labels."""

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError

Vectors = npt.NDArray[np.float32]

TEXT_NUMBERS = 256  # dimensions of a text after latent semantic analysis
MAX_TERMS = 100_000


def standardised(values: Vectors) -> Vectors:
    """Columns scaled to mean 0 and standard deviation 1, ignoring nan, and clipped to -10..10."""
    with np.errstate(invalid="ignore"):
        centred = values - np.nan_to_num(np.nanmean(values, 0))
        deviation = np.nan_to_num(np.nanstd(centred, 0), nan=1.0)
    return np.asarray((centred / np.where(deviation > 0, deviation, 1)).clip(-10, 10), dtype=np.float32)


def latent(texts: list[str]) -> Vectors:
    """Texts as vectors (texts, dimensions) of length sqrt(dimensions): TF-IDF of words and bigrams, reduced by SVD."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        terms = TfidfVectorizer(
            sublinear_tf=True,
            ngram_range=(1, 2),
            min_df=2 if len(texts) > 1000 else 1,
            max_features=MAX_TERMS,
            token_pattern=r"\S+",  # noqa: S106 - not a password
        ).fit_transform(texts)
    except ValueError as error:
        raise InputError(f"the texts contain no words to learn from: {error}") from None
    size = min(TEXT_NUMBERS, min(terms.shape) - 1)
    vectors = TruncatedSVD(max(size, 1), random_state=0).fit_transform(terms)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1) * np.sqrt(max(size, 1)), dtype=np.float32)
