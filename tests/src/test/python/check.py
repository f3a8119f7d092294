"""What the self-checking Python programs share; see check.h for the rules."""
import os
import sys
import traceback

progress = sys.argv[1]
_ticks = 0


def report(line):
    fd = os.open(progress, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(fd, (line + "\n").encode())
    os.close(fd)


def fail(why):
    report("FAIL " + why)
    os._exit(99)


def must(condition, why):
    if not condition:
        fail(why)


def tick():
    global _ticks
    _ticks += 1
    report("tick %d" % _ticks)


def ticks():
    return _ticks


def stopped():
    return os.path.exists(progress + ".stop")


def done():
    report("done")
    sys.exit(42)


def guarded(function):
    """Runs a thread's function; an exception in it is a failure of the program."""

    def run(*arguments):
        try:
            function(*arguments)
        except BaseException:
            fail(traceback.format_exc().replace("\n", " | "))

    return run


sys.excepthook = lambda kind, value, trace: fail("".join(traceback.format_exception(kind, value, trace)).replace("\n", " | "))
