# Counts. Four threads add their share to every number; a child process at the end of a pipe writes them to a file.
# Both check that no number is missing or comes twice, and the exit status tells. Argument: the file.
import os
import signal
import sys
import threading
import time

WORKERS = 4

read_end, write_end = os.pipe()
child = os.fork()
if child == 0:
    # Ends when the pipe does, not by a signal to the whole tree.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.close(write_end)
    file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    expected = 1
    for line in os.fdopen(read_end):
        if int(line) != expected:
            os._exit(1)
        os.write(file, line.encode())
        expected += 1
    os._exit(0)
os.close(read_end)

stopping = False
turn = threading.Condition()
shares = [0] * WORKERS
number = 0


def stop(signal_number, frame):
    global stopping
    stopping = True


def work(me):
    while True:
        with turn:
            turn.wait_for(lambda: stopping or shares[me] < number)
            if stopping:
                return
            shares[me] += 1
            turn.notify_all()


signal.signal(signal.SIGTERM, stop)
workers = [threading.Thread(target=work, args=(i,)) for i in range(WORKERS)]
for worker in workers:
    worker.start()
while not stopping:
    with turn:
        number += 1
        turn.notify_all()
        turn.wait_for(lambda: stopping or all(share == number for share in shares))
    if not stopping:
        os.write(write_end, b"%d\n" % number)
        time.sleep(0.01)
with turn:
    turn.notify_all()
for worker in workers:
    worker.join()
os.close(write_end)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
