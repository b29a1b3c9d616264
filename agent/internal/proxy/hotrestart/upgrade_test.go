package hotrestart

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestTheProgramIsReplacedWhileOneEpochServesAndNoHandoffIsUnderWay(t *testing.T) {
	s := newScript(t).serving(1)
	s.on(UpgradeWanted{}).does(Replace{})
	s.after(time.Second).on(Tick{}).doesNo(Replace{}) // once
	s.on(UpgradeWanted{}).doesNo(Replace{})
	s.on(UpgradeOver{From: "1", To: "2", Error: "exec: no"}).doesNo(Replace{})
	if u := s.state.LastUpgrade; s.state.Upgrade != nil || u == nil || u.Error != "exec: no" || s.state.Upgrades != 0 {
		t.Errorf("%+v", s.state)
	}
	s.on(UpgradeWanted{}).does(Replace{}).on(TookOver{From: "1", To: "2"})
	if u := s.state.LastUpgrade; s.state.Upgrade != nil || u.Error != "" || u.To != "2" || s.state.Upgrades != 1 {
		t.Errorf("%+v", s.state)
	}
}

func TestTheProgramWaitsForAHandoffAndHandoffsThatNobodyWaitsForWaitForIt(t *testing.T) {
	s := newScript(t).serving(0).on(Triggered{By: TriggerSignal})
	s.on(UpgradeWanted{}).doesNo(Replace{})
	s.good(ModeRelay).does(Launch{Epoch: 1}).doesNo(Replace{})
	s.on(Triggered{By: TriggerConfig}).doesNo(Read{}) // steady triggers must not starve it
	s.on(Launched{Epoch: 1, Pid: 7}).on(WentLive{1}).doesNo(Replace{})
	s.on(Verified{1}).does(Commit{1}, Replace{}).doesNo(Read{})
	if p := s.state.pending(); p == nil || p.WaitsFor != "the supervisor's own upgrade" {
		t.Errorf("%+v", p)
	}
	s.on(TookOver{}).does(Read{}) // the new program reads the newest input
}

func TestAReloadThatSomebodyWaitsForComesBeforeTheUpgrade(t *testing.T) {
	s := newScript(t).serving(0).on(UpgradeWanted{}).does(Replace{})
	s.on(Triggered{By: TriggerReload, Waiter: 1}).does(Read{})
	if s.state.Upgrade.Going {
		t.Error("it would cut off who waits")
	}
	s.good(ModeRelay).up(1).does(Reply{Waiters: []int{1}}, Replace{})
}

func TestTheProgramStaysWhereReplacingItWouldBeARisk(t *testing.T) {
	for name, bring := range map[string]func(*script){
		"no epoch yet": func(s *script) { s.on(Triggered{By: TriggerStart}) },
		"contested":    func(s *script) { s.serving(0).on(Sighted{Epoch: 1, Lives: true}) },
		"superseded":   func(s *script) { s.serving(0).on(Sighted{Epoch: 1, Lives: true, Relay: true, Drained: true}) },
		"foreign":      func(s *script) { s.on(Triggered{By: TriggerStart}).foreign(4) },
		"taking back": func(s *script) {
			s.serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Launched{Epoch: 1}).on(Exited{Epoch: 1})
		},
		"asked whether": func(s *script) { s.serving(0).on(Silenced{Epoch: 0}).after(time.Minute).on(Tick{}).does(Ask{0}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			bring(s)
			s.on(UpgradeWanted{}).doesNo(Replace{})
			if s.state.unquiet() == "" {
				t.Error("it must say why")
			}
		})
	}
	s := newScript(t).serving(0).on(UpgradeWanted{}).on(Stop{By: "SIGTERM"})
	if s.state.Upgrade != nil || s.state.LastUpgrade.Error == "" {
		t.Errorf("a stop ends it: %+v", s.state)
	}
	s.on(UpgradeWanted{}).doesNo(Replace{})
	// A death meanwhile: recovery does not wait.
	s = newScript(t).serving(0)
	s.on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1)
	s.on(UpgradeWanted{}).does(Replace{}).on(Exited{Epoch: 1}).does(Launch{Epoch: 1})
	if s.state.Upgrade.Going {
		t.Error("replaced while nobody serves")
	}
	s.up(1).does(Replace{})
}

// foreign lets the read under way find another pod's epoch.
func (s *script) foreign(epoch int) *script {
	return s.on(Prepared{ID: s.state.Reading.ID, Input: Input{ID: s.state.Reading.ID, Config: "a", Binary: "b"}, Peer: &Peer{Epoch: epoch}})
}

// A state that another program reads has a version: what changes in these types is
// to be looked at, and EstateVersion raised, before the file is written anew
// (go test -run TheEstate -update).
var update = flag.Bool("update", false, "write what is compared anew")

func TestTheEstateHasAVersion(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "version %d\n", EstateVersion)
	describe(&b, "estate", reflect.TypeOf(estate{}), map[reflect.Type]bool{})
	path := filepath.Join("testdata", "estate.txt")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != b.String() {
		t.Errorf("what is handed over has changed (%v); raise EstateVersion, and say whether older ones can still be read:\n%s", err, b.String())
	}
}

func describe(b *strings.Builder, path string, t reflect.Type, within map[reflect.Type]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		describe(b, path+"[]", t.Elem(), within)
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() || within[t] {
			fmt.Fprintf(b, "%s %s\n", path, t.Name())
			return
		}
		within[t] = true
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() {
				panic(path + "." + f.Name + " is not exported, and would be lost")
			}
			describe(b, path+"."+f.Name, f.Type, within)
		}
		delete(within, t)
	default:
		fmt.Fprintf(b, "%s %s\n", path, t.Kind())
	}
}

func estateOf(t *testing.T, change func(*estate)) *os.File {
	t.Helper()
	s := newScript(t).serving(2)
	e := &estate{Version: EstateVersion, Program: "1.0", At: s.at, StateDir: "/s", Marker: "/m", Control: "/c", State: s.state, MarkerFD: noFD, Old: noFD}
	change(e)
	f, err := e.file()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestAnEstateOfAnotherVersionOrPlaceIsRefused(t *testing.T) {
	cfg := Config{StateDir: "/s", ReadyMarkerPath: "/m", ControlSocket: "/c"}
	if err := CheckEstate(cfg, estateOf(t, func(*estate) {})); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		change func(*estate)
		want   string
	}{
		"older": {func(e *estate) { e.Version = EstateVersion - 1 }, "in format 0"},
		"newer": {func(e *estate) { e.Version = EstateVersion + 1 }, "in format 2"},
		"place": {func(e *estate) { e.StateDir = "/t" }, "--state-dir was /t"},
		"base":  {func(e *estate) { e.BaseID = 7 }, "--base-id was 7"},
		"stop":  {func(e *estate) { e.State.Stage = Stopping }, "stopping"},
		"empty": {func(e *estate) { e.State = State{} }, "no epoch of ours serves"},
	} {
		if err := CheckEstate(cfg, estateOf(t, c.change)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	junk := filepath.Join(t.TempDir(), "junk")
	for _, text := range []string{"", "{", `{"version":1,"more":2}`, "[]"} {
		if err := os.WriteFile(junk, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(junk)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckEstate(cfg, f); err == nil {
			t.Errorf("%q is taken", text)
		}
		f.Close()
	}
}

// What was so long ago still is, whatever the wall clock does: its times must have
// a monotonic reading again.
func TestTimesAreHandedOverByTheirDistance(t *testing.T) {
	s := newScript(t).serving(1).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(2)
	e, err := readEstate(estateOf(t, func(e *estate) { e.State, e.At = s.state, s.at }))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	rebase(e, e.At, now)
	g := e.State.gen(1)
	if got := g.Deadline.Sub(now); got != testLimits.Parent || !strings.Contains(g.Deadline.String(), "m=") {
		t.Errorf("%v from now: %v", got, g.Deadline)
	}
	if !e.State.gen(2).Deadline.IsZero() {
		t.Error("none has become one")
	}
	e.State.History, s.state.History = nil, nil
	if len(e.State.Gens) != len(s.state.Gens) || e.State.gen(2).Input != s.state.gen(2).Input || e.State.NextID != s.state.NextID {
		t.Errorf("%+v\nbecame %+v", s.state, e.State)
	}
}

func TestDescriptorsOfAnEstate(t *testing.T) {
	e := estate{
		MarkerFD: 9, Old: noFD,
		Inputs:   []inputEstate{{Snapshot: fileEstate{FD: 4}, Binary: fileEstate{FD: 5}}, {Snapshot: fileEstate{FD: 6}, Binary: fileEstate{FD: 5}}},
		Children: []childEstate{{Stderr: noFD, Relay: &relayEstate{FD: 7, Envoy: 10}, AsParent: &parentEstate{FD: 8, Envoy: noFD}}, {Stderr: 3}},
	}
	if got := fmt.Sprint(e.descriptors()); got != "[3 4 5 6 7 8 9 10]" {
		t.Error(got)
	}
}
