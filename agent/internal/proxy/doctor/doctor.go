// Package doctor looks for what will go wrong one day on this machine, and says
// what to do: a pure judgement (Judge) of facts that others gather.
package doctor

import (
	"fmt"
	"time"

	"aether.internal/agent/internal/proxy/control"
)

// Facts are what is known of the place. A zero value means that a fact is not
// known; what isn't known is not judged.
type Facts struct {
	BaseID uint32
	UID    int

	Foreign string   // who else answers for this base-id, a sentence
	Segment *Segment // nil: there is none yet
	Shm     *Room

	FileLimit   uint64 // open files, of one process
	FilesNeeded uint64 // of one epoch, with the connections it has now

	InotifyInstances uint64 // the user's limit; 0: not known
	InotifyUsed      uint64 // instances of processes that can be seen

	Watch       bool   // --watch-config
	ConfigMount string // the file that is a mount of its own

	Grace, Drain, Limit time.Duration // the grace period, and our timers; Grace 0: not known

	AdminTCP  string // address
	SharedNet string // how it shows that the network namespace is shared

	MemoryLimit, MemoryUsed, EpochMemory uint64 // bytes

	ConcurrencyPinned bool
	Workers           int

	StateDir       string
	StateDirPerm   uint32 // permission bits
	StateDirOnRoot bool   // it lies on the container's own file system
	InContainer    bool
}

// Segment is Envoy's shared memory.
type Segment struct {
	Path string
	UID  int
	Size int64
}

// Room is a file system's.
type Room struct{ Free, Size uint64 }

// What the checks want.
const (
	segmentSize = 104      // of Envoy's segment, on x86-64 and, as far as known, larger elsewhere
	segmentMost = 1 << 10  // no known layout is larger
	shmWanted   = 64 << 10 // far more than two segments
	exitReserve = 10 * time.Second
	inotifyFree = 8
)

// Judge is every check in a fixed order; a check that lacks its facts is left
// out.
func Judge(f Facts) []control.Finding {
	var all []control.Finding
	for _, check := range []struct {
		name  string
		judge func(Facts) (found, do string, known bool)
	}{
		{"base-id", baseID}, {"segment", segment}, {"shared memory", sharedMemory}, {"open files", openFiles}, {"inotify", inotify},
		{"config mount", configMount}, {"grace period", gracePeriod}, {"admin address", adminAddress}, {"memory", memory},
		{"concurrency", concurrency}, {"state directory", stateDir},
	} {
		if found, do, known := check.judge(f); known {
			all = append(all, control.Finding{Check: check.name, OK: do == "", Found: found, Do: do})
		}
	}
	return all
}

func baseID(f Facts) (string, string, bool) {
	if f.Foreign == "" {
		return fmt.Sprintf("nobody else answers for base-id %d", f.BaseID), "", true
	}
	return f.Foreign, "choose another --base-id: a second Envoy of the same one steals the first one's shared memory", true
}

func segment(f Facts) (string, string, bool) {
	s := f.Segment
	switch {
	case s == nil:
		return "", "", false
	case s.UID != f.UID && f.UID != 0:
		return fmt.Sprintf("%s belongs to uid %d, and we are uid %d", s.Path, s.UID, f.UID),
			"remove it while no Envoy of this base-id lives, or choose another --base-id: Envoy can't open it", true
	case s.Size < segmentSize || s.Size > segmentMost:
		return fmt.Sprintf("%s has %d bytes, and Envoy's has %d", s.Path, s.Size, segmentSize),
			"it is not Envoy's, or of a layout that can't be repaired after a failed start: choose another --base-id", true
	}
	return fmt.Sprintf("%s is ours and has %d bytes", s.Path, s.Size), "", true
}

func sharedMemory(f Facts) (string, string, bool) {
	if f.Shm == nil {
		return "", "", false
	}
	found := fmt.Sprintf("/dev/shm has %d KiB free of %d", f.Shm.Free>>10, f.Shm.Size>>10)
	if f.Shm.Free < shmWanted {
		return found, "free some: a full /dev/shm shows as SIGBUS in the middle of a start", true
	}
	return found, "", true
}

func openFiles(f Facts) (string, string, bool) {
	if f.FileLimit == 0 || f.FilesNeeded == 0 {
		return "", "", false
	}
	found := fmt.Sprintf("each epoch may open %d files; with its listeners, workers and connections of now it needs %d", f.FileLimit, f.FilesNeeded)
	// The successor gets every connection that the old epoch tells to go.
	if f.FileLimit < 2*f.FilesNeeded {
		return found, fmt.Sprintf("raise nofile (LimitNOFILE=, ulimit -n) to at least %d, so that a successor can carry what both have", 2*f.FilesNeeded), true
	}
	return found, "", true
}

func inotify(f Facts) (string, string, bool) {
	if !f.Watch || f.InotifyInstances == 0 {
		return "", "", false
	}
	found := fmt.Sprintf("%d of this user's %d inotify instances are seen in use", f.InotifyUsed, f.InotifyInstances)
	if f.InotifyUsed+inotifyFree > f.InotifyInstances {
		return found, "raise fs.inotify.max_user_instances: without one changes are only found by the slow poll", true
	}
	return found, "", true
}

func configMount(f Facts) (string, string, bool) {
	if !f.Watch {
		return "", "", false
	}
	if f.ConfigMount == "" {
		return "the bootstrap lies in a directory that can be watched", "", true
	}
	return fmt.Sprintf("%s is a mount of its own (a subPath): it will never change", f.ConfigMount),
		"mount its directory, without subPath", true
}

func gracePeriod(f Facts) (string, string, bool) {
	if f.Grace == 0 {
		return "", "", false
	}
	// A stop waits for an older epoch up to its limit, then ends what is left.
	need := max(f.Drain, f.Limit) + exitReserve
	found := fmt.Sprintf("the grace period is %v; a stop may take %v", f.Grace, need)
	if f.Grace < need {
		return found, fmt.Sprintf("raise it (terminationGracePeriodSeconds, TimeoutStopSec=) to at least %v, or lower --parent-shutdown-time: what is left is cut", need), true
	}
	return found, "", true
}

func adminAddress(f Facts) (string, string, bool) {
	switch {
	case f.AdminTCP == "":
		return "the admin is a Unix socket", "", true
	case f.SharedNet == "":
		return fmt.Sprintf("the admin is at %s, and nobody else is seen in this network namespace", f.AdminTCP), "", true
	}
	return fmt.Sprintf("the admin is at %s, in a network namespace that others share (%s)", f.AdminTCP, f.SharedNet),
		"give it a Unix socket (admin.address.pipe), or --admin-per-epoch: whoever can connect can end Envoy", true
}

func memory(f Facts) (string, string, bool) {
	if f.MemoryLimit == 0 || f.EpochMemory == 0 {
		return "", "", false
	}
	free := f.MemoryLimit - min(f.MemoryUsed, f.MemoryLimit)
	found := fmt.Sprintf("of the memory limit %d MiB are free, and the serving epoch has %d MiB", free>>20, f.EpochMemory>>20)
	if free < f.EpochMemory {
		return found, "raise the limit: two epochs live at once in a handoff, and the newcomer would be killed", true
	}
	return found, "", true
}

func concurrency(f Facts) (string, string, bool) {
	if f.ConcurrencyPinned {
		return fmt.Sprintf("%d workers, as configured", f.Workers), "", true
	}
	return fmt.Sprintf("%d workers, from CPU affinity and cgroup limit", f.Workers),
		"say --concurrency: another pod or restart with another CPU limit would choose another number, and fewer workers drop connections", true
}

func stateDir(f Facts) (string, string, bool) {
	switch {
	case f.StateDirPerm&0o077 != 0:
		return fmt.Sprintf("%s has mode %o", f.StateDir, f.StateDirPerm),
			"chmod 700: whoever reaches the sockets in it can take Envoy's listeners", true
	case f.InContainer && f.StateDirOnRoot:
		return fmt.Sprintf("%s lies on the container's own file system", f.StateDir),
			"mount a volume there (emptyDir; a hostPath to hand over between pods): it is not shared with anybody, and writing to it is slow", true
	}
	return fmt.Sprintf("%s is private", f.StateDir), "", true
}
