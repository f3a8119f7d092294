"""A redis-server and two clients of it: over TCP with requests always under way, and over a Unix socket; it forks to save."""
import os
import socket
import subprocess
import time

from check import done, fail, progress, stopped, tick, ticks

directory = os.path.dirname(os.path.abspath(progress))
probe = socket.socket()
probe.bind(("127.0.0.1", 0))
port = probe.getsockname()[1]
probe.close()
path = os.path.join(directory, "redis.sock")
server = subprocess.Popen(
    ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--unixsocket", path, "--save", "", "--dir", directory],
    stdout=subprocess.DEVNULL,
)


class Client:
    def __init__(self, family, address):
        end = time.monotonic() + 30
        while True:
            self.socket = socket.socket(family)
            try:
                self.socket.connect(address)
                break
            except OSError as error:
                self.socket.close()
                if time.monotonic() > end or server.poll() is not None:
                    fail("no redis: %s" % error)
                time.sleep(0.02)
        self.answers = self.socket.makefile("rb")

    def send(self, *words):
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))

    def expect(self, *answers):
        for answer in answers:
            got = self.answers.readline().rstrip(b"\r\n")
            if got != answer:
                fail("redis gave %r, not %r" % (got, answer))


tcp = Client(socket.AF_INET, ("127.0.0.1", port))
unix = Client(socket.AF_UNIX, path)
asked = 0
while not stopped():
    number = ticks() + 1
    while asked < number + 3:
        asked += 1
        tcp.send(b"INCR", b"counter")
    tcp.expect(b":%d" % number)
    unix.send(b"SET", b"key", b"v%d" % number)
    unix.send(b"GET", b"key")
    unix.expect(b"+OK", b"$%d" % len(b"v%d" % number), b"v%d" % number)
    if number % 50 == 0:
        unix.send(b"BGSAVE")
        unix.answers.readline()
    tick()
    time.sleep(0.002)
for number in range(ticks() + 1, asked + 1):
    tcp.expect(b":%d" % number)
unix.send(b"SHUTDOWN", b"NOSAVE")
if server.wait(30) != 0:
    fail("redis ended with %s" % server.returncode)
done()
