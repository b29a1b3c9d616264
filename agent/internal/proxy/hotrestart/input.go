package hotrestart

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// input is a bootstrap and a binary that were checked together.
type input struct {
	id       int
	boot     envoy.Bootstrap
	hash     string // of the bootstrap's bytes
	snapshot *snapshot
	peer     *peer // whom it was prepared to take over from, nil: nobody of another supervisor
	workers  int
	binary   *envoy.Binary
	mode     Mode
}

// asksXDS tells whether more than the bootstrap is to be looked at: dynamic
// listeners or clusters, or a control plane for anything else.
func (in *input) asksXDS() bool { return in.boot.Dynamic || in.boot.ControlPlane }

// reading is what a read needs of the owner's state, by value.
type reading struct {
	Read
	binary  *envoy.Binary // the newest that was opened, nil at the start
	serving *input        // nil at the start
	known   *envoy.Resources
	pid     int // of the serving epoch
	workers int
}

// read checks the newest input in the background → Prepared.
func (sh *shell) read(a Read) {
	r := reading{Read: a, binary: sh.binary, workers: sh.concurrency}
	if s := sh.state.ours(); s != nil {
		r.pid = s.Pid
		r.serving, r.known = sh.children[s.Epoch].input, sh.children[s.Epoch].known.Load()
	}
	ctx, cancel := context.WithCancel(sh.ctx)
	sh.reader()
	sh.reader = cancel
	sh.background(func() {
		defer cancel()
		in, failed := sh.prepare(ctx, r)
		p := Prepared{ID: a.ID, Failed: failed}
		if failed == nil {
			p.Input = Input{ID: a.ID, Config: in.hash, Binary: in.binary.Hash, Mode: in.mode}
			if in.peer != nil {
				p.Peer = &Peer{Epoch: in.peer.epoch, Pod: in.peer.pod}
			}
		}
		// The owner must know the input before the core may launch it.
		err := sh.ask(context.WithoutCancel(ctx), func(sh *shell) {
			if failed == nil {
				sh.inputs[a.ID], sh.binary = in, in.binary
				sh.concurrency = in.workers
				sh.watch(in)
			}
			sh.step(p)
		})
		if err != nil && failed == nil { // stopped meanwhile: nobody else knows of it
			in.snapshot.remove()
		}
	})
}

// discard frees an input, unless it is needed again: the serving epoch's own
// is launched to heal, a dead one's to respawn.
func (sh *shell) discard(id int) {
	if sh.state.needs(id) {
		return
	}
	if in := sh.inputs[id]; in != nil {
		delete(sh.inputs, id)
		// The binary's descriptor closes with its last user.
		in.snapshot.remove()
	}
}

// prepare reads, checks, snapshots and validates. Nothing that serves is
// touched by it.
func (sh *shell) prepare(ctx context.Context, r reading) (*input, *Refusal) {
	var p *peer
	if r.Survey { // first: the newest input counts when it is our turn
		var refusal *Refusal
		if p, refusal = sh.survey(ctx, r.ID); refusal != nil {
			return nil, refusal
		}
	}
	data, err := readBootstrap(sh.cfg.ConfigPath)
	if err != nil {
		return nil, &Refusal{Step: "read the bootstrap", Text: err.Error(), Code: ExitBootstrap}
	}
	in := &input{id: r.ID, hash: digest(data), peer: p, workers: r.workers}
	if in.binary, err = sh.openBinary(ctx, r.binary); err != nil {
		return nil, &Refusal{Step: "open the Envoy binary", Text: err.Error(), Code: ExitBinary}
	}
	if s := r.serving; s != nil && s.hash == in.hash {
		in.boot = s.boot // the same again: to parse it would be half of the way to the fork
	} else if in.boot, err = envoy.ParseBootstrap(data); err == nil {
		err = sh.checkBootstrap(in.boot)
	}
	if err != nil {
		return nil, &Refusal{Step: "check the bootstrap", Text: sh.cfg.ConfigPath + ": " + err.Error(), Code: ExitBootstrap}
	}
	if r.Survey && p == nil {
		if refusal := sh.uncoordinated(ctx, in); refusal != nil {
			return nil, refusal
		}
	}
	if p != nil {
		sh.meet(ctx, p, in)
		var refusal *Refusal
		if in.workers, refusal = sh.checkPeer(p, in, r.workers); refusal != nil {
			return nil, refusal
		}
		r.known = p.known
	}
	if refusal := sh.checkHandoff(in, r); refusal != nil {
		return nil, refusal
	}
	if p != nil && sh.cutsGrandparent(p, in) {
		if refusal := sh.awaitGrandparent(ctx, r.ID, p); refusal != nil {
			return nil, refusal
		}
		return sh.prepare(ctx, r) // the file may be another by now, and so may be who lives
	}
	if refusal := checkFiles(in, r.known, in.workers); refusal != nil {
		return nil, refusal
	}
	if text := headroom("/", r.pid); r.serving != nil && text != "" {
		sh.log.Warn("memory", "warning", text)
	}
	if in.snapshot, err = takeSnapshot(sh.cfg.StateDir, sh.cfg.ConfigPath, data); err != nil {
		return nil, &Refusal{Step: "snapshot the bootstrap", Text: err.Error(), Code: ExitUnexpected}
	}
	if refusal := sh.validate(ctx, in, r); refusal != nil {
		in.snapshot.remove()
		return nil, refusal
	}
	return in, nil
}

// readBootstrap reads the file whole, at most envoy.MaxBootstrap bytes.
func readBootstrap(path string) ([]byte, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".yaml", ".yml", ".json":
	default:
		return nil, fmt.Errorf("%s: a bootstrap's name must end in .yaml, .yml or .json (Envoy reads it by its ending)", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO must not stop us
	if err != nil {
		return nil, plain(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file but %s", path, envoy.KindOf(info.Mode()))
	} else if info.Size() > envoy.MaxBootstrap {
		return nil, fmt.Errorf("%s is too large: %d bytes, at most %d are read", path, info.Size(), envoy.MaxBootstrap)
	}
	return io.ReadAll(io.LimitReader(f, envoy.MaxBootstrap+1))
}

// plain says in a sentence why a file could not be opened.
func plain(err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", path.Path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s can't be read: permission denied for uid %d", path.Path, os.Getuid())
	}
	return err
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// openBinary keeps the open file as long as the path still names just that
// one: validate, start and retry run the same bytes (rule 3), and nothing is
// hashed twice.
func (sh *shell) openBinary(ctx context.Context, last *envoy.Binary) (*envoy.Binary, error) {
	if last != nil && last.Same(sh.cfg.EnvoyPath) {
		return last, nil
	}
	b, err := envoy.OpenBinary(sh.cfg.EnvoyPath)
	if err != nil {
		return nil, err
	}
	if last != nil && b.Hash == last.Hash { // moved or touched: it has answered before
		b.Version, b.HotRestartVersion = last.Version, last.HotRestartVersion
	}
	if err := b.Probe(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// checkBootstrap refuses what could never be verified.
func (sh *shell) checkBootstrap(b envoy.Bootstrap) error {
	switch {
	case sh.cfg.AdminPerEpoch:
		return nil
	case b.Admin == nil:
		return errors.New("it has no admin address, and without one nothing can be verified; add admin.address")
	case !b.Admin.IsUnix() && b.Admin.Port == 0:
		return errors.New("its admin port is 0, so nobody knows where it will listen; choose a port or a pipe")
	case sh.cfg.AdminAddress == "":
		return nil
	}
	want, err := envoy.ParseAddress(sh.cfg.AdminAddress)
	if err != nil {
		return fmt.Errorf("--admin-address: %w", err)
	}
	if want.String() != b.Admin.String() {
		return fmt.Errorf("its admin address is %s, but --admin-address says %s", b.Admin, want)
	}
	return nil
}

// checkHandoff chooses the way of the handoff and refuses those that can't
// work.
func (sh *shell) checkHandoff(in *input, r reading) *Refusal {
	b := in.binary
	if s := r.serving; s != nil && s.binary.HotRestartVersion != b.HotRestartVersion {
		return &Refusal{Step: "compare hot-restart versions", Code: ExitBinary, Text: fmt.Sprintf(
			"%s (Envoy %s) speaks %s, the serving Envoy %s speaks %s: they can't hand over; restart the container to change to it",
			b.Path, b.Version, b.HotRestartVersion, s.binary.Version, s.binary.HotRestartVersion)}
	}
	switch {
	case sh.cfg.NoRelay || b.HotRestartVersion != envoy.KnownHotRestartVersion:
		in.mode = ModePlain
	case hasUDP(in.boot.Listeners, r.known) || r.serving != nil && hasUDP(r.serving.boot.Listeners, nil):
		in.mode = ModeUDP
	}
	if in.mode == ModePlain && (r.serving != nil || in.peer != nil) && in.boot.Dynamic && !in.boot.WaitsForFirstFetch {
		return &Refusal{Step: "check the bootstrap", Code: ExitBootstrap, Text: "in plain mode a newcomer commits itself when it is LIVE, " +
			"and with a silent control plane it is LIVE with nothing: say initial_fetch_timeout: 0s in each LDS and CDS source (and ADS)"}
	}
	return nil
}

func hasUDP(static []envoy.Listener, known *envoy.Resources) bool {
	for _, l := range static {
		if l.UDP || l.QUIC {
			return true
		}
	}
	if known != nil {
		for _, l := range known.DynamicListeners {
			if l.Listener.UDP || l.Listener.QUIC {
				return true
			}
		}
		for _, l := range known.Active { // all that is known of another pod's static ones
			if l.UDP {
				return true
			}
		}
	}
	return false
}

// validateTime bounds --mode validate: about as long as a start (fact 5), and
// 20,000 clusters take 7 s.
const validateTime = 2 * time.Minute

// validateArgs include the overlay, so that what is validated is what runs; any
// epoch's will do.
func (sh *shell) validateArgs() []string {
	if overlay := sh.overlay(0); overlay != "" {
		return append(sh.extra[:len(sh.extra):len(sh.extra)], "--config-yaml", overlay)
	}
	return sh.extra
}

func (sh *shell) validate(ctx context.Context, in *input, r reading) *Refusal {
	switch s := r.serving; {
	case sh.cfg.Validate == ValidateNever:
		return nil
	case sh.cfg.Validate == ValidateChanges && s != nil && s.hash == in.hash && s.binary.Hash == in.binary.Hash:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, validateTime)
	defer cancel()
	err := in.binary.Validate(ctx, in.snapshot.path(), sh.validateArgs())
	var refused *envoy.ValidationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		text := strings.ReplaceAll(refused.Error(), in.snapshot.path(), sh.cfg.ConfigPath)
		return &Refusal{Step: "validate", Text: text, Code: ExitBootstrap, Log: strings.Split(text, "\n")}
	case r.First: // a validator that can't run must not stop a first start (rule 3)
		sh.log.Warn("the validator could not run; starting without", "error", err)
		return nil
	}
	return &Refusal{Step: "validate", Text: "the validator could not run: " + err.Error(), Code: ExitBinary}
}
