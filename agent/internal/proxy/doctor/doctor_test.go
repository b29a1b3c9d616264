package doctor

import (
	"strings"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/control"
)

// healthy are the facts of a place where nothing is to be done.
func healthy() Facts {
	return Facts{
		BaseID: 7, UID: 100, Segment: &Segment{Path: "/dev/shm/envoy_shared_memory_70", UID: 100, Size: 104},
		Shm: &Room{Free: 1 << 20, Size: 64 << 20}, FileLimit: 1024, FilesNeeded: 110,
		InotifyInstances: 128, InotifyUsed: 3, Watch: true,
		Grace: 60 * time.Second, Drain: 25 * time.Second, Limit: 40 * time.Second,
		MemoryLimit: 512 << 20, MemoryUsed: 100 << 20, EpochMemory: 80 << 20,
		ConcurrencyPinned: true, Workers: 4, StateDir: "/run/aether", StateDirPerm: 0o700, InContainer: true,
	}
}

// Each thing that can be wrong is found, alone, and comes with what to do.
func TestEachThingThatIsWrongIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Facts)
		check string
		found string
		do    string
	}{
		"a foreign Envoy":    {func(f *Facts) { f.Foreign = "an Envoy that is not ours answers" }, "base-id", "not ours", "choose another --base-id"},
		"another's segment":  {func(f *Facts) { f.Segment.UID = 0 }, "segment", "belongs to uid 0, and we are uid 100", "remove it"},
		"a small segment":    {func(f *Facts) { f.Segment.Size = 5 }, "segment", "5 bytes", "choose another --base-id"},
		"a large segment":    {func(f *Facts) { f.Segment.Size = 1 << 20 }, "segment", "1048576 bytes", "choose another --base-id"},
		"a full shm":         {func(f *Facts) { f.Shm.Free = 4096 }, "shared memory", "4 KiB free", "SIGBUS"},
		"few files":          {func(f *Facts) { f.FilesNeeded = 600 }, "open files", "needs 600", "to at least 1200"},
		"no inotify":         {func(f *Facts) { f.InotifyUsed = 125 }, "inotify", "125 of this user's 128", "max_user_instances"},
		"a subPath":          {func(f *Facts) { f.ConfigMount = "/etc/envoy/envoy.yaml" }, "config mount", "it will never change", "without subPath"},
		"a short grace":      {func(f *Facts) { f.Grace = 30 * time.Second }, "grace period", "is 30s; a stop may take 50s", "at least 50s"},
		"admin for everyone": {func(f *Facts) { f.AdminTCP, f.SharedNet = "127.0.0.1:9901", "interface veth1" }, "admin address", "others share (interface veth1)", "--admin-per-epoch"},
		"memory for one":     {func(f *Facts) { f.MemoryUsed = 500 << 20 }, "memory", "12 MiB are free", "raise the limit"},
		"more than all used": {func(f *Facts) { f.MemoryUsed = 600 << 20 }, "memory", "0 MiB are free", "raise the limit"},
		"unpinned":           {func(f *Facts) { f.ConcurrencyPinned = false }, "concurrency", "4 workers, from CPU affinity", "say --concurrency"},
		"an open state dir":  {func(f *Facts) { f.StateDirPerm = 0o755 }, "state directory", "mode 755", "chmod 700"},
		"an unshared one":    {func(f *Facts) { f.StateDirOnRoot = true }, "state directory", "container's own file system", "mount a volume"},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy()
			c.spoil(&f)
			var wrong []control.Finding
			for _, finding := range Judge(f) {
				if !finding.OK {
					wrong = append(wrong, finding)
				}
			}
			if len(wrong) != 1 || wrong[0].Check != c.check || !strings.Contains(wrong[0].Found, c.found) || !strings.Contains(wrong[0].Do, c.do) {
				t.Errorf("%+v", wrong)
			}
		})
	}
}

func TestAHealthyPlaceHasNothingToDo(t *testing.T) {
	f := healthy()
	for _, change := range []func(){func() {}, func() { f.UID = 0 }, func() { f.AdminTCP = "127.0.0.1:9901" }, func() { f.InContainer, f.StateDirOnRoot = false, true }} {
		change()
		all := Judge(f)
		for _, finding := range all {
			if !finding.OK || finding.Do != "" || finding.Found == "" {
				t.Errorf("%+v", finding)
			}
		}
		if len(all) != 11 {
			t.Errorf("%d findings, want 11", len(all))
		}
	}
}

// What isn't known isn't judged, neither well nor badly.
func TestWhatIsNotKnownIsNotJudged(t *testing.T) {
	for _, finding := range Judge(Facts{ConcurrencyPinned: true}) {
		switch finding.Check {
		case "segment", "shared memory", "open files", "inotify", "config mount", "grace period", "memory":
			t.Errorf("judged without a fact: %+v", finding)
		}
	}
}
