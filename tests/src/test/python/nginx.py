"""nginx with workers, and a slow download of a large file that goes on all the time."""
import os
import socket
import subprocess
import time

from check import done, fail, progress, stopped, tick

directory = os.path.dirname(os.path.abspath(progress))
probe = socket.socket()
probe.bind(("127.0.0.1", 0))
port = probe.getsockname()[1]
probe.close()
SIZE = 400_000_000
with open(os.path.join(directory, "large"), "wb") as file:
    file.truncate(SIZE)
    for at in range(0, SIZE, 1 << 20):
        file.seek(at)
        file.write(b"%015d\n" % at)
configuration = os.path.join(directory, "nginx.conf")
with open(configuration, "w") as file:
    file.write("""
user root; worker_processes 2; daemon off; pid %(d)s/pid; error_log %(d)s/error.log;
events { worker_connections 64; }
http { access_log off; sendfile on; client_body_temp_path %(d)s/a; proxy_temp_path %(d)s/b; fastcgi_temp_path %(d)s/c; uwsgi_temp_path %(d)s/d;
       scgi_temp_path %(d)s/e; server { listen 127.0.0.1:%(p)d; root %(d)s; } }
""" % {"d": directory, "p": port})
os.chmod(directory, 0o755)
server = subprocess.Popen(["/usr/sbin/nginx", "-c", configuration, "-p", directory, "-e", os.path.join(directory, "error.log")])


def connect():
    end = time.monotonic() + 30
    while True:
        connection = socket.socket()
        try:
            connection.connect(("127.0.0.1", port))
            return connection
        except OSError as error:
            connection.close()
            if time.monotonic() > end or server.poll() is not None:
                fail("no nginx: %s" % error)
            time.sleep(0.02)


download = connect()
download.sendall(b"GET /large HTTP/1.0\r\n\r\n")
stream = download.makefile("rb")
while stream.readline() not in (b"\r\n", b""):
    pass
offset = 0
while not stopped():
    block = stream.read(1 << 16)
    if len(block) != 1 << 16:
        fail("the download ended at %d" % (offset + len(block)))
    if offset % (1 << 20) == 0 and block[:16] != b"%015d\n" % offset:
        fail("at %d stands %r" % (offset, block[:16]))
    offset += len(block)
    small = connect()
    small.sendall(b"GET /nginx.conf HTTP/1.0\r\n\r\n")
    if not small.makefile("rb").read().startswith(b"HTTP/1.1 200"):
        fail("a request failed")
    small.close()
    tick()
    time.sleep(0.01)
download.close()
server.terminate()
if server.wait(30) != 0:
    fail("nginx ended with %s" % server.returncode)
done()
