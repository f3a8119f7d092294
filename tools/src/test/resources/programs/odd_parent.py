# Runs a command as its child, with what a JVM or a shell likes to change set to something unusual.
import os, resource, signal, sys

read_end, write_end = os.pipe()
child = os.fork()
if child == 0:
    for ignored in (signal.SIGPIPE, signal.SIGUSR2, signal.SIGINT):
        signal.signal(ignored, signal.SIG_IGN)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, 400))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 4096))
    os.umask(0o037)
    os.nice(3)
    try:
        open("/proc/self/coredump_filter", "w").write("0x21")
    except OSError:
        pass
    file = os.open("/etc/passwd", os.O_RDONLY)
    os.dup2(file, 5, inheritable=True)
    os.dup2(file, 12, inheritable=True)
    os.close(file)
    os.close(read_end)
    os.close(write_end)
    environment = dict(os.environ)
    environment.update({"odd%%name": "() { :; }", "JAVA_TOOL_OPTIONS": "-Dx=y", "JDK_JAVA_OPTIONS": "-Dz", "PWD": "/nowhere",
                        "ODD_PARENT": str(os.getppid())})
    environment[b"BYTES".decode()] = os.fsdecode(b"\xff\xfe")
    os.execve(sys.argv[1], sys.argv[1:], environment)
os.close(write_end)
os.read(read_end, 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
