"""Runs commands with a limit of processor time, which does not depend on other programs of the machine."""

import shlex
import signal
import subprocess

# Ends a process that waits forever: much longer than any other limit, also on a busy machine.
WAITING = 60 * 60


class OutOfTime(Exception):
    """A command that took more processor time than its limit, or that waits forever."""


def run_limited(command, seconds, **options):
    """Runs a command like `subprocess.run`. Each of its processes may take `seconds` of processor time."""
    command = list(map(str, command))
    limited = ["sh", "-c", 'ulimit -S -t "$0" && exec "$@"', str(seconds), *command]
    try:
        done = subprocess.run(limited, capture_output=True, text=True, timeout=WAITING, **options)
    except subprocess.TimeoutExpired:
        raise OutOfTime(f"{shlex.join(command)}: no end after {WAITING} s") from None
    if done.returncode == -signal.SIGXCPU:
        raise OutOfTime(f"{shlex.join(command)}: more than {seconds} s of processor time")
    return done
