package containers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// stat reads numbers from the admin of whoever has it now; nil if nobody has.
func (n *node) stats(names ...string) map[string]int64 {
	got, err := n.actor.Fetch(n.Context(), adminURL+"/stats?filter=^("+strings.Join(names, "|")+")$")
	if err != nil {
		return nil
	}
	stats := map[string]int64{}
	for line := range strings.Lines(got.Body) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		stats[name], _ = strconv.ParseInt(value, 10, 64)
	}
	return stats
}

const (
	statEpoch      = "server.hot_restart_epoch"
	statGeneration = "server.hot_restart_generation"
)

// generation waits for the admin to be an epoch's, and judges how many there
// have been.
func (n *node) generation(epoch, generation int64) {
	n.Helper()
	var got map[string]int64
	n.until(fmt.Sprintf("the admin to be epoch %d's", epoch), func() bool {
		got = n.stats(statEpoch, statGeneration)
		_, told := got[statEpoch]
		return told && got[statEpoch] == epoch
	})
	if got[statGeneration] != generation {
		n.Errorf("epoch %d is generation %d, want %d", epoch, got[statGeneration], generation)
	}
}

// processes are the pod's, as this machine numbers them, by what they run.
func (p *pod) processes(program string) (pids []int) {
	p.Helper()
	st, err := p.container.State(p.Context())
	p.must(err)
	name := func(pid string) string {
		path, _ := os.Readlink(filepath.Join("/proc", pid, "exe"))
		return filepath.Base(path)
	}
	for _, pid := range append(p.children(strconv.Itoa(st.Pid)), strconv.Itoa(st.Pid)) {
		if name(pid) == program {
			n, _ := strconv.Atoi(pid)
			pids = append(pids, n)
		}
	}
	return pids
}

func (p *pod) children(pid string) []string {
	threads, _ := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "children"))
	var all []string
	for _, path := range threads {
		text, _ := os.ReadFile(path)
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}

// confinedTo judges what the supervisor and its Envoys may do.
func (p *pod) confinedTo(uid int) {
	p.Helper()
	all := append(p.processes("supervisor"), p.processes("envoy")...)
	if len(all) < 2 {
		p.Fatalf("processes %v: want a supervisor and an Envoy", all)
	}
	for _, pid := range all {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		p.must(err)
		for _, want := range []string{fmt.Sprintf("Uid:\t%d\t%d", uid, uid), "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"} {
			if !strings.Contains(string(text), want) {
				p.Errorf("process %d: no %q in its status", pid, want)
			}
		}
	}
}
