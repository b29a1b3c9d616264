package coordination

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// HeartbeatVersion is the only one we write and read.
const HeartbeatVersion = 1

// Limits of what is believed. Epochs and generations count handoffs: 2³⁰ of
// them, one a second, are 34 years.
const (
	maxHeartbeat   = 4 << 10 // bytes
	maxCount       = 1 << 30
	maxConcurrency = 1 << 16
	maxPodName     = 253 // a DNS name
	maxAdmin       = 512 // a host or a socket's path
)

// Heartbeat is what a supervisor writes once its own child is the committed,
// serving epoch (rule 13). It is a hint: it decides only concurrency and
// the digits of an epoch above its number modulo 3, and only while a peer's
// seat is held (rules 5 and 10).
type Heartbeat struct {
	Version     int    `json:"version"` // set by WriteHeartbeat
	Epoch       int    `json:"epoch"`
	Generation  int    `json:"generation"`
	Concurrency int    `json:"concurrency"` // 0: unknown
	Pod         string `json:"pod,omitempty"`
	Admin       string `json:"admin,omitempty"` // where that epoch's admin answers
}

func heartbeatPath(dir string) string { return filepath.Join(dir, "epoch") }

// WriteHeartbeat replaces dir/epoch, mode 0600. A reader sees the old one or
// the new one. It isn't synced to the disk: it means nothing after a crash of
// the machine, and a sync may take a second on a busy node.
func WriteHeartbeat(dir string, h Heartbeat) error {
	h.Version = HeartbeatVersion
	if !h.plausible() {
		return fmt.Errorf("heartbeat %s: impossible values %+v", heartbeatPath(dir), h)
	}
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := replace(heartbeatPath(dir), append(data, '\n')); err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	return nil
}

// replace swaps the file at path for one with data, mode 0600, by a rename.
func replace(path string, data []byte) (err error) {
	// Random names: two pods' supervisors may share the directory.
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// ReadHeartbeat reads dir/epoch. Whatever isn't a heartbeat of this version
// with values in range is absent, and so is a file that isn't ours.
func ReadHeartbeat(dir string) (Heartbeat, bool) {
	f, err := openOwn(heartbeatPath(dir), os.O_RDONLY)
	if err != nil {
		return Heartbeat{}, false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxHeartbeat+1))
	if err != nil || len(data) > maxHeartbeat {
		return Heartbeat{}, false
	}
	var h Heartbeat
	if json.Unmarshal(data, &h) != nil || h.Version != HeartbeatVersion || !h.plausible() {
		return Heartbeat{}, false
	}
	return h, true
}

func (h Heartbeat) plausible() bool {
	return within(h.Epoch, maxCount) && within(h.Generation, maxCount) &&
		within(h.Concurrency, maxConcurrency) && len(h.Pod) <= maxPodName && len(h.Admin) <= maxAdmin
}

func within(n, most int) bool { return n >= 0 && n <= most }

// RemoveHeartbeat takes it away, as far as it can: nobody decides by it alone.
func RemoveHeartbeat(dir string) { _ = os.Remove(heartbeatPath(dir)) }
