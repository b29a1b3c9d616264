package doctor

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// This file gathers the facts that any process can find out. Errors leave a fact
// unknown: a doctor that fails for lack of a file in /proc helps nobody.

// Gather adds to f what the system tells: f's StateDir, Segment.Path and config
// are looked at. root is "/" but for tests.
func (f *Facts) Gather(root, config, segmentPath string) {
	f.UID = os.Geteuid()
	f.Segment = statSegment(segmentPath)
	f.Shm = roomOf(filepath.Join(root, "dev/shm"))
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		f.FileLimit = limit.Cur
	}
	f.InotifyInstances, _ = strconv.ParseUint(readLine(root, "proc/sys/fs/inotify/max_user_instances"), 10, 63)
	f.InotifyUsed = inotifyUsed(root)
	f.ConfigMount = mountOf(root, config)
	f.SharedNet = sharedNet(root)
	f.InContainer = inContainer(root)
	if info, err := os.Stat(f.StateDir); err == nil {
		f.StateDirPerm = uint32(info.Mode().Perm())
		f.StateDirOnRoot = sameDevice(root, f.StateDir)
	}
}

func readLine(root, path string) string {
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func statSegment(path string) *Segment {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return &Segment{Path: path, UID: int(st.Uid), Size: info.Size()}
}

func roomOf(dir string) *Room {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return nil
	}
	return &Room{Free: fs.Bavail * uint64(fs.Bsize), Size: fs.Blocks * uint64(fs.Bsize)}
}

// inotifyUsed counts the inotify descriptors of all processes that we may look at.
func inotifyUsed(root string) (used uint64) {
	processes, _ := filepath.Glob(filepath.Join(root, "proc/[0-9]*/fd"))
	for _, dir := range processes { // one after the other: a node may have a million descriptors
		links, _ := os.ReadDir(dir)
		for _, link := range links {
			if to, err := os.Readlink(filepath.Join(dir, link.Name())); err == nil && to == "anon_inode:inotify" {
				used++
			}
		}
	}
	return used
}

// mountOf is path if it, and not only a directory above it, is a mount point.
func mountOf(root, path string) string {
	f, err := os.Open(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && unescape(fields[4]) == filepath.Clean(path) {
			return path
		}
	}
	return ""
}

// unescape undoes the kernel's octal escapes of space, tab, newline and backslash.
func unescape(field string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(field)
}

// hostLinks are names of interfaces that only a node's own namespace has.
var hostLinks = []string{"veth", "cni", "docker", "cali", "flannel", "cilium", "lxc", "br-", "kube"}

// sharedNet says how it shows that others are in our network namespace, "" when
// nothing shows: a process that can be seen there and is neither ours nor above
// us, or the links of a node.
func sharedNet(root string) string {
	links, _ := os.ReadDir(filepath.Join(root, "sys/class/net"))
	for _, link := range links {
		for _, prefix := range hostLinks {
			if strings.HasPrefix(link.Name(), prefix) {
				return fmt.Sprintf("interface %s", link.Name())
			}
		}
	}
	own, err := os.Readlink(filepath.Join(root, "proc/self/ns/net"))
	if err != nil {
		return ""
	}
	session := sessionOf(root, "self")
	processes, _ := filepath.Glob(filepath.Join(root, "proc/[0-9]*"))
	for _, p := range processes {
		pid := filepath.Base(p)
		net, err := os.Readlink(filepath.Join(p, "ns/net"))
		if err != nil || net != own || sessionOf(root, pid) == session || kin(root, pid) {
			continue
		}
		if name := readLine(root, "proc/"+pid+"/comm"); name != "pause" { // a pod's, which holds the namespace
			return fmt.Sprintf("process %s, %s", pid, name)
		}
	}
	return ""
}

// sessionOf is the session's id, "" when it can't be read.
func sessionOf(root, pid string) string {
	if fields := statFields(root, pid); len(fields) > 3 {
		return fields[3]
	}
	return ""
}

// statFields are those behind the name, which may hold anything: state, parent,
// group, session, …
func statFields(root, pid string) []string {
	stat := readLine(root, "proc/"+pid+"/stat")
	return strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
}

// kin tells whether a process descends from us.
func kin(root, pid string) bool {
	own := strconv.Itoa(os.Getpid())
	for range 16 {
		if pid == own {
			return true
		}
		fields := statFields(root, pid)
		if len(fields) < 2 || fields[1] == "0" {
			return false
		}
		pid = fields[1]
	}
	return false
}

func inContainer(root string) bool {
	for _, path := range []string{".dockerenv", "run/.containerenv", "var/run/secrets/kubernetes.io"} {
		if _, err := os.Stat(filepath.Join(root, path)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return os.Getenv("KUBERNETES_SERVICE_HOST") != ""
}

func sameDevice(a, b string) bool {
	var one, other unix.Stat_t
	return unix.Stat(a, &one) == nil && unix.Stat(b, &other) == nil && one.Dev == other.Dev
}
