// Command probe measures what a readiness probe costs, from its start to its exit,
// side by side with a Go program that does nothing and with the agent as its own
// probe: the same marker, in turns within one run. It measures and never judges
// by its exit code: 0 unless it could not measure.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"aether.internal/tools/runfile"
)

func main() {
	runs := flag.Int("runs", 1000, "runs of each")
	flag.Parse()
	dir, err := os.MkdirTemp("", "probe")
	if err == nil {
		err = run(context.Background(), dir, *runs, os.Stdout)
		os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe: can't measure:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, runs int, to io.Writer) error {
	probes, err := prepare(ctx, dir)
	if err != nil {
		return err
	}
	if err := measure(probes, runs); err != nil {
		return err
	}
	report(to, probes)
	return nil
}

// probe is one program and what its runs have cost.
type probe struct {
	name string
	line []string
	wall []float64 // ms, sorted once all are there
	cpu  []float64 // ms
	rss  []float64 // kB, at most
}

// programs are what is compared; the first is what the others are compared with.
var programs = []struct{ name, variable, source string }{
	{"an empty Go program", "EMPTY", "./test/bench/probe/empty"},
	{"proxy-ready", "PROXY_READY", "./agent/cmd/proxy-ready"},
	{"agent proxy-supervisor --readiness-check", "AGENT", "./agent/cmd/agent"},
}

// prepare publishes a marker, which stays fresh as long as we live, and builds
// what isn't there yet.
func prepare(ctx context.Context, dir string) ([]*probe, error) {
	path := filepath.Join(dir, "ready")
	// Fresh means that somebody has locked it: we do, until our end.
	marker, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(marker, syscall.LOCK_EX); err != nil {
		return nil, err
	}
	arguments := [][]string{nil, {path}, {"proxy-supervisor", "--readiness-check", "--ready-marker", path}}
	var probes []*probe
	for i, p := range programs {
		program := runfile.Path(p.variable)
		if program == "" {
			program = filepath.Join(dir, filepath.Base(p.source))
			build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", program, "aether.internal/"+p.source[2:])
			if out, err := build.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("build %s: %w\n%s", p.source, err, out)
			}
		}
		probes = append(probes, &probe{name: p.name, line: append([]string{program}, arguments[i]...)})
	}
	return probes, nil
}

// measure runs all in turn: what slows the machine down slows all of them.
func measure(probes []*probe, runs int) error {
	for range runs {
		for _, p := range probes {
			if err := p.run(); err != nil {
				return err
			}
		}
	}
	for _, p := range probes {
		for range min(runs, 20) {
			kb, err := peak(p.line)
			if err != nil {
				return fmt.Errorf("memory of %s: %w", p.name, err)
			}
			p.rss = append(p.rss, kb)
		}
		for _, values := range [][]float64{p.wall, p.cpu, p.rss} {
			slices.Sort(values)
		}
	}
	return nil
}

func (p *probe) run() error {
	cmd := exec.Command(p.line[0], p.line[1:]...)
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.wall = append(p.wall, milliseconds(time.Since(began)))
	p.cpu = append(p.cpu, milliseconds(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()))
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// at is a quantile of sorted values.
func at(values []float64, q float64) float64 { return values[int(q*float64(len(values)-1))] }

func report(to io.Writer, probes []*probe) {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "of %d runs each\tmedian, ms\tp90, ms\t× empty\tCPU, ms\t× empty\tRSS, MB\tsize, MB\n", len(probes[0].wall))
	base := probes[0]
	for _, p := range probes {
		size := 0.0
		if info, err := os.Stat(p.line[0]); err == nil {
			size = float64(info.Size()) / 1e6
		}
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t%.2f\n", p.name, at(p.wall, 0.5), at(p.wall, 0.9), p.times(base, wall),
			at(p.cpu, 0.5), p.times(base, cpu), at(p.rss, 0.5)/1000, size)
	}
	t.Flush()
}

func wall(p *probe) []float64 { return p.wall }
func cpu(p *probe) []float64  { return p.cpu }

// times is how many times the median of base p's is.
func (p *probe) times(base *probe, of func(*probe) []float64) float64 {
	return at(of(p), 0.5) / at(of(base), 0.5)
}
