package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"aether.internal/test/demo/report"
	"aether.internal/test/load"
	"aether.internal/test/node"
	"aether.internal/tools/envoy/fetch"
)

// Exit codes; Command demo says when.
const (
	exitOK          = 0
	exitDropped     = 1
	exitUnable      = 2
	exitInterrupted = 130
)

// patience for one step: generous, because the demo judges what happens and
// not how fast. A step may have to wait for an epoch's limit.
const patience = limit + 30*time.Second

// demo is one showing.
type demo struct {
	out    io.Writer
	report string // path of the HTML report
	plan   func(load.Target) load.Plan
	story  func(*stage) []step
	pace   time.Duration
}

// run shows it and returns the exit code.
func (d demo) run(ctx context.Context) int {
	screen := newScreen(d.out)
	s, err := d.prepare(ctx, screen)
	switch {
	case err != nil && ctx.Err() != nil:
		return exitInterrupted
	case err != nil:
		screen.say("demo: %v", err)
		return exitUnable
	}
	t := &teller{world: s, screen: screen, chronicle: &chronicle{}, patience: patience}
	steps, err := t.tell(ctx, d.story(s))
	if err != nil && ctx.Err() == nil {
		lastLines(screen, s) // before our own end of it is in the log
	}
	s.close()
	if ctx.Err() != nil {
		screen.say("interrupted: everything is stopped and removed, and there is no report")
		return exitInterrupted
	}
	d.keepLog(screen, s)
	return d.conclude(screen, account(s, t, steps, err))
}

// keepLog writes the supervisor's log beside the report: whoever sees a
// failure in the one looks for its reason in the other.
func (d demo) keepLog(screen *screen, s *stage) {
	if s.run == nil {
		return
	}
	err := os.MkdirAll(filepath.Dir(d.report), 0o755)
	if err == nil {
		err = os.WriteFile(d.log(), []byte(s.run.Log()), 0o644)
	}
	if err != nil {
		screen.say("demo: the supervisor's log: %v", err)
	}
}

func (d demo) log() string { return strings.TrimSuffix(d.report, filepath.Ext(d.report)) + ".log" }

// conclude prints the summary, writes the report and judges.
func (d demo) conclude(screen *screen, r report.Run) int {
	screen.say("%s", summary(r))
	if err := report.Write(d.report, r); err != nil {
		screen.say("demo: %v", err)
		return exitDropped
	}
	screen.say("report   %s\nlog      %s", d.report, d.log())
	if !r.Failed() {
		return exitOK
	}
	if note := busy(); note != "" {
		screen.say("%s; what failed may have failed for that alone", note)
	}
	return exitDropped
}

// prepare gets the Envoys, builds the agent and furnishes the stage.
func (d demo) prepare(ctx context.Context, screen *screen) (*stage, error) {
	if os.Getenv("AGENT") == "" {
		if _, err := exec.LookPath("go"); err != nil {
			return nil, errors.New("the agent can't be built, because there is no go on PATH: install Go 1.26 or newer, or name a built agent with AGENT")
		}
	}
	newer := fetch.Default
	if os.Getenv("ENVOY") != "" {
		newer = "the one that ENVOY names"
	}
	screen.say("getting Envoy %s and %s (the first time it downloads about 70 MB)", older, newer)
	envoys, err := chooser{fetch.Path, identify}.choose(ctx)
	if err != nil {
		return nil, err
	}
	if envoys.lacking != "" {
		screen.say("%s", envoys.lacking)
	}
	screen.say("building the agent")
	if _, err := node.Agent(ctx); err != nil {
		return nil, err
	}
	return newStage(ctx, envoys, d.plan, d.pace)
}

// lastLines prints the end of the supervisor's log: the story broke off there.
func lastLines(screen *screen, s *stage) {
	const tail = 15
	if s.run == nil {
		return
	}
	lines := s.run.Lines()
	screen.say("\nThe supervisor's last lines:")
	for _, l := range lines[max(0, len(lines)-tail):] {
		screen.say("  %s", l.Raw)
	}
}

// account makes the report of what was seen.
func account(s *stage, t *teller, steps []report.Step, broken error) report.Run {
	r := report.Run{Began: t.began, Length: t.last.at.Sub(t.began), Steps: steps, Facts: facts(s)}
	if broken != nil {
		r.Broken = broken.Error()
	}
	if s.load != nil {
		r.Load, r.Bucket = s.load.Snapshot(), width
	}
	if s.run != nil {
		lines := s.run.Lines()
		r.Lanes = t.chronicle.lanes(t.began, lines, s.tags)
		r.Handoffs = t.chronicle.commits(t.began, lines)
		r.Refusals = refusals(t.began, lines)
	}
	return r
}
