"""A tmux server with a shell in a window, which counts what is typed; a job of the shell is stopped and goes on."""
import os
import subprocess
import time

from check import done, fail, progress, stopped, tick, ticks

directory = os.path.dirname(os.path.abspath(progress))
path = os.path.join(directory, "tmux")
os.environ.update(TERM="screen", LANG="C.UTF-8", TMUX="", PS1="> ")


def tmux(*words):
    result = subprocess.run(["tmux", "-S", path, "-f", "/dev/null", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        fail("tmux %s: %s" % (words, result.stderr))
    return result.stdout


def expect(text):
    end = time.monotonic() + 60
    while text not in tmux("capture-pane", "-p"):
        if time.monotonic() > end:
            fail("no %r on the screen: %r" % (text, tmux("capture-pane", "-p")))
        time.sleep(0.05)


tmux("new-session", "-d", "-x", "90", "-y", "30", "bash --norc --noprofile")
tmux("send-keys", "x=0; tty; stty size; sleep 1000", "Enter")
expect("30 90")
tmux("send-keys", "C-z")
expect("Stopped")
while not stopped():
    number = ticks() + 1
    tmux("send-keys", "clear; echo count $((x += 1)) $(stty size) $(tty) jobs $(jobs | grep -c Stopped)", "Enter")
    expect("count %d 30 90 /dev/pts" % number)
    tick()
    time.sleep(0.3)
tmux("send-keys", "clear; jobs; fg", "Enter")
expect("sleep 1000")
tmux("send-keys", "C-c")
tmux("send-keys", "s=$?; clear; echo ended $s", "Enter")
expect("ended 130")
tmux("kill-server")
done()
