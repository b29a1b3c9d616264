package hotrestart

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// TestSimulatedSchedules runs as many schedules as AETHER_SIM_SCHEDULES says,
// 10,000 by default. AETHER_SIM_SEED tells the story of that one instead.
func TestSimulatedSchedules(t *testing.T) {
	simulate(t, "AETHER_SIM_SCHEDULES", "AETHER_SIM_SEED", drawn)
}

// TestSimulatedPods is TestSimulatedSchedules of a node with several supervisors
// and a kubelet: AETHER_SIM_PODS schedules, AETHER_SIM_PODS_SEED.
func TestSimulatedPods(t *testing.T) {
	simulate(t, "AETHER_SIM_PODS", "AETHER_SIM_PODS_SEED", drawnPods)
}

func simulate(t *testing.T, schedulesVar, seedVar string, drawn func(uint64) schedule) {
	if seed := number(seedVar, 0); seed > 0 {
		told := &story{}
		broken := drawn(seed).play(next, nil, told)
		t.Logf("seed %d: %+v\n%s", seed, broken, told)
		return
	}
	schedules := number(schedulesVar, 10_000)
	if testing.Short() || underRace {
		schedules = min(schedules, 1_000)
	}
	if seed, broken := firstBroken(drawn, schedules, runtime.GOMAXPROCS(0)); broken != nil {
		t.Fatal(retold(drawn(seed), next, nil, broken))
	}
}

// firstBroken plays the schedules of seeds 1 to n, in as many goroutines as
// there are processors; all have ended when it returns.
func firstBroken(drawn func(uint64) schedule, n uint64, workers int) (seed uint64, broken *violation) {
	var last atomic.Uint64
	var mu sync.Mutex
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for s := last.Add(1); s <= n; s = last.Add(1) {
				if v := drawn(s).play(next, nil, nil); v != nil {
					mu.Lock()
					if broken == nil || s < seed {
						seed, broken = s, v
					}
					mu.Unlock()
					last.Store(n)
				}
			}
		})
	}
	all.Wait()
	return seed, broken
}

func number(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

func FuzzSimulatedSchedule(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, drawn(seed).encoded())
	}
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) {
		s := decoded(seed, data)
		if broken := s.play(next, nil, nil); broken != nil {
			t.Fatal(retold(s, next, nil, broken))
		}
	})
}

// TestASeedIsAlwaysTheSameRun: without that no story could be told again.
func TestASeedIsAlwaysTheSameRun(t *testing.T) {
	for seed := range uint64(30) {
		a, b := &story{}, &story{}
		drawn(seed).play(next, nil, a)
		drawn(seed).play(next, nil, b)
		if a.String() != b.String() {
			t.Fatalf("seed %d:\n%s\nand then\n%s", seed, a, b)
		}
	}
}
