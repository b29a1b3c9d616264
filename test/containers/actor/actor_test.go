package actor

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"aether.internal/test/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onStage is a client of an actor that acts until the test's end.
func onStage(t *testing.T) (*Client, Addresses) {
	t.Helper()
	dir, err := os.MkdirTemp("", "aa") // short, for the socket's path
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	socket := filepath.Join(dir, "s")
	go func() { ended <- Serve(ctx, socket, func() { close(ready) }) }() // joined by the cleanup
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	c := NewClient(socket)
	t.Cleanup(func() {
		c.Close()
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	up, err := c.Addresses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c, up
}

func TestALoadRunsUntilItIsStopped(t *testing.T) {
	c, up := onStage(t)
	l := Load{Name: "x", Plan: load.Plan{Target: load.Target{HTTP: up.HTTP, TCP: up.TCP}, Kinds: []load.KindPlan{{Kind: load.New, Rate: 100}}}}
	if err := c.Load(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if c.Load(t.Context(), l) == nil {
		t.Error("two of one name")
	}
	for {
		r, err := c.Report(t.Context(), Ask{Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if r.OK() > 10 {
			break
		}
	}
	if r, err := c.Report(t.Context(), Ask{Name: "x", Stop: true}); err != nil || r.Failures() > 0 || r.OK() != r.Started() {
		t.Errorf("%v\n%s", err, r.Table())
	}
	if _, err := c.Report(t.Context(), Ask{Name: "x"}); err == nil {
		t.Error("it is still there")
	}
}

func TestWhatIsHeldIsCutWhenAsked(t *testing.T) {
	c, up := onStage(t)
	err := c.Load(t.Context(), Load{Name: "held", Plan: load.Plan{
		Target: load.Target{TCP: up.TCP}, StreamDuration: time.Hour,
		Kinds: []load.KindPlan{{Kind: load.TCPHold, Rate: 100, MaxOutstanding: 2}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for {
		if r, err := c.Report(t.Context(), Ask{Name: "held"}); err != nil || r.Overruns() > 0 {
			break
		}
	}
	r, err := c.Report(t.Context(), Ask{Name: "held", Stop: true, Cut: true})
	if err != nil || r.Failures() > 0 || r.Kinds[0].Abandoned < 2 {
		t.Errorf("%v\n%s", err, r.Table())
	}
}

func TestIdentitiesAreCounted(t *testing.T) {
	c, up := onStage(t)
	if got, err := c.Fetch(t.Context(), "http://"+up.Identity+"/hello"); err != nil || got.Status != 200 || got.Body == "" {
		t.Fatalf("%+v, %v", got, err)
	}
	if seen, err := c.Identities(t.Context()); err != nil || len(seen) != 1 || seen[""] != 1 {
		t.Errorf("%v, %v", seen, err)
	}
}

// Without a proxy nothing is lost; where nobody answers all is.
func TestFlowsCountWhatIsLost(t *testing.T) {
	c, up := onStage(t)
	f := Flows{Address: up.UDP, Old: 2, Beat: 5 * time.Millisecond}
	if err := c.Flows(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	for {
		if now, err := c.FlowReport(t.Context(), false); err != nil || now.OldAnswered > 10 && now.NewAnswered > 10 {
			break
		}
	}
	got, err := c.FlowReport(t.Context(), true)
	if err != nil || got.Old != got.OldAnswered || got.New != got.NewAnswered || got.New <= 10 {
		t.Errorf("%+v, %v", got, err)
	}
	f.Address = "127.0.0.1:1"
	if err := c.Flows(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	for {
		if now, err := c.FlowReport(t.Context(), false); err != nil || now.New > 3 {
			break
		}
	}
	if got, err := c.FlowReport(t.Context(), true); err != nil || got.OldAnswered+got.NewAnswered > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// What nobody has stopped ends with the actor: goleak looks.
func TestEverythingEndsWithTheActor(t *testing.T) {
	c, up := onStage(t)
	if err := c.Flows(t.Context(), Flows{Address: up.UDP, Old: 1, Beat: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if err := c.QUIC(t.Context(), QUIC{URL: "https://127.0.0.1:1", Kept: 1, Beat: time.Hour, Stream: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if err := c.Load(t.Context(), Load{Plan: load.Plan{Target: load.Target{HTTP: up.HTTP}, Kinds: []load.KindPlan{{Kind: load.Stream, Rate: 50}}}}); err != nil {
		t.Fatal(err)
	}
}
