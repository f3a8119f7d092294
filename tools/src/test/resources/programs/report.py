#!/usr/bin/python3 -ISB
# Prints what a program gets from whoever starts it, without the process ids, which differ from run to run.
import os, resource, sys

print("arguments", sys.argv[1:])
print("pid is the parent's child:", os.getppid() == int(os.environ["ODD_PARENT"]))
for line in open("/proc/self/status"):
    if line.startswith(("SigBlk", "SigIgn", "SigCgt", "Threads", "Umask", "NoNewPrivs", "Name", "Uid", "CapEff")):
        print(line.strip())
for fd in sorted(map(int, os.listdir("/proc/self/fd"))):
    try:
        target = os.readlink("/proc/self/fd/%d" % fd)
    except FileNotFoundError:
        continue
    print("descriptor", fd, target if target.startswith("/etc") else "")
print("coredump_filter", open("/proc/self/coredump_filter").read().strip())
for name in ("NOFILE", "CORE", "STACK", "AS", "NPROC"):
    print(name, resource.getrlimit(getattr(resource, "RLIMIT_" + name)))
print("nice", os.nice(0), "oom", open("/proc/self/oom_score_adj").read().strip())
print("working directory", os.getcwd(), "group", os.getpgrp() == os.getpgid(os.getppid()))
for entry in open("/proc/self/environ", "rb").read().split(b"\0"):
    if not entry.startswith(b"ODD_PARENT="):
        sys.stdout.flush()
        sys.stdout.buffer.write(entry.replace(b"\xff\xfe", b"(bytes)") + b"\n")
