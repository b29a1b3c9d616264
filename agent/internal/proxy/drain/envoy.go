package drain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"syscall"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// ErrRefused: nobody listens at Envoy's admin address. From an Envoy that has
// answered there before, it says that its process is gone.
var ErrRefused = errors.New("nobody listens there")

// Listeners choose whose connections count, by the name that a listener has in
// /stats: its stat_prefix, or its address ("0.0.0.0_8080"). Probes and scrapes
// come until the end: their listeners must be left out, or no pod is ever idle.
type Listeners struct {
	Include, Exclude *regexp.Regexp // nil: all, none
}

// ListenerPattern compiles an expression (RE2) that must match the whole name.
func ListenerPattern(expression string) (*regexp.Regexp, error) {
	return regexp.Compile("^(?:" + expression + ")$")
}

func (l Listeners) take(name string) bool {
	return (l.Include == nil || l.Include.MatchString(name)) && (l.Exclude == nil || !l.Exclude.MatchString(name))
}

// Envoy is drained by its admin interface.
type Envoy struct {
	admin     *envoy.Admin
	listeners Listeners
}

// NewEnvoy asks nothing yet.
func NewEnvoy(admin *envoy.Admin, l Listeners) *Envoy { return &Envoy{admin, l} }

// Drain makes Envoy's readiness fall and has its connections closed, each with
// its next answer. Its listeners stay open, for clients that haven't heard yet.
func (e *Envoy) Drain(ctx context.Context) error {
	if err := e.admin.HealthcheckFail(ctx); err != nil {
		return refused(err)
	}
	return refused(e.admin.DrainListeners(ctx, true, true))
}

// Undo takes back what a coordinator that died half way had begun, as far as it
// can be: Envoy is ready again. That it closes each connection after an answer
// stays (an Envoy can't be told otherwise) until it is restarted. undone tells
// whether there was anything.
func (e *Envoy) Undo(ctx context.Context) (undone bool, err error) {
	state, err := e.admin.Ready(ctx)
	if err != nil || state != "DRAINING" {
		return false, refused(err)
	}
	return true, e.admin.HealthcheckOK(ctx)
}

// Ready tells whether Envoy says LIVE.
func (e *Envoy) Ready(ctx context.Context) (bool, error) {
	state, err := e.admin.Ready(ctx)
	return state == "LIVE", refused(err)
}

// mergedAfter is the age at which a hot-restarted Envoy's numbers include its
// parent's: they come with its first flush of stats, by default after 5 s.
const mergedAfter = 10 * time.Second

// Connections of the chosen listeners, those of a hot-restart parent included.
// What doesn't prove a zero is an error: a partial answer, patterns that leave
// nothing, a child that can't know of its parent's yet.
func (e *Envoy) Connections(ctx context.Context) (int, error) {
	by, err := e.admin.ConnectionsByListener(ctx)
	if err != nil {
		return 0, refused(err)
	}
	sum, taken := 0, 0
	for name, n := range by {
		if e.listeners.take(name) {
			sum, taken = sum+n, taken+1
		}
	}
	if taken == 0 && len(by) > 0 {
		return 0, fmt.Errorf("none of Envoy's %d listeners is counted: correct the patterns that include and exclude them", len(by))
	}
	if sum > 0 {
		return sum, nil
	}
	return 0, e.merged(ctx)
}

func (e *Envoy) merged(ctx context.Context) error {
	info, err := e.admin.ServerInfo(ctx)
	if err != nil {
		return refused(err)
	}
	if info.Epoch > 0 && info.Uptime < mergedAfter {
		return fmt.Errorf("epoch %d is %v old: its parent's connections may not be in its numbers yet", info.Epoch, info.Uptime)
	}
	return nil
}

// refused marks the errors that say: no process has this socket.
func refused(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}
