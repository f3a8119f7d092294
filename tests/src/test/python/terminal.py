"""
Drives programs on pseudo-terminals: launches them in one, checkpoints and kills them, restarts them in another.

usage: terminal.py STASIS DIRECTORY SCENARIO
"""
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import fcntl

stasis, directory, scenario = sys.argv[1:4]
name = "terminal-" + scenario
image = os.path.join(directory, name)
DEADLINE = 60


def fail(why):
    print("FAIL %s: %s" % (scenario, why))
    sys.exit(1)


class Terminal:
    """A command in a session of its own on a new pseudo-terminal."""

    def __init__(self, *command):
        self.output = b""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execvp(command[0], command)

    def type(self, text):
        os.write(self.master, text)

    def read_some(self, timeout):
        ready, _, _ = select.select([self.master], [], [], timeout)
        if not ready:
            return False
        try:
            block = os.read(self.master, 4096)
        except OSError:
            return False
        self.output += block
        return bool(block)

    def expect(self, text):
        end = time.monotonic() + DEADLINE
        while text not in self.output:
            if time.monotonic() > end:
                fail("no %r in %r" % (text, self.output[-2000:]))
            self.read_some(0.1)
        at = self.output.index(text) + len(text)
        before, self.output = self.output[:at], self.output[at:]
        return before

    def status(self):
        """Reads to the end; the wait status as a shell shows it."""
        end = time.monotonic() + DEADLINE
        while True:
            self.read_some(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while self.read_some(0):
                    pass
                os.close(self.master)
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > end:
                fail("no end of process %d; it said %r" % (self.pid, self.output[-2000:]))

    def settings(self):
        return termios.tcgetattr(self.master)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def under_shell(*command):
    """As from a script: the shell leads the session and the foreground group."""
    return Terminal("/bin/sh", "-c", '"$@"; exit $?', "sh", *command)


def launch(*command):
    return under_shell(stasis, "launch", "--name", name, "--dir", image, "--", *command)


def restart():
    return under_shell(stasis, "restart", image)


class Shell(Terminal):
    """An interactive shell with job control: each command is a process group of its own."""

    def __init__(self):
        super().__init__("/bin/bash", "--norc", "--noprofile", "--noediting", "-i")
        self.type(b"PS1='> '; stty -echo\n")

    def command(self, *words):
        self.type(" ".join("'%s'" % word for word in words).encode() + b"; echo status=$?\n")

    def launch(self, *words):
        self.command(stasis, "launch", "--name", name, "--dir", image, "--", *words)

    def restart(self):
        self.command(stasis, "restart", image)

    def leave(self):
        self.type(b"exit 4\n")
        if self.status() != 4:
            fail("wrong exit status of the shell")


def run(*arguments):
    result = subprocess.run([stasis, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE)
    if result.returncode != 0:
        fail("%s gave %d: %s%s" % (" ".join(arguments), result.returncode, result.stdout, result.stderr))


def checkpoint_and_kill(terminal):
    run("checkpoint", name, "--kill")
    if terminal.status() not in (-9, 137):
        fail("the killed program has another status")


PYTHON = "/usr/bin/python3"


def script(text):
    path = os.path.join(directory, name + ".py")
    with open(path, "w") as file:
        file.write(text)
    return path


LINES = """
import os, sys
print('ready', os.tcgetpgrp(0) == os.getpgrp(), os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid())
total = 0
for line in sys.stdin:
    total += int(line)
    print('total', total, os.tcgetpgrp(0) == os.getpgrp(), os.getsid(0) == os.getpid(), flush=True)
    if total > 1000: sys.exit(total % 100)
"""

# Short sleeps: Python looks at a signal that came just before a sleep only after it.
INTERRUPT = """
import os, signal, time
n = 0
while True:
    try:
        if n == 0: print('ready', flush=True)
        while True: time.sleep(0.05)
    except KeyboardInterrupt:
        n += 1
        print('interrupted', n, flush=True)
        if n == 3: os._exit(3)
"""

RAW = """
import os, sys, termios, tty
saved = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b'ready\\r\\n')
while True:
    byte = os.read(0, 1)
    os.write(1, b'<%02x>' % byte[0])
    if byte == b'q': break
termios.tcsetattr(0, termios.TCSANOW, saved)
print('echo is', bool(termios.tcgetattr(0)[3] & termios.ECHO))
sys.exit(5)
"""

SIZE = """
import os, signal, time
def show(*_): print('size %d %d' % tuple(reversed(os.get_terminal_size(0))), flush=True)
signal.signal(signal.SIGWINCH, show)
print('ready', flush=True)
while True: signal.pause()
"""


def lines():
    count_lines(launch, restart, b"ready True False False", b" True False")


def leader():
    """The program leads the session of its terminal; at a restart the shell does, and the program gets a new one."""
    count_lines(lambda *command: Terminal(stasis, "launch", "--name", name, "--dir", image, "--", *command),
                restart, b"ready True True True", b" True True")
    a = Terminal(stasis, "launch", "--name", name + "-size", "--dir", image + "-size", "--", PYTHON, "-c", SIZE)
    a.expect(b"ready")
    run("checkpoint", name + "-size", "--kill")
    a.status()
    b = under_shell(stasis, "restart", image + "-size")
    wait_for_program()
    b.resize(40, 100)
    b.expect(b"size 40 100")
    b.type(b"\x1c")
    if b.status() not in (-3, 131):
        fail("Ctrl-\\ did not end it")


def count_lines(start, start_again, greeting, state):
    a = start(PYTHON, "-u", "-c", LINES)
    a.expect(greeting)
    a.type(b"100\n")
    a.expect(b"total 100" + state)
    run("checkpoint", name)
    a.type(b"20\n")
    a.expect(b"total 120" + state)
    checkpoint_and_kill(a)
    b = start_again()
    b.type(b"3\n")
    b.expect(b"total 123" + state)
    checkpoint_and_kill(b)
    c = start_again()
    c.type(b"900\n")
    c.expect(b"total 1023" + state)
    if c.status() != 23:
        fail("wrong exit status")


def interrupt():
    a = Shell()
    a.launch(PYTHON, script(INTERRUPT))
    a.expect(b"ready")
    a.type(b"\x03")
    a.expect(b"interrupted 1")
    run("checkpoint", name, "--kill")
    a.expect(b"status=137")
    a.leave()
    b = Shell()
    b.restart()
    wait_for_program()
    b.type(b"\x03")
    b.expect(b"interrupted 2")
    run("checkpoint", name, "--kill")
    b.expect(b"status=137")
    b.restart()
    wait_for_program()
    b.type(b"\x03")
    b.expect(b"interrupted 3")
    b.expect(b"status=3")
    b.leave()


def wait_for_program():
    """Until the restarted program runs; what is typed before goes to the restart command, rightly."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        out = subprocess.run([stasis, "ps"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE).stdout
        if name in out:
            return
    fail("the restarted program does not show in stasis ps: " + out)


def raw():
    a = launch(PYTHON, "-c", RAW)
    a.expect(b"ready")
    a.type(b"x\x03")
    a.expect(b"<78><03>")
    if a.settings()[3] & termios.ECHO:
        fail("the terminal is not raw")
    checkpoint_and_kill(a)
    b = restart()
    wait_for_program()
    end = time.monotonic() + DEADLINE
    while b.settings()[3] & (termios.ECHO | termios.ICANON | termios.ISIG):
        if time.monotonic() > end:
            fail("the new terminal did not become raw")
        time.sleep(0.01)
    b.type(b"\x04\x1a")
    b.expect(b"<04><1a>")
    b.type(b"q")
    b.expect(b"echo is True")
    if b.status() != 5:
        fail("wrong exit status")


def shell():
    """The program is an interactive shell with a job in the background and job control."""
    a = launch("/bin/bash", "--norc", "--noprofile", "--noediting", "-i")
    a.type(b"PS1='> '; stty -echo\n")
    a.type(b"x=17; sleep 1000 & echo started$((1 + 1))\n")
    a.expect(b"started2")
    checkpoint_and_kill(a)
    b = restart()
    wait_for_program()
    b.type(b"echo value $((x + 1))\n")
    b.expect(b"value 18")
    b.type(b"jobs\n")
    b.expect(b"Running")
    b.type(b"cat\n")
    b.type(b"to cat\n")
    b.expect(b"to cat")
    b.type(b"\x1a")
    b.expect(b"Stopped")
    b.type(b"fg %cat\n")
    b.type(b"again\n")
    b.expect(b"again")
    b.type(b"\x03")
    b.expect(b"> ")
    b.type(b"kill %1; wait; exit 9\n")
    if b.status() != 9:
        fail("wrong exit status")


def stop():
    """A shell restarts a program, which is stopped by Ctrl-Z and goes on with fg."""
    a = Shell()
    a.launch(PYTHON, "-u", script(LINES))
    a.expect(b"ready True False True")
    run("checkpoint", name, "--kill")
    a.expect(b"status=137")
    a.leave()
    b = Shell()
    b.restart()
    wait_for_program()
    b.type(b"500\n")
    b.expect(b"total 500 True")
    b.type(b"\x1a")
    b.expect(b"Stopped")
    b.type(b"fg\n")
    b.type(b"501\n")
    b.expect(b"total 1001 True")
    b.type(b"echo after=$?\n")
    b.expect(b"after=1\r")
    b.leave()


def size():
    a = launch(PYTHON, "-c", SIZE)
    a.expect(b"ready")
    a.resize(30, 90)
    a.expect(b"size 30 90")
    checkpoint_and_kill(a)
    b = restart()
    wait_for_program()
    b.resize(40, 100)
    b.expect(b"size 40 100")
    b.type(b"\x1c")
    if b.status() not in (-3, 131):
        fail("Ctrl-\\ did not end it")


os.environ["TERM"] = "dumb"
os.environ["PATH"] = "/usr/bin:/bin"
os.environ["PS1"] = "> "
signal.alarm(4 * DEADLINE)
{"lines": lines, "leader": leader, "interrupt": interrupt, "raw": raw, "shell": shell, "stop": stop, "size": size}[scenario]()
print("well done")
