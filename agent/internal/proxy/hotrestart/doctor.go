package hotrestart

import (
	"context"
	"fmt"
	"runtime/debug"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/agent/internal/proxy/doctor"
	"aether.internal/agent/internal/proxy/envoy"
)

// Doctor looks at what may go wrong here one day. It changes nothing.
func (s *Supervisor) Doctor(ctx context.Context) (control.Diagnosis, error) {
	var f doctor.Facts
	var pid int
	if err := s.ask(ctx, func(sh *shell) { f, pid = sh.facts() }); err != nil {
		return control.Diagnosis{}, err
	}
	return control.Diagnosis{Findings: s.examine(f, pid)}, nil
}

// facts are what only the owner knows, and the serving epoch's pid or 0.
func (sh *shell) facts() (doctor.Facts, int) {
	f := doctor.Facts{
		BaseID: sh.cfg.BaseID, StateDir: sh.cfg.StateDir, Watch: sh.cfg.WatchConfig,
		Grace: sh.cfg.GracePeriod, Drain: sh.cfg.DrainTime, Limit: sh.cfg.ParentShutdownTime,
		ConcurrencyPinned: sh.pinned, Workers: sh.concurrency,
	}
	g := sh.state.ours()
	if g == nil || sh.children[g.Epoch] == nil {
		return f, 0
	}
	c := sh.children[g.Epoch]
	if a := c.admin.Address(); !a.IsUnix() {
		f.AdminTCP = a.String()
	}
	f.FilesNeeded = filesNeeded(len(c.listeners()), sh.concurrency) + 2*uint64(max(g.Connections, 0))
	return f, g.Pid
}

// examine adds what the system tells, and judges.
func (s *Supervisor) examine(f doctor.Facts, servingPID int) []control.Finding {
	f.Gather("/", s.cfg.ConfigPath, envoy.SegmentPath(s.cfg.BaseID))
	f.MemoryLimit, f.MemoryUsed, _ = cgroupMemory("/")
	if servingPID != 0 {
		f.EpochMemory = residentBytes("/", servingPID)
	}
	for seat := range envoy.Seats {
		// Ours have files for sockets: whoever has the abstract name is another's.
		if envoy.Alive(envoy.AbstractSocket(s.cfg.BaseID, "child", seat)) {
			f.Foreign = fmt.Sprintf("an Envoy that is not ours answers at the abstract socket envoy_domain_socket_child_%d", uint64(s.cfg.BaseID)*10+uint64(seat))
		}
	}
	return doctor.Judge(f)
}

// warn has the doctor look once, when the first epoch serves, and says what he
// would change.
func (sh *shell) warn() {
	f, pid := sh.facts()
	sh.background(func() {
		for _, finding := range sh.examine(f, pid) {
			if !finding.OK {
				sh.log.Warn("doctor", "check", finding.Check, "found", finding.Found, "do", finding.Do)
			}
		}
		debug.FreeOSMemory() // the start is over, and with it what it took: 1 MB
	})
}
