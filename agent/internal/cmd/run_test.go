package cmd

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestModestUnlessTheEnvironmentSaysOtherwise(t *testing.T) {
	procs, percent := runtime.GOMAXPROCS(8), debug.SetGCPercent(100)
	defer func() { runtime.GOMAXPROCS(procs); debug.SetGCPercent(percent) }()
	measured := func() (int, int) {
		percent := debug.SetGCPercent(100)
		debug.SetGCPercent(percent)
		return runtime.GOMAXPROCS(0), percent
	}

	beModest(func(string) (string, bool) { return "any", true })
	if procs, percent := measured(); procs != 8 || percent != 100 {
		t.Errorf("the environment's word was not kept: %d processors, %d %%", procs, percent)
	}
	beModest(func(string) (string, bool) { return "", false })
	if procs, percent := measured(); procs != modestProcs || percent != modestGC {
		t.Errorf("%d processors, %d %%", procs, percent)
	}
	runtime.GOMAXPROCS(1)
	beModest(func(string) (string, bool) { return "", false })
	if procs, _ := measured(); procs != 1 {
		t.Errorf("one processor became %d", procs)
	}
}
