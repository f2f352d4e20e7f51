"""Everything undermargin raises or warns on purpose.

    UndermarginError
      InputError         what was passed in cannot be used
      ObservationError   what a tracker was shown, or was not, cannot be scored
      NotMergedError     scores were read before the ranks had been merged
      IdentifyError      these runs cannot be judged in this way
      TrainingError      a training could not be brought to its end
        DivergedError    because its weights are no numbers any more
      FolderError        a scan folder is damaged, in use, or of another data set
      ModelError         a pretrained model is not there or cannot be loaded
    UndermarginWarning

An error says what happened with numbers, what was expected, and what to do.
"""


class UndermarginError(Exception):
    """The root: catch it to catch every expected error."""


class InputError(UndermarginError, ValueError):
    """What was passed in cannot be used."""


class ObservationError(UndermarginError):
    """What a tracker was shown, or was not, cannot be scored."""


class NotMergedError(ObservationError):
    """Scores were read before the ranks of a distributed job had been merged."""


class IdentifyError(UndermarginError):
    """These runs cannot be judged in this way."""


class TrainingError(UndermarginError):
    """A training could not be brought to its end."""


class DivergedError(TrainingError):
    """A training's weights are no numbers any more."""


class FolderError(UndermarginError):
    """A scan folder is damaged, in use, or belongs to another data set."""


class ModelError(UndermarginError):
    """A pretrained model is not there, or cannot be loaded."""


class UndermarginWarning(UserWarning):
    """Something that works but is probably not meant."""
