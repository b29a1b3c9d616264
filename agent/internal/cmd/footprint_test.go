package cmd

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"aether.internal/agent/internal/proxy/hotrestart"
)

// mapped is how much of files is resident, in kB.
func mapped(t *testing.T) (kb int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatal(err)
	}
	return kb
}

func TestOurProgramIsUnmappedAndStillRuns(t *testing.T) {
	before := mapped(t)
	if err := forgetProgram(); err != nil {
		t.Fatal(err)
	}
	if after := mapped(t); after > before-1000 {
		t.Errorf("%d kB of files were mapped, and still %d kB are", before, after)
	}
}

func TestItIsUnmappedOnceAnEpochServes(t *testing.T) {
	done := 0
	tell := firstServed(nil, func() { done++ })
	tell(hotrestart.Notice{})
	if done != 0 {
		t.Error("before the start is over")
	}
	tell(hotrestart.Notice{Served: true})
	tell(hotrestart.Notice{Served: true, Changing: true})
	if done != 1 {
		t.Errorf("%d times", done)
	}
}
