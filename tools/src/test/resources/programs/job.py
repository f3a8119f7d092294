#!/usr/bin/python3 -IS
# A program in a process group of its own that reads its terminal.
import os, signal, sys, termios, time

os.setpgid(0, 0)
signal.signal(signal.SIGINT, lambda s, f: print("interrupted", flush=True))
deadline = time.monotonic() + 30
while os.tcgetpgrp(0) != os.getpgrp():
    if time.monotonic() > deadline:
        sys.exit("never got the terminal")
print("ready", flush=True)
while True:
    line = sys.stdin.readline()
    print("read", line.strip(), flush=True)
    if line == "raw\n":
        settings = termios.tcgetattr(0)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(0, termios.TCSANOW, settings)
        print("echo off", flush=True)
    if line == "quit\n":
        sys.exit(7)
