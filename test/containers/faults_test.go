package containers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	tc "github.com/testcontainers/testcontainers-go"

	observe "aether.internal/test/node"
)

// The old pod's container is at its memory limit and the kernel ends its Envoy
// while it drains: the new pod's goes on, for longer than an Envoy without a
// relay would (fact 4: 10 retries and an abort), and hands over again.
func TestTheOldPodIsOutOfMemoryAfterTheTakeover(t *testing.T) {
	n := newNode(t)
	a, b := n.pod("a"), n.pod("b")
	a.host = append(a.host, func(h *container.HostConfig) {
		h.Memory, h.OomScoreAdj = 256<<20, 1000 // sooner than what eats it, however much that has
	})
	a.serves(0)
	n.hold("old", 2)
	b.serves(1)
	a.await("the old pod to be superseded", state("superseded"))
	victims := a.processes("envoy")
	n.mixed(300 * time.Millisecond)
	eats := a.eatsMemory()
	n.until("the kernel to have ended the old pod's Envoy", func() bool { return !alive(victims) })
	eats()
	n.letGo("old", 2)
	b.await("the new pod's epoch alone", observe.Alone(1))
	end := time.Now().Add(13 * time.Second)
	n.until("its time without a parent to be over", func() bool {
		if st, err := b.status(); err != nil || st.Serving != 1 || !st.Ready {
			t.Fatalf("the new pod doesn't serve on: %+v, %v", st, err)
		}
		return time.Now().After(end)
	})
	b.signal("HUP")
	b.await("epoch 2 to serve", observe.Serves(2))
	n.unharmed("mixed")
	if a.running() { // or its supervisor is gone as well
		a.logs("signal 9")
		a.stop()
	}
	b.stop()
}

func alive(pids []int) bool {
	for _, pid := range pids {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); err == nil {
			return true
		}
	}
	return false
}

// eatsMemory starts a process in the pod's memory cgroup that takes all there is.
func (p *pod) eatsMemory() (end func()) {
	p.Helper()
	st, err := p.container.State(p.Context())
	p.must(err)
	hog := exec.Command(os.Args[0], "-test.run=^$") //nolint:gosec // ourselves: see hog
	hog.Env = append(os.Environ(), hogVariable+"="+memoryCgroup(p, st.Pid))
	hog.Stderr = os.Stderr
	p.must(hog.Start())
	return func() {
		_ = hog.Process.Kill()
		_ = hog.Wait()
	}
}

const hogVariable = "AETHER_CONTAINERS_HOG"

// hog is what TestMain does in the process that eatsMemory starts.
func hog(cgroup string) error {
	if err := os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte("0"), 0); err != nil {
		return err
	}
	var eaten [][]byte
	for range 1 << 10 {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		eaten = append(eaten, block)
	}
	return fmt.Errorf("%d MiB are no limit", len(eaten))
}

// memoryCgroup is where a process's memory is limited, with cgroups of either
// version.
func memoryCgroup(p *pod, pid int) string {
	p.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	p.must(err)
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch controllers, path, _ := strings.Cut(rest, ":"); controllers {
		case "memory":
			return filepath.Join("/sys/fs/cgroup/memory", path)
		case "":
			if _, err := os.Stat(filepath.Join("/sys/fs/cgroup", path, "memory.max")); err == nil {
				return filepath.Join("/sys/fs/cgroup", path)
			}
		}
	}
	p.Fatalf("no memory cgroup in\n%s", text)
	return ""
}

// A state directory that the new pod can't use as it must is a sentence and an
// exit code; the old pod serves on, and the next pod that can takes over. One that
// others can only read is used: the sockets in it are mode 0600.
func TestAStateDirectoryThatCannotBeUsedHarmsNobody(t *testing.T) {
	n := newNode(t)
	a := n.pod("a")
	a.serves(0)
	n.mixed(300 * time.Millisecond)
	explicit := []string{"--state-dir", "/run/aether/hotrestart"}
	mode := func(m os.FileMode) { n.must(os.Chmod(n.stateBind, m)) }
	owner := func(uid int) { n.must(os.Chown(n.stateBind, uid, uid)) }
	for name, c := range map[string]struct {
		spoil     func()
		stateMode string
		args      []string
		code      int
		says      string
	}{
		"read-only":           {func() {}, ":ro", explicit, 1, "read-only file system"},
		"read-only, not said": {func() {}, ":ro", nil, 6, "in place of /run/aether/hotrestart, which uid 65532 can't write to"},
		"open to others":      {func() { mode(0o777) }, "", explicit, 6, "its mode 0777 lets others write (owner: us, uid 65532); chmod it to 0700"},
		"another user's":      {func() { owner(1000) }, "", explicit, 6, "uid 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			b := n.with(t).pod(strings.NewReplacer(" ", "-", "'", "", ",", "").Replace(name))
			b.stateMode = c.stateMode
			c.spoil()
			b.launch(c.args...)
			b.exits(c.code)
			mode(0o700)
			owner(nonroot)
			t.Log(lastLine(b.log()))
			if !strings.Contains(b.log(), c.says) {
				t.Errorf("it doesn't say %q", c.says)
			}
		})
	}
	mode(0o755) // others may look
	a.await("the old pod to serve on", observe.Serves(0))
	c := n.pod("c")
	c.serves(1)
	c.logs("/run/aether/hotrestart has mode 755")
	n.unharmed("mixed")
	a.stop()
	c.stop()
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// with is the node for a subtest.
func (n *node) with(t *testing.T) *node {
	of := *n
	of.T = t
	return &of
}

// The state directory is on a file system that is full: neither a new pod nor
// the old one can start an epoch, both say so, and the old one serves on. With
// space again the new pod takes over.
func TestAFullStateDirectoryHarmsNobody(t *testing.T) {
	n := newNode(t)
	n.stateOnTmpfs("64k")
	a := n.pod("a")
	a.serves(0)
	n.mixed(300 * time.Millisecond)
	empty := n.fill()
	b := n.pod("b")
	b.launch()
	code, err := engine.exitCode(t.Context(), b.container)
	t.Logf("exit code %d (%v): %s", code, err, lastLine(b.log()))
	if code == 0 || !strings.Contains(b.log(), "no space left on device") {
		t.Errorf("exit code %d, %v; want another, and why", code, err)
	}
	if code, out := a.exec(superPath, "proxyctl", "reload", "--wait"); code == 0 || !strings.Contains(out, "no space left on device") {
		t.Errorf("reload: exit code %d, %s", code, out)
	}
	a.await("the old pod to serve on", observe.Serves(0))
	empty()
	c := n.pod("c")
	c.serves(1)
	n.unharmed("mixed")
	a.stop()
	c.stop()
}

// fill takes all space there is beside the state, and all that a supervisor gives
// back within a second: it writes its heartbeat to a new file each time.
func (n *node) fill() (empty func()) {
	n.Helper()
	f, err := os.Create(filepath.Join(n.stateSeen, "fill"))
	n.must(err)
	since := time.Now()
	n.until("it to be full", func() bool {
		wrote, err := f.Write(make([]byte, 1<<20))
		if err == nil {
			n.Fatalf("%s has no limit", f.Name())
		}
		if wrote > 0 || !errors.Is(err, syscall.ENOSPC) {
			since = time.Now()
		}
		return time.Since(since) > time.Second
	})
	n.must(f.Close())
	return func() { n.must(os.Remove(f.Name())) }
}

// stateOnTmpfs puts the state directory on a file system of its own.
func (n *node) stateOnTmpfs(size string) {
	n.Helper()
	volume, err := engine.newVolume(n.Context(), fmt.Sprintf("size=%s,uid=%d,gid=%[2]d,mode=0700", size, nonroot))
	n.must(err)
	n.Cleanup(func() {
		if err := engine.removeVolume(volume); err != nil {
			n.Error(err)
		}
	})
	// It is mounted while a container has it, and seen through that: we may be in
	// another mount namespace than the engine, as under tools/airgap's Bazel.
	c := n.container(insideImage, confined(), binds(volume+":/state"), tc.WithCmd("/state/unused.sock"))
	st, err := c.State(n.Context())
	n.must(err)
	n.stateBind, n.stateSeen = volume, fmt.Sprintf("/proc/%d/root/state", st.Pid)
}
