package doctor

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// machine is a made-up root directory.
type machine struct {
	*testing.T
	root string
}

func newMachine(t *testing.T) machine { return machine{t, t.TempDir()} }

func (m machine) file(path, text string) {
	m.Helper()
	full := filepath.Join(m.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		m.Fatal(err)
	}
}

func (m machine) link(path, to string) {
	m.Helper()
	full := filepath.Join(m.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.Symlink(to, full); err != nil {
		m.Fatal(err)
	}
}

// process is one that can be seen, in a session and a network namespace.
func (m machine) process(pid, parent, session int, name, net string) {
	dir := "proc/" + strconv.Itoa(pid)
	m.file(dir+"/stat", strconv.Itoa(pid)+" (a ) b) S "+strconv.Itoa(parent)+" "+strconv.Itoa(pid)+" "+strconv.Itoa(session)+" 0 0\n")
	m.file(dir+"/comm", name+"\n")
	m.link(dir+"/ns/net", net)
}

// ourselves are in session 5 and network namespace net:[1].
func (m machine) ourselves() {
	m.process(os.Getpid(), 1, 5, "agent", "net:[1]")
	m.link("proc/self", strconv.Itoa(os.Getpid()))
}

func TestASharedNetworkNamespaceShows(t *testing.T) {
	for name, c := range map[string]struct {
		add  func(machine)
		want string
	}{
		"alone":         {func(machine) {}, ""},
		"our own Envoy": {func(m machine) { m.process(71, os.Getpid(), 71, "envoy", "net:[1]") }, ""},
		"its child": {func(m machine) {
			m.process(71, os.Getpid(), 71, "envoy", "net:[1]")
			m.process(72, 71, 72, "x", "net:[1]")
		}, ""},
		"of our session":         {func(m machine) { m.process(71, 1, 5, "sh", "net:[1]") }, ""},
		"a pod's pause":          {func(m machine) { m.process(1, 0, 1, "pause", "net:[1]") }, ""},
		"somebody":               {func(m machine) { m.process(71, 1, 71, "sshd", "net:[1]") }, "process 71, sshd"},
		"in another namespace":   {func(m machine) { m.process(71, 1, 71, "sshd", "net:[2]") }, ""},
		"a node's interface":     {func(m machine) { m.file("sys/class/net/veth42/mtu", "") }, "interface veth42"},
		"a container's own":      {func(m machine) { m.file("sys/class/net/eth0/mtu", ""); m.file("sys/class/net/lo/mtu", "") }, ""},
		"nothing can be read":    {func(m machine) { os.RemoveAll(filepath.Join(m.root, "proc")) }, ""},
		"a process that is gone": {func(m machine) { m.file("proc/71/comm", "gone\n") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.ourselves()
			c.add(m)
			if got := sharedNet(m.root); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestAMountOfTheFileItself(t *testing.T) {
	m := newMachine(t)
	m.file("proc/self/mountinfo", `21 1 0:20 / / rw - overlay overlay rw
30 21 8:1 /pods/x/volumes/cm /etc/envoy rw - ext4 /dev/sda1 rw
31 21 8:1 /pods/x/subpaths/envoy.yaml /etc/my\040envoy/envoy.yaml ro - ext4 /dev/sda1 rw
`)
	for path, want := range map[string]string{
		"/etc/envoy/envoy.yaml": "", "/etc/my envoy/envoy.yaml": "/etc/my envoy/envoy.yaml", "/etc/my envoy/./envoy.yaml": "/etc/my envoy/./envoy.yaml",
	} {
		if got := mountOf(m.root, path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := mountOf(t.TempDir(), "/x"); got != "" {
		t.Error(got)
	}
}

func TestInotifyIsCounted(t *testing.T) {
	m := newMachine(t)
	m.file("proc/sys/fs/inotify/max_user_instances", "128\n")
	for i, to := range []string{"anon_inode:inotify", "anon_inode:[eventpoll]", "anon_inode:inotify", "/dev/null"} {
		m.link("proc/"+strconv.Itoa(10+i%2)+"/fd/"+strconv.Itoa(i), to)
	}
	var f Facts
	f.Gather(m.root, "/etc/envoy/envoy.yaml", filepath.Join(m.root, "segment"))
	if f.InotifyInstances != 128 || f.InotifyUsed != 2 || f.Segment != nil || f.ConfigMount != "" {
		t.Errorf("%+v", f)
	}
}

func TestTheRealMachineIsGathered(t *testing.T) {
	segment := filepath.Join(t.TempDir(), "segment")
	if err := os.WriteFile(segment, make([]byte, 104), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	f := Facts{StateDir: dir}
	f.Gather("/", "/etc/hostname", segment)
	if f.Segment == nil || f.Segment.UID != os.Geteuid() || f.Segment.Size != 104 || f.StateDirPerm != 0o750 || f.FileLimit == 0 || f.Shm == nil || f.Shm.Size == 0 {
		t.Errorf("%+v", f)
	}
}

func TestContainersAreTold(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	m := newMachine(t)
	if inContainer(m.root) {
		t.Error("an empty root is a container")
	}
	m.file("run/.containerenv", "")
	if !inContainer(m.root) {
		t.Error("podman's mark is not seen")
	}
}
