"""Worker processes that do not outlive whoever started them."""

import ctypes
import os
import signal
import sys

DIE_WITH_PARENT = 1  # prctl's PR_SET_PDEATHSIG


def end_with(parent: int) -> None:
    """End this process when its parent ends, even if that is killed: it must not go on writing.

    Elsewhere than on Linux this process only ends at once if the parent is gone already. An interrupt from the
    keyboard is the parent's to handle: it ends its workers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
