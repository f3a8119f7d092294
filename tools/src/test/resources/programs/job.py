#!/usr/bin/python3 -IS
# A program in a process group of its own that reads its terminal.
import os, signal, sys, termios, time



def say(*words):
    # Unbuffered: print must not be entered again by a signal handler.
    os.write(1, (" ".join(words) + "\n").encode())


os.setpgid(0, 0)
signal.signal(signal.SIGINT, lambda s, f: say("interrupted"))
deadline = time.monotonic() + 30
while os.tcgetpgrp(0) != os.getpgrp():
    if time.monotonic() > deadline:
        sys.exit("never got the terminal")
say("ready")
while True:
    line = sys.stdin.readline()
    say("read", line.strip())
    if line == "raw\n":
        settings = termios.tcgetattr(0)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(0, termios.TCSANOW, settings)
        say("echo off")
    if line == "quit\n":
        sys.exit(7)
