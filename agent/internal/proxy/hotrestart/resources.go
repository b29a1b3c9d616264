package hotrestart

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"aether.internal/agent/internal/proxy/envoy"
)

// This file asks beforehand whether the machine has what the next epoch needs.

// checkShm refuses a first start that Envoy could only answer with an abort:
// its shared segment belongs to somebody else (fact 7), or doesn't fit.
func checkShm(dir string, baseID uint32) error {
	segment := envoy.SegmentPath(baseID)
	info, err := os.Lstat(segment)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkRoom(dir)
	case err != nil:
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() && os.Geteuid() != 0 {
		return fmt.Errorf("base-id %d: the shared segment %s belongs to uid %d and we are uid %d; remove it, run as its owner, or choose another --base-id", baseID, segment, st.Uid, os.Geteuid())
	}
	return nil
}

// shmRoom is far more than the segment's 104 bytes: whole pages are what
// counts, and a full tmpfs shows as SIGBUS in the middle of a start.
const shmRoom = 16 << 10

func checkRoom(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < shmRoom {
		return fmt.Errorf("%s is full: %d bytes are free and Envoy's shared segment needs room for %d; free some", dir, free, shmRoom)
	}
	return nil
}

// filesNeeded is what an epoch needs before its first connection: a newcomer
// that has fewer aborts half-way (fact 25).
func filesNeeded(listeners, workers int) uint64 { return uint64(listeners*workers) + 100 }

// checkFiles refuses a start that the limit of open files can't carry.
func checkFiles(in *input, known *envoy.Resources, workers int) *Refusal {
	listeners := len(in.boot.Listeners)
	if known != nil {
		listeners += len(known.DynamicListeners)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil
	}
	if need := filesNeeded(listeners, workers); limit.Cur < need {
		return &Refusal{Step: "check the limit of open files", Code: ExitUsage, Text: fmt.Sprintf(
			"%d listeners and %d workers need at least %d open files, and the limit is %d; raise it (nofile), or lower --concurrency at a restart of the container",
			listeners, workers, need, limit.Cur)}
	}
	return nil
}

// headroom warns when both epochs together may not fit into the cgroup's
// memory: the newcomer is the one that would be killed (fact 26). "" is fine.
func headroom(root string, servingPID int) string {
	limit, used, ok := cgroupMemory(root)
	if !ok {
		return ""
	}
	need := residentBytes(root, servingPID)
	if free := limit - min(used, limit); need > 0 && free < need {
		return fmt.Sprintf("the memory limit leaves %d MiB and the serving epoch has %d MiB: the newcomer may be killed", free>>20, need>>20)
	}
	return ""
}

// cgroupMemory is limit and use in bytes, cgroup v2 or v1; false without a limit.
func cgroupMemory(root string) (limit, used uint64, ok bool) {
	for _, names := range [][2]string{
		{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"},
		{"sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes"},
	} {
		limit, err1 := strconv.ParseUint(readTrimmed(root, names[0]), 10, 63) // "max" means none
		used, err2 := strconv.ParseUint(readTrimmed(root, names[1]), 10, 63)
		if err1 == nil && err2 == nil && limit < 1<<60 {
			return limit, used, true
		}
	}
	return 0, 0, false
}

// residentBytes is what a process alone keeps in memory: its anonymous pages.
func residentBytes(root string, pid int) uint64 {
	for line := range strings.Lines(readTrimmed(root, filepath.Join("proc", strconv.Itoa(pid), "status"))) {
		if rest, found := strings.CutPrefix(line, "RssAnon:"); found {
			kb, _ := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 50)
			return kb << 10
		}
	}
	return 0
}

// victim is how much more likely than we the kernel should end an epoch when
// memory runs out: before the commit the newcomer, after it the draining parent
// (fact 26). Of two equals it ends the bigger, the one that serves. A score is
// worth thousandths of the limit: with 500 a newcomer that has less than a
// third of what the serving epoch has, when memory runs out, is still the
// smaller one, and the serving epoch was killed.
const victim = 1000

// setVictim marks an epoch for the kernel, or takes the mark away. Raising is
// allowed to everybody, and so is going back to where it was.
func setVictim(pid int, yes bool) error {
	own, err := strconv.Atoi(readTrimmed("/", "proc/self/oom_score_adj"))
	if err != nil {
		return err
	}
	score := own
	if yes {
		score = min(own+victim, 1000)
	}
	return os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(strconv.Itoa(score)), 0)
}
