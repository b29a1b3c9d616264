package hotrestart

import (
	"aether.internal/agent/internal/proxy/configwatch"
)

// watch follows the bootstrap and the binary from what was just read on: a
// change made since that read differs from it, however early it came.
func (sh *shell) watch(read *input) {
	if !sh.cfg.WatchConfig || sh.watching {
		return
	}
	sh.watching = true
	o := configwatch.Options{ConfigPath: sh.cfg.ConfigPath, BinaryPath: sh.cfg.EnvoyPath, Log: sh.log}
	o.Baseline.ConfigHash = read.hash
	if info, err := read.binary.File.Stat(); err == nil {
		o.Baseline.BinaryHash, o.Baseline.BinaryID = read.binary.Hash, configwatch.IdentityOf(info)
	}
	ctx := sh.ctx
	sh.background(func() { // the watcher, until the loop has ended
		if err := configwatch.Watch(ctx, o, sh.changed); err != nil && ctx.Err() == nil {
			sh.log.Error("watch: changes are no longer seen; SIGHUP still works", "error", err)
		}
	})
}

func (sh *shell) changed(c configwatch.Change) {
	if c.Config {
		sh.post(Triggered{By: TriggerConfig})
	}
	if c.Binary {
		sh.post(Triggered{By: TriggerBinary})
	}
}
