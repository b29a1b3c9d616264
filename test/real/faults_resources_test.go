package real

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"aether.internal/test/node"
)

const unread = "the kernel gives no file events; the files are polled instead"

// resourceFaults are those of the machine.
func resourceFaults() []fault {
	rows := slices.Concat(
		fault{name: "the next bootstrap needs more open files than the hard limit has", play: tooFewFiles, said: []string{refusedIt, "check the limit of open files", "listeners and 2 workers need at least 508 open files, and the limit is 400"}}.by(shared),
		fault{name: "a soft limit of 256 open files, a hard one of 4,096, and 500 kept connections", play: fiveHundredKept}.by(shared),
		fault{name: "a bootstrap of 3,000 clusters: the admin is dark", play: largeBootstrap, said: []string{"epoch serves"}}.by(shared),
		fault{name: "a bootstrap of 1,000 listeners: 2,000 requests between the epochs", play: manyListeners, said: []string{"epoch serves"}}.by(shared, plain),
		fault{name: "memory runs out, the newcomer not yet committed", needs: memoryLimits, args: []string{"--validate=never"}, play: memoryForOne, said: []string{`"msg":"memory"`, takenBack, "signal 9 (SIGKILL)"}, unsaid: []string{crashed}}.by(shared, own),
		fault{name: "memory runs out in the validator", needs: memoryLimits, play: memoryForNoValidator, said: []string{`"msg":"memory"`, refusedIt, "the validator could not run", "signal 9 (SIGKILL)"}, unsaid: []string{crashed}}.by(shared),
		fault{name: "memory runs out while the parent drains", needs: memoryLimits, play: memoryForNoParent, said: []string{"old epoch has ended", "signal 9 (SIGKILL)"}, unsaid: []string{crashed}}.by(shared),
		fault{name: "no inotify instance is left", needs: userNamespaces, play: noInotify, args: []string{"--watch-config=true"}, said: []string{unread, "epoch serves"}}.by(shared),
		fault{name: "shared memory is full at the start", needs: asRoot, play: shmTooSmall, said: []string{"/dev/shm is full"}, ends: 6}.by(shared),
		fault{name: "shared memory gets full while it serves", needs: asRoot, play: shmFull}.by(shared),
		fault{name: "the shared segment is another user's", needs: asRoot, play: foreignSegment, said: []string{"the shared segment", "belongs to uid"}, ends: 6}.by(shared),
		fault{name: "the shared segment is another user's, and we are root", needs: asRoot, play: foreignSegmentForRoot}.by(shared),
		fault{name: "as PID 1, 200 orphans over four handoffs", needs: asRoot, play: orphans, said: []string{"old epoch has ended"}}.by(shared),
	)
	return inGroup("Resources", rows)
}

// elsewhere are faults whose tests need no load.
var elsewhere = []coveredFault{
	{"a foreign Envoy on our base-id, at the abstract names or at our own", "is taken: an Envoy that is not ours answers at", "TestAnotherOneOnOurBaseID"},
	{"another supervisor on our base-id or control socket", "is held by an Envoy of another state directory", "TestAnotherOneOnOurBaseID"},
	{"the control socket's path is a file, a directory, a link, a FIFO", "choose another --control-socket", "TestTheControlSocketsPlaceIsTaken"},
	{"a clock that steps either way: nothing is decided by wall time", "", "TestNothingIsDecidedByWallTime"},
	{"a segment of unknown layout, size or version is left alone", "can't be repaired", "TestSegmentOfAnUnknownLayoutIsLeftAlone"},
	{"UDP and QUIC: the parent ends by Envoy's own timer", "old epoch has ended", "TestRule6WithUDPTheParentEndsByEnvoysTimer"},
}

// inShell executes what follows after some lines of shell.
func inShell(lines string, args ...string) []string {
	return append([]string{"sh", "-c", lines + ` && exec "$@"`, "sh"}, args...)
}

// privateMounts is for lines that mount.
func (c *scene) privateMounts(lines string) {
	c.spaces |= syscall.CLONE_NEWNS
	c.through = append(inShell("mount --make-rprivate / && "+lines), c.through...)
}

// ---- open files -----------------------------------------------------------

// loopbacks are n more listeners, each at an address of its own and all at the
// HTTP listener's port.
func (c *scene) loopbacks(n int) string {
	var b strings.Builder
	for i := range n {
		text := listenerText(fmt.Sprintf("l%d", i), c.Bootstrap.HTTP, "")
		b.WriteString(strings.Replace(text, "127.0.0.1", fmt.Sprintf("127.1.%d.%d", i/250, i%250+1), 1))
	}
	return b.String()
}

func tooFewFiles(c *scene) {
	c.through = []string{"prlimit", "--nofile=400:400"}
	c.begin("--concurrency", "2")
	c.writeWith("many", c.loopbacks(200))
	c.strike()
	c.hup()
	c.logs(refusedIt)
	c.over()
}

func fiveHundredKept(c *scene) {
	c.through = []string{"prlimit", "--nofile=256:4096"}
	c.begin()
	conns := make([]net.Conn, 500)
	for i := range conns {
		var err error
		conns[i], err = net.DialTimeout("tcp", c.Target().TCP, patience)
		c.must(err)
		defer conns[i].Close()
		c.pings(conns[i])
	}
	c.strike()
	c.write("v2")
	c.hup()
	c.await("epoch 1 to serve", node.Serves(1))
	c.over()
	for _, conn := range conns {
		c.pings(conn)
	}
}

// pings wants the echo of one byte.
func (c *scene) pings(conn net.Conn) {
	c.Helper()
	c.must(conn.SetDeadline(time.Now().Add(patience)))
	_, err := conn.Write([]byte("p"))
	c.must(err)
	_, err = conn.Read(make([]byte, 1))
	c.must(err)
}

// ---- size -----------------------------------------------------------------

// clusters are n that nobody uses.
func clusters(n int) string {
	var b strings.Builder
	b.WriteString(clustersFollow)
	for i := range n {
		fmt.Fprintf(&b, "\n  - {name: unused-%d, type: STATIC, load_assignment: {cluster_name: unused-%[1]d, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]}}", i)
	}
	return b.String()
}

// largeBootstrap: ready throughout, though nobody can ask the admin.
func largeBootstrap(c *scene) {
	c.writeWith("v1", clusters(3000))
	c.begin()
	var dark, unready atomic.Int64 // looks
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // joined below
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if !c.markerFresh() {
				unready.Add(1)
			}
			began := time.Now()
			if c.askAdmin(200*time.Millisecond) != nil {
				dark.Add(max(int64(time.Since(began)), int64(20*time.Millisecond)))
			}
		}
	}()
	c.strike()
	c.writeWith("v2", clusters(3000))
	c.hup()
	c.await("epoch 1 to serve", node.Serves(1))
	c.over()
	close(stop)
	<-stopped
	if n := unready.Load(); n > 0 {
		c.Errorf("not ready at %d looks", n)
	}
	c.note = fmt.Sprintf("ready throughout, the admin dark for %.1f s", time.Duration(dark.Load()).Seconds())
}

func manyListeners(c *scene) {
	c.writeWith("v1", c.loopbacks(1000))
	c.begin("--concurrency", "2")
	c.writeWith("v2", c.loopbacks(1000))
	c.strike()
	c.hup()
	st := c.await("epoch 1 to serve", node.Serves(1))
	c.over()
	c.note = fmt.Sprintf("LIVE %.0f ms after the start", st.LastHandoff.Milliseconds.Live)
}

// ---- what only namespaces give ----------------------------------------------

func userNamespaces() string {
	if err := exec.Command("unshare", inUserNamespace("true")[1:]...).Run(); err != nil {
		return "needs user namespaces with limits of their own"
	}
	return ""
}

func inUserNamespace(args ...string) []string {
	return append([]string{"unshare", "--user", "--map-root-user"}, inShell("echo 0 >/proc/sys/user/max_inotify_instances", args...)...)
}

func noInotify(c *scene) {
	c.through = inUserNamespace()
	c.begin()
	c.strike()
	c.logs(unread)
	c.write("v2")
	c.await("epoch 1 to serve", node.Serves(1))
	c.over()
}

func shmTooSmall(c *scene) {
	c.privateMounts("mount -t tmpfs -o size=8k tmpfs /dev/shm")
	c.strike()
	c.raise()
}

func shmFull(c *scene) {
	c.privateMounts("mount -t tmpfs -o size=64k tmpfs /dev/shm")
	c.begin()
	c.strike()
	f, err := os.Create(fmt.Sprintf("/proc/%d/root/dev/shm/filler", c.run.Cmd.Process.Pid))
	c.must(err)
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	c.over()
}

// foreignSegment: to a supervisor whose user isn't root; here its namespace
// calls it so.
func foreignSegment(c *scene) {
	c.leaveSegment()
	c.through = []string{"unshare", "--user", "--map-user=65532", "--map-group=65532"}
	c.strike()
	c.raise()
	c.exit(6)
	c.must(os.Remove(c.Segment()))
}

func foreignSegmentForRoot(c *scene) {
	c.leaveSegment()
	c.begin()
}

// leaveSegment is what an Envoy of uid 12345 has left.
func (c *scene) leaveSegment() {
	c.must(os.WriteFile(c.Segment(), make([]byte, 104), 0o600))
	c.must(os.Chown(c.Segment(), 12345, 12345))
}

func orphans(c *scene) {
	c.spaces |= syscall.CLONE_NEWPID
	c.privateMounts("mount -t proc proc /proc")
	verify := c.script("verify", `i=0; while [ $i -lt 50 ]; do (sleep 0.$((i % 10)) &); i=$((i+1)); done; exit 0`)
	c.begin("--verify-command", verify)
	c.strike()
	for epoch := 1; epoch <= 4; epoch++ {
		c.write(fmt.Sprintf("v%d", epoch+1))
		c.hup()
		c.await("the next epoch", node.Alone(epoch))
	}
	c.until("no orphan and no zombie to be left", func() bool { return len(childrenOf(c.run.Cmd.Process.Pid)) == 1 })
	c.over()
	if n := c.run.Logged(`"status":"exit code 0"`); n != 4 || c.run.Logged("old epoch has ended") != 4 {
		c.Errorf("%d of 4 ended with exit code 0", n)
	}
}

// childrenOf are a process's children, dead ones included.
func childrenOf(pid int) []string {
	var found []string
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range lists {
		text, _ := os.ReadFile(path)
		found = append(found, strings.Fields(string(text))...)
	}
	return found
}

// ---- memory -----------------------------------------------------------------

// memory is a cgroup, of the first version or the second.
type memory struct {
	*scene
	dir, limit, anon string
}

const (
	cgroup1 = "/sys/fs/cgroup/memory"
	cgroup2 = "/sys/fs/cgroup"
)

func memoryLimits() string {
	if why := asRoot(); why != "" {
		return why
	}
	if len(exists(cgroup1+"/memory.limit_in_bytes"))+len(exists(cgroup2+"/memory.max")) > 0 {
		return ""
	}
	controllers, _ := os.ReadFile(cgroup2 + "/cgroup.subtree_control")
	if strings.Contains(string(controllers), "memory") {
		return ""
	}
	return "no memory cgroup may be made here"
}

// newMemory makes a cgroup, which the supervisor will enter and take for the
// root of all, as in a container.
func (c *scene) newMemory() *memory {
	c.Helper()
	m := &memory{scene: c, limit: "memory.max", anon: "anon"}
	root := cgroup2
	if len(exists(cgroup1+"/memory.limit_in_bytes")) > 0 {
		root, m.limit, m.anon = cgroup1, "memory.limit_in_bytes", "total_rss"
	}
	m.dir = filepath.Join(root, "aether-test-"+strconv.Itoa(int(c.BaseID)))
	c.must(os.Mkdir(m.dir, 0o755))
	c.Cleanup(func() {
		if c.run != nil {
			c.run.Kill() // where the test has failed
		}
		c.until("the cgroup to be empty", func() bool { return os.Remove(m.dir) == nil || len(exists(m.dir)) == 0 })
	})
	c.privateMounts(fmt.Sprintf("echo $$ >%s/cgroup.procs && mount --bind %[1]s %s", m.dir, root))
	return m
}

func (m *memory) set(bytes int64) {
	m.Helper()
	m.must(os.WriteFile(filepath.Join(m.dir, m.limit), []byte(strconv.FormatInt(bytes, 10)), 0))
}

// used is the memory that nobody can take back.
func (m *memory) used() int64 {
	m.Helper()
	stat, err := os.ReadFile(filepath.Join(m.dir, "memory.stat"))
	m.must(err)
	for line := range strings.Lines(string(stat)) {
		if f := strings.Fields(line); f[0] == m.anon {
			n, err := strconv.ParseInt(f[1], 10, 64)
			m.must(err)
			return n
		}
	}
	m.Fatalf("no %s in %s", m.anon, stat)
	return 0
}

const (
	mebibyte = 1 << 20
	plenty   = 8 << 30
	many     = 2000 // clusters that make an Envoy large
)

// tight leaves so little that whoever runs beside the serving epoch is much
// smaller than that when memory runs out.
func (m *memory) tight() {
	used := m.used()
	m.set(used + used/4 + 24*mebibyte)
}

func memoryForOne(c *scene) {
	m := c.newMemory()
	c.writeWith("v1", clusters(many))
	c.begin()
	m.tight()
	c.strike()
	c.hup()
	c.goesOn(1)
	m.set(plenty)
}

func memoryForNoValidator(c *scene) {
	m := c.newMemory()
	c.writeWith("v1", clusters(many))
	c.begin()
	m.tight()
	c.strike()
	c.hup()
	c.logs(refusedIt)
	c.over()
	m.set(plenty)
}

// memoryForNoParent: somebody else in the container wants memory. It is the
// next in the kernel's order, since on a busy machine the kernel ends one more
// while what it has ended isn't free yet; what becomes of it doesn't matter.
func memoryForNoParent(c *scene) {
	m := c.newMemory()
	c.writeWith("v1", clusters(many))
	held := c.draining()
	m.set(m.used() + 48*mebibyte)
	c.strike()
	hog := exec.Command("sh", "-c", fmt.Sprintf("echo $$ >%s/cgroup.procs; echo 900 >/proc/self/oom_score_adj; head -c 64M /dev/zero | tail -c 64M | wc -c", m.dir))
	out, err := hog.CombinedOutput()
	c.Logf("the hog: %s (%v)", out, err)
	c.await("epoch 1 alone", node.Alone(1))
	c.over()
	c.until("the end of the parent's stream", held.isOver)
	c.note = "its one stream ended with it"
	m.set(plenty)
}
