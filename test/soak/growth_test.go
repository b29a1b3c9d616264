package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// history is a thousand handoffs, a sample every ten.
func history(value func(handoffs, i int) float64) (at, values []float64) {
	for i := range 100 {
		at = append(at, float64(10*(i+1)))
		values = append(values, value(10*(i+1), i))
	}
	return at, values
}

// Each leak is one that somebody could write; each noise is one that was seen.
func TestLeaksAreToldFromNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for name, c := range map[string]struct {
		allow  allowance
		value  func(handoffs, i int) float64
		leaked bool
	}{
		"nothing at all":                     {counted, func(int, int) float64 { return 0 }, false},
		"descriptors as ever":                {counted, func(_, i int) float64 { return 17 + float64(i%3) }, false},
		"a descriptor in a hundred handoffs": {counted, func(h, _ int) float64 { return 17 + math.Floor(float64(h)/100) }, true},
		"a descriptor for each handoff":      {counted, func(h, _ int) float64 { return 17 + float64(h) }, true},
		"a thread for ten handoffs":          {allowance{by: 3}, func(h, _ int) float64 { return 11 + float64(h/10) }, true},
		"a thread more at busy moments":      {allowance{by: 3}, func(_, i int) float64 { return 11 + float64(i%4) }, false},
		"noisy memory":                       {memory, func(int, int) float64 { return 15000 + 1500*rng.Float64() }, false},
		"6 KiB a handoff under that noise":   {memory, func(h, _ int) float64 { return 15000 + 1500*rng.Float64() + 6*float64(h) }, true},
		"caches that fill at the beginning":  {memory, func(h, _ int) float64 { return 15000 + 20*float64(min(h, 250)) }, false},
		"one bad moment":                     {counted, func(_, i int) float64 { return 17 + 50*b2f(i == 97) }, false},
		"one zombie, once":                   {allowance{never: true}, func(_, i int) float64 { return b2f(i == 3) }, true},
		"a file in /dev/shm in 300 handoffs": {allowance{}, func(h, _ int) float64 { return 4 + float64(h/300) }, true},
		"what shrinks":                       {counted, func(h, _ int) float64 { return 2000 - float64(h) }, false},
		"Envoys that get bigger, 8 KiB each": {envoyMemory, func(h, _ int) float64 { return 16000 + 8*float64(h) }, true},
	} {
		at, values := history(c.value)
		v, err := judge(name, at, values, c.allow)
		if err != nil || v.Failed != c.leaked {
			t.Errorf("%s: %+v, %v; want failed %t", name, v, err, c.leaked)
		}
	}
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func TestTheLineTellsHowFastItGrows(t *testing.T) {
	at, values := history(func(h, _ int) float64 { return 100 + 3*float64(h) })
	v, err := judge("x", at, values, counted)
	if err != nil || math.Abs(v.PerThousand-3000) > 1e-6 || v.Before != 100+3*380 || v.After != 100+3*880 {
		t.Errorf("%+v, %v", v, err)
	}
	if s := slope([]float64{5, 5}, []float64{1, 9}); s != 0 {
		t.Error("a slope at one place:", s)
	}
}

// A judgement out of nothing would always be a good one.
func TestTooFewSamplesAreNoSuccess(t *testing.T) {
	for n := range fewestSamples {
		at, values := history(func(int, int) float64 { return 0 })
		if _, err := judge("x", at[:n], values[:n], counted); err == nil {
			t.Errorf("%d samples were judged", n)
		}
	}
	if _, err := judgeAll(nil); err == nil {
		t.Error("no sample was judged")
	}
}

// Every series is judged by a value of its own: a leak in any of them is told,
// by its name, and no other is blamed.
func TestEachSeriesIsJudged(t *testing.T) {
	leaks := map[string]func(*sample, int){
		"supervisor: resident KiB":          func(s *sample, h int) { s.Supervisor.RSS += 100 * h },
		"supervisor: heap and stacks KiB":   func(s *sample, h int) { s.Supervisor.Anon += 100 * h },
		"supervisor: threads":               func(s *sample, h int) { s.Supervisor.Threads += h },
		"supervisor: descriptors":           func(s *sample, h int) { s.Supervisor.Descriptors += h },
		"supervisor: sockets":               func(s *sample, h int) { s.Supervisor.Sockets += h },
		"supervisor: children":              func(s *sample, h int) { s.Children.Living += h },
		"supervisor: zombies":               func(s *sample, h int) { s.Children.Zombies += h },
		"newest Envoy: resident KiB":        func(s *sample, h int) { s.Envoy.RSS += 100 * h },
		"newest Envoy: heap and stacks KiB": func(s *sample, h int) { s.Envoy.Anon += 100 * h },
		"newest Envoy: threads":             func(s *sample, h int) { s.Envoy.Threads += h },
		"newest Envoy: descriptors":         func(s *sample, h int) { s.Envoy.Descriptors += h },
		"processes":                         func(s *sample, h int) { s.Processes += h },
		"files and sockets on disk":         func(s *sample, h int) { s.Files += h },
		"files in /dev/shm":                 func(s *sample, h int) { s.SHM += h },
		"failed operations":                 func(s *sample, h int) { s.Failures += h },
	}
	if len(leaks) != len(series) {
		t.Errorf("%d leaks for %d series", len(leaks), len(series))
	}
	for name, leak := range leaks {
		var samples []sample
		for h := 10; h <= 1000; h += 10 {
			s := sample{Handoffs: h, Supervisor: process{RSS: 15000, Anon: 7500}, Envoy: process{RSS: 69000, Anon: 16000}}
			leak(&s, h)
			samples = append(samples, s)
		}
		verdicts, err := judgeAll(samples)
		if err != nil {
			t.Fatal(err)
		}
		var failed []string
		for _, v := range verdicts {
			if v.Failed {
				failed = append(failed, v.Name)
			}
		}
		if got := strings.Join(failed, ", "); got != name {
			t.Errorf("a leak of %q: %q failed", name, got)
		}
	}
}
