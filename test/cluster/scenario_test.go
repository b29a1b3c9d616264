package cluster

import (
	"testing"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/node"
)

// scenario is a row of docs/kubernetes-tests.md: what is done to the node while
// the load runs, and what may be noticed of it.
type scenario struct {
	name string
	// harm is why clients notice although all is done that can be; "" wants 0
	// failures.
	harm string
	// restarts of containers that belong to it; -1 for any number.
	restarts int
	play     func(*scene)
}

// scene is a scenario being played.
type scene struct {
	*release
	rolls int
}

// play runs scenarios on a release, one after the other. After one that failed the
// node isn't what the next one expects.
func (r *release) play(scenarios ...scenario) {
	r.Helper()
	for _, s := range scenarios {
		if !r.Run(s.name, func(t *testing.T) { r.playOne(t, s) }) {
			r.Fatalf("after %q the rest isn't played", s.name)
		}
	}
}

func (r *release) playOne(t *testing.T, s scenario) {
	mine := *r
	mine.T, mine.ctx = t, t.Context()
	c := &scene{release: &mine}
	restarts, began := c.pods.restarts(), time.Now()
	runner, err := load.Start(c.ctx, c.plan())
	c.must(err)
	defer runner.Stop()
	s.play(c)
	report := runner.Stop()
	row := measured{
		Name: s.name, Rolls: c.rolls, Operations: report.Started(), Failed: report.Failures(),
		GapMS: report.Kind(load.New, false).LongestGap.Milliseconds(), Restarts: c.pods.restarts() - restarts,
		Harm: s.harm, Seconds: int(time.Since(began).Seconds()),
	}
	c.judge(s, row, report)
	if !c.Failed() {
		record(row)
	}
}

// plan is about 100 operations a second of all kinds without TLS, and new
// connections often enough to see how long nobody answered.
func (c *scene) plan() load.Plan {
	plan := load.DefaultPlan(c.boot.Target())
	plan.StreamDuration, plan.Timeout = 500*time.Millisecond, 30*time.Second
	for i := range plan.Kinds {
		plan.Kinds[i].Rate = max(plan.Kinds[i].Rate/3, 1)
		plan.Kinds[i].Connections = 1 // which the limit leaves time to tell to close
	}
	plan.Kinds[0].Rate = 40
	return plan
}

func (c *scene) judge(s scenario, row measured, report load.Report) {
	c.Helper()
	c.Logf("%+v", row)
	if report.OK() == 0 || s.harm == "" && row.Failed > 0 {
		c.Errorf("the load was harmed: %d failures of %d\n%s", row.Failed, row.Operations, report.Table())
		for _, e := range report.Errors {
			c.Logf("%s at %v, %s: %s", e.Kind, report.Start.Add(e.Offset).Format("15:04:05.000"), e.Heading, e.Message)
		}
	}
	for _, k := range report.Kinds {
		if k.Wrong > 0 {
			c.Errorf("%s: %d wrong answers", k.Kind, k.Wrong)
		}
	}
	if s.restarts >= 0 && row.Restarts != s.restarts {
		c.Errorf("%d restarts of containers, want %d", row.Restarts, s.restarts)
	}
}

// serving waits until a pod serves an epoch, no other lives, and it is ready.
func (c *scene) serving(p pod, epoch int) node.Status {
	c.Helper()
	return c.await(p, "to serve alone", func(s node.Status) bool { return node.Alone(epoch)(s) && s.Ready })
}

// epoch is what a pod serves.
func (c *scene) epoch(p pod) int {
	c.Helper()
	return c.await(p, "to serve", func(s node.Status) bool { return s.Serving >= 0 && s.Ready }).Serving
}

// restart is `kubectl rollout restart`.
func (c *scene) restart() {
	c.Helper()
	c.rolls++
	c.kube("rollout", "restart", "daemonset/"+c.name, "-n", c.namespace)
}

// takenOver waits for the end of a roll: the next epoch in another pod, and the
// old one ended well.
func (c *scene) takenOver(old pod, epoch int) pod {
	c.Helper()
	last := c.gone(old)
	if code := last.exitCode(); code != 0 {
		c.Errorf("%s ended with exit code %d, want 0", last.Metadata.Name, code)
	}
	next := c.rolled()
	c.serving(next, epoch)
	return next
}
