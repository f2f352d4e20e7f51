"""Worker processes that end with the process that started them."""

import ctypes
import os
import signal
import sys

DIE_WITH_PARENT = 1  # prctl's PR_SET_PDEATHSIG


def end_with(parent: int) -> None:
    """End this process when its parent ends, even by a kill: it must not continue to write.

    On other systems than Linux, this process only ends if the parent is gone already. An interrupt from the keyboard
    is left to the parent, which ends its workers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
