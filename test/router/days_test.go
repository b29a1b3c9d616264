package router

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"aether.internal/test/load"
)

// day is one row of docs/drain-faults.md: what a pod's end meets. Its play
// returns how many clients there were and how many finished whole.
type day struct {
	group, name string
	said        []string // by the router
	harm        string   // why clients may notice; "": none may
	play        func(p *pod, g *gate) (clients, ok int)
	note        string
	grace       time.Duration // 0: a minute
	apart       bool          // not beside others: it puts load on the machine
}

const (
	ordinary = "Ordinary ends"
	faulty   = "Faults"
)

// short are times in which every phase can be seen.
var short = []string{"--drain-delay", "1s", "--envoy-drain-window", "3s", "--drain-timeout", "4s"}

// long leave time for whatever a test lets finish.
var long = []string{"--drain-delay", "1s", "--envoy-drain-window", "30s"}

var days = []day{
	{group: ordinary, name: "idle", said: []string{"drain: Envoy has no connection left"},
		play: func(p *pod, _ *gate) (int, int) {
			p.start(long...)
			p.delete()
			return 0, 0
		}},
	{group: ordinary, name: "mixed load, with and without TLS: new connections, keep-alive, HTTP/2, streams, uploads, gRPC, TCP",
		said: []string{"drain: Envoy has no connection left"}, apart: true, play: mixedLoad},
	{group: ordinary, name: "a running and a parked request and a TCP stream, which end in the window",
		said: []string{"drain: Envoy has no connection left"}, play: crowdInTheWindow},
	{group: ordinary, name: "a TCP stream and nothing else", said: []string{"drain: Envoy has no connection left"},
		play: func(p *pod, _ *gate) (int, int) {
			p.start(long...)
			c := p.hold()
			p.delete()
			p.awaitSaid("Envoy tells its clients to go")
			p.flows(c)
			c.Close()
			return 1, 1
		}},
	{group: ordinary, name: "a parked request that finds its worker in the delay", said: []string{"drain: Envoy has no connection left"},
		play: func(p *pod, g *gate) (int, int) {
			p.start("--drain-delay", "5s", "--envoy-drain-window", "20s")
			c := p.settle(g)
			p.delete()
			p.awaitSaid("serving on until that is known")
			return 3, c.letAll()
		}},
	{group: ordinary, name: "a parked request that finds its worker after the window", said: []string{"drain: the window is over, and Envoy still has connections"},
		harm: "TCP is not waited for after the window", note: "the request is answered, and the TCP stream goes on until then",
		play: func(p *pod, g *gate) (int, int) {
			p.start("--drain-delay", "1s", "--envoy-drain-window", "2s", "--drain-timeout", "30s")
			c := p.settle(g)
			p.delete()
			p.awaitSaid("the window is over")
			return 3, c.letAll()
		}},
	{group: ordinary, name: "an idle keep-alive connection", said: []string{"drain: the window is over, and Envoy still has connections"},
		note: "nothing is lost",
		play: func(p *pod, g *gate) (int, int) {
			p.start(short...)
			c := p.idleConnection(g)
			p.delete()
			return 1, whole(c)
		}},
	{group: ordinary, name: "an idle keep-alive connection, with an `idle_timeout` of 2 s and a window of 30 s", said: []string{"drain: Envoy has no connection left"},
		play: func(p *pod, g *gate) (int, int) {
			p.idle = 2 * time.Second
			p.start(long...)
			c := p.idleConnection(g)
			p.delete()
			return 1, whole(c)
		}},
	{group: ordinary, name: "longer than all times", harm: "cut at the end, parked ones told so",
		said: []string{"drain: the window is over, and Envoy still has connections", "drain: what stands beside Envoy was cut"},
		play: func(p *pod, g *gate) (int, int) {
			p.start(short...)
			c := p.settle(g)
			p.delete()
			p.until("Envoy to end", func() bool { return p.envoy.isOver() })
			return 3, c.letAll()
		}},
	{group: ordinary, name: "stopped before it was ever ready", said: []string{"drain: never ready and nobody connected"},
		play: func(p *pod, _ *gate) (int, int) {
			p.startRouter("--drain-delay", "20s")
			p.startStoppedEnvoy()
			p.delete()
			p.awaitSaid("drain: over")
			p.envoy.signal(syscall.SIGCONT)
			return 0, 0
		}},
	{group: ordinary, name: "a second SIGTERM", harm: "it asks for just that",
		said: []string{"asked again; what there is to wait for is skipped", "drain: over; the marker is written"},
		play: func(p *pod, g *gate) (int, int) {
			p.start("--drain-delay", "20s", "--envoy-drain-window", "20s")
			c := p.settle(g)
			p.delete()
			p.awaitSaid("serving on until that is known")
			p.router.signal(syscall.SIGTERM)
			p.awaitSaid("drain: over")
			p.until("Envoy to end", p.envoy.isOver)
			return 3, c.letAll()
		}},

	{group: faulty, name: "Envoy killed in the window", said: []string{"drain: Envoy is gone; there is nothing to wait for"}, harm: "its connections die with it",
		play: func(p *pod, g *gate) (int, int) { return p.hitEnvoy(g, syscall.SIGKILL) }},
	{group: faulty, grace: 15 * time.Second, name: "Envoy stopped (SIGSTOP) in the window", harm: "it answers nobody; the kubelet kills it",
		said: []string{"drain: the window is over, and Envoy still has connections"}, note: "the grace period was 15 s",
		play: func(p *pod, g *gate) (int, int) { return p.hitEnvoy(g, syscall.SIGSTOP) }},
	{group: faulty, grace: 15 * time.Second, name: "router killed in the delay", harm: "requests to pools fail closed; TCP goes on", note: "the grace period was 15 s, the waiter's deadline 13.75 s",
		play: func(p *pod, g *gate) (int, int) {
			p.start("--drain-delay", "5s", "--envoy-drain-window", "2s", "--drain-timeout", "2s")
			c := p.settle(g)
			p.delete()
			p.awaitSaid("serving on until that is known")
			p.router.signal(syscall.SIGKILL)
			<-p.router.done
			return 3, c.letAll()
		}},
	{group: faulty, grace: 15 * time.Second, name: "router killed in the window", harm: "requests to pools fail closed; TCP goes on", note: "as above",
		play: func(p *pod, g *gate) (int, int) {
			p.start(short...)
			c := p.settle(g)
			p.delete()
			p.awaitSaid("Envoy tells its clients to go")
			p.router.signal(syscall.SIGKILL)
			<-p.router.done
			return 3, c.letAll()
		}},
	{group: faulty, name: "the marker's disk is full, by then", said: []string{"drain: over; the marker is written"}, note: "the marker's file was reserved at the start",
		play: func(p *pod, g *gate) (int, int) {
			p.fullDisk(false)
			p.start(long...)
			p.fill()
			return p.endsWell(g)
		}},
	{group: faulty, grace: 15 * time.Second, name: "the marker's disk is full, from the start",
		said: []string{"the drain's marker can't be reserved", "drain: the marker can't be written; Envoy ends at its waiter's deadline"},
		note: "the grace period was 15 s, the waiter's deadline 13.75 s",
		play: func(p *pod, g *gate) (int, int) {
			p.fullDisk(true)
			p.start("--await-waiter=false", "--drain-delay", "1s", "--envoy-drain-window", "5s", "--drain-timeout", "5s")
			return p.endsWell(g)
		}},
	{group: faulty, name: "a stale marker of an earlier run", said: []string{"a stale drain marker was removed"},
		play: func(p *pod, g *gate) (int, int) {
			check(p.T, os.WriteFile(p.marker, nil, 0o644))
			p.start(long...)
			return p.endsWell(g)
		}},
}

// endsWell is a crowd that finishes in the window.
func (p *pod) endsWell(g *gate) (clients, ok int) {
	p.Helper()
	c := p.settle(g)
	p.delete()
	p.awaitSaid("Envoy tells its clients to go")
	return 3, c.letAll()
}

func crowdInTheWindow(p *pod, g *gate) (clients, ok int) {
	p.start(long...)
	return p.endsWell(g)
}

func (p *pod) hitEnvoy(g *gate, sig syscall.Signal) (clients, ok int) {
	p.Helper()
	p.start(short...)
	c := p.settle(g)
	p.delete()
	p.awaitSaid("Envoy tells its clients to go")
	p.envoy.signal(sig)
	p.awaitSaid("drain: over")
	if sig == syscall.SIGSTOP { // they would wait for the kubelet
		p.until("Envoy to be killed", p.envoy.isOver)
	}
	return 3, c.letAll()
}

// mixedLoad has 1,000 operations through the end of the pod.
func mixedLoad(p *pod, _ *gate) (clients, ok int) {
	p.worker, p.slots = p.upstream, 10000
	p.start("--drain-delay", "3s", "--envoy-drain-window", "30s")
	plan := load.DefaultPlan(p.target())
	plan.StreamDuration, plan.Timeout = 3*time.Second, 30*time.Second
	traffic, err := load.Start(p.Context(), plan)
	check(p.T, err)
	defer traffic.Stop()
	p.until("the load to run", func() bool { return traffic.Snapshot().OK() > 300 })
	held := p.hold() // until the load has ended: without a connection the pod would rightly be gone
	p.delete()
	p.awaitSaid("serving on until that is known")
	if ready, alive := p.status("/readyz"), p.status("/healthz"); ready != 503 || alive != 200 {
		p.Errorf("readyz %d, healthz %d", ready, alive)
	}
	p.awaitSaid("Envoy tells its clients to go")
	before := traffic.Snapshot().OK()
	p.until("the load to go on while it does", func() bool { return traffic.Snapshot().OK() > before+300 })
	report := traffic.Stop() // by now the endpoints have long gone
	held.Close()
	for _, e := range report.Errors {
		p.Logf("%s (tls %t) at %v, %s: %s", e.Kind, e.TLS, e.Offset, e.Heading, e.Message)
	}
	p.Logf("%s", report.Table())
	return report.Started(), report.OK()
}

// whole tells whether an idle connection ends with nothing but its end, and
// closes it then, as clients do.
func whole(c net.Conn) int {
	defer c.Close()
	n, err := c.Read(make([]byte, 1))
	if n == 0 && err != nil && err.Error() == "EOF" {
		return 1
	}
	return 0
}

func (p *pod) awaitSaid(text string) {
	p.Helper()
	p.until(fmt.Sprintf("the router to say %q", text), func() bool { return p.router.said(text) || p.router.isOver() })
	if !p.router.said(text) {
		p.Fatalf("the router ended without %q", text)
	}
}

// startStoppedEnvoy is an Envoy that has not begun to answer.
func (p *pod) startStoppedEnvoy() {
	p.Helper()
	p.startEnvoy()
	p.envoy.signal(syscall.SIGSTOP)
	p.neverUp = true
}

// fullDisk puts a tiny file system under the marker; full from the start or with
// room for one more file.
func (p *pod) fullDisk(atOnce bool) {
	p.Helper()
	if os.Geteuid() != 0 {
		p.Skip("a full tmpfs needs root to mount")
	}
	run := p.dir + "/run"
	if err := syscall.Mount("tmpfs", run, "tmpfs", 0, "size=4k,nr_inodes=4"); err != nil {
		p.Skip("a full tmpfs can't be mounted here: ", err)
	}
	p.Cleanup(func() { _ = syscall.Unmount(run, syscall.MNT_DETACH) })
	if atOnce {
		p.fill()
		check(p.T, os.WriteFile(run+"/hog2", nil, 0o600))
		check(p.T, os.WriteFile(run+"/hog3", nil, 0o600))
	}
}

// fill takes what room there is.
func (p *pod) fill() {
	p.Helper()
	check(p.T, os.WriteFile(p.dir+"/run/hog", make([]byte, 4096), 0o600))
}
