"""From runs to verdicts: `identify`, `Verdicts` with its columns and summary, and how good verdicts are."""
