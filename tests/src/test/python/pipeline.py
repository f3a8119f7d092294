"""Threads, locks, queues, generators, and a pipeline of subprocesses: python -> tr -> cat -> python."""
import hashlib
import queue
import signal
import subprocess
import threading
import time

from check import done, guarded, must, stopped, tick

handoff = queue.Queue(8)
counts = [0] * 4
lock = threading.RLock()
condition = threading.Condition()
local = threading.local()
over = threading.Event()


@guarded
def producer():
    n = 0
    while not over.is_set():
        handoff.put((n, hashlib.sha256(b"%d" % n).hexdigest()))
        n += 1
        time.sleep(0.001)
    handoff.put(None)


@guarded
def consumer():
    expected = 0
    while True:
        item = handoff.get()
        if item is None:
            return
        must(item[0] == expected, "item %r instead of %d" % (item, expected))
        must(item[1] == hashlib.sha256(b"%d" % expected).hexdigest(), "hash of item %d" % expected)
        expected += 1


@guarded
def counter(i):
    local.name = "thread-%d" % i
    while not over.is_set():
        with lock, lock:
            counts[i] += 1
        must(local.name == "thread-%d" % i, "thread-local value is %s" % local.name)
        with condition:
            condition.notify_all()
        over.wait(0.003)


def fibonacci():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b


interrupted = []
signal.signal(signal.SIGUSR1, lambda number, frame: interrupted.append(number))
threads = [threading.Thread(target=f, args=a) for f, a in
           [(producer, ()), (consumer, ())] + [(counter, (i,)) for i in range(4)]]
for thread in threads:
    thread.start()
upper = subprocess.Popen(["tr", "a-z", "A-Z"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
cat = subprocess.Popen(["cat"], stdin=upper.stdout, stdout=subprocess.PIPE)
upper.stdout.close()
# tr buffers what it reads: its output comes late or at the end, and is compared in the order it was sent.
sent, received = bytearray(), bytearray()


@guarded
def reader():
    while True:
        block = cat.stdout.read1(1000)
        if not block:
            return
        received.extend(block)
        must(sent.upper().startswith(bytes(received)), "the pipeline gave something else")


reading = threading.Thread(target=reader)
reading.start()
numbers = fibonacci()
a, b = next(numbers), next(numbers)
big = {i: str(i) * 3 for i in range(20000)}
while not stopped():
    c = next(numbers)
    must(c == a + b, "the generator jumped")
    a, b = b, c
    line = b"line %d of the pipeline\n" % len(sent)
    sent.extend(line)
    upper.stdin.write(line)
    upper.stdin.flush()
    must(big[len(sent) % 20000] == str(len(sent) % 20000) * 3, "the dictionary changed")
    before = list(counts)
    with condition:
        must(condition.wait_for(lambda: all(x > y for x, y in zip(counts, before)), 60), "a thread stands still")
    if len(sent) % 7 == 0:
        must(subprocess.run(["sh", "-c", "exit 7"]).returncode == 7, "status of a subprocess")
    tick()
upper.stdin.close()
must(upper.wait() == 0 and cat.wait() == 0, "the pipeline failed")
reading.join()
must(received == sent.upper(), "the pipeline lost something: %d of %d bytes" % (len(received), len(sent)))
over.set()
for thread in threads:
    thread.join()
done()
