"""Interrupted by Ctrl-C (SIGINT) in the middle of its work, as often as one likes; counts the interruptions."""
import signal
import time

from check import done, must, report, stopped, tick

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started with it ignored
interruptions = 0
while True:
    try:
        if stopped():
            break
        total = 0
        for step in range(10):
            total += step
            must(total == step * (step + 1) // 2, "the sum is wrong")
            time.sleep(0.002)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # whole lines only
        tick()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    except KeyboardInterrupt:
        interruptions += 1
        report("interrupted %d" % interruptions)
done()
