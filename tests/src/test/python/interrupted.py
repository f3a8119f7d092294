"""Interrupted by Ctrl-C (SIGINT) in the middle of its work, as often as one likes; counts the interruptions."""
import time

from check import done, must, report, stopped, tick

interruptions = 0
total = 0
step = 0
while not stopped():
    try:
        for step in range(step, step + 10):
            total += step
            must(total == step * (step + 1) // 2, "the sum is wrong")
            time.sleep(0.002)
        step += 1
        tick()
    except KeyboardInterrupt:
        interruptions += 1
        report("interrupted %d" % interruptions)
        total = step * (step + 1) // 2
        step += 1
done()
