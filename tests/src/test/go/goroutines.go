// Goroutines on several threads, channels, maps, timers, garbage collection; see check.h for the rules.
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

var progress = os.Args[1]

func report(line string) {
	f, err := os.OpenFile(progress, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0666)
	if err == nil {
		f.WriteString(line + "\n")
		f.Close()
	}
}

func fail(format string, arguments ...interface{}) {
	report("FAIL " + fmt.Sprintf(format, arguments...))
	os.Exit(99)
}

func stopped() bool {
	_, err := os.Stat(progress + ".stop")
	return err == nil
}

func main() {
	const workers = 50
	ring := make([]chan int, workers)
	for i := range ring {
		ring[i] = make(chan int)
	}
	for i := 1; i < workers; i++ {
		go func(i int) {
			for n := range ring[i-1] {
				ring[i] <- n + 1
			}
			close(ring[i])
		}(i)
	}
	var mutex sync.RWMutex
	table := map[int][32]byte{}
	var beats int64
	go func() {
		ticker := time.NewTicker(5 * time.Millisecond)
		for range ticker.C {
			atomic.AddInt64(&beats, 1)
		}
	}()
	locked := make(chan int)
	go func() {
		runtime.LockOSThread()
		for n := range locked {
			locked <- n * 2
		}
	}()
	go func() {
		for { // spins without a system call
			mutex.RLock()
			for k, v := range table {
				if sha256.Sum256([]byte(fmt.Sprint(k))) != v {
					fail("the map changed at %d", k)
				}
			}
			mutex.RUnlock()
			time.Sleep(time.Millisecond)
		}
	}()
	last := time.Now()
	for n := 1; !stopped(); n++ {
		ring[0] <- n
		if got := <-ring[workers-1]; got != n+workers-1 {
			fail("the ring gave %d for %d", got, n)
		}
		locked <- n
		if got := <-locked; got != 2*n {
			fail("the locked thread gave %d for %d", got, n)
		}
		mutex.Lock()
		table[n%500] = sha256.Sum256([]byte(fmt.Sprint(n % 500)))
		mutex.Unlock()
		garbage := make([][]byte, 100)
		for i := range garbage {
			garbage[i] = make([]byte, 10000)
			garbage[i][i] = byte(n)
		}
		if n%20 == 0 {
			runtime.GC()
		}
		for i := range garbage {
			if garbage[i][i] != byte(n) {
				fail("the collector lost something")
			}
		}
		now := time.Now()
		if now.Before(last) {
			fail("time went back")
		}
		last = now
		report(fmt.Sprint("tick ", n))
		time.Sleep(2 * time.Millisecond)
	}
	before := atomic.LoadInt64(&beats)
	for i := 0; atomic.LoadInt64(&beats) == before; i++ {
		if i > 1000 {
			fail("the ticker does not tick")
		}
		time.Sleep(5 * time.Millisecond)
	}
	report("done")
	os.Exit(42)
}
