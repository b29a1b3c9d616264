package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{nil, 0.5, 0},
		{[]float64{7}, 0.9, 7},
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 3, 2}, 0.5, 2.5},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 0.9, 10},
		{[]float64{0, 10}, 0.9, 9},
		{[]float64{5, 6}, 0, 5},
		{[]float64{5, 6}, 1, 6},
	} {
		if got := quantile(c.values, c.q); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v at %v: %v, want %v", c.values, c.q, got, c.want)
		}
	}
}

func TestQuantileLeavesItsInputInOrder(t *testing.T) {
	values := []float64{3, 1, 2}
	quantile(values, 0.5)
	if values[0] != 3 || values[1] != 1 {
		t.Error(values)
	}
}

func TestRatioOfNothing(t *testing.T) {
	for _, r := range []interval{ratioOf(nil, nil), ratioOf([]float64{1}, []float64{0}), ratioOf([]float64{1}, nil)} {
		if r != (interval{}) {
			t.Error(r)
		}
	}
}

// Rounds are drawn whole: what both sides have in common must not widen the
// interval.
func TestRatioUsesThatRoundsArePaired(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var a, b, shuffled []float64
	for range 40 {
		machine := 50 + 50*rng.Float64()
		a, b = append(a, 1.2*machine), append(b, machine)
	}
	for _, i := range rng.Perm(len(b)) {
		shuffled = append(shuffled, b[i])
	}
	paired, apart := ratioOf(a, b), ratioOf(a, shuffled)
	if math.Abs(paired.Low-1.2) > 1e-9 || math.Abs(paired.High-1.2) > 1e-9 {
		t.Errorf("paired: %+v", paired)
	}
	if math.Abs(apart.Value-1.2) > 1e-9 || apart.Low > 1.15 || apart.High < 1.25 {
		t.Errorf("not paired: %+v", apart)
	}
}

// The interval holds the true ratio about as often as it says.
func TestIntervalCoversTheTruth(t *testing.T) {
	const trials, truth = 50, 1.1
	rng := rand.New(rand.NewPCG(5, 6))
	covered := 0
	for range trials {
		a, b := make([]float64, 30), make([]float64, 30)
		for i := range a {
			a[i], b[i] = truth*(50+5*rng.NormFloat64()), 50+5*rng.NormFloat64()
		}
		if r := ratioBy(200, a, b); r.Low <= truth && truth <= r.High {
			covered++
		}
	}
	if covered < 43 {
		t.Errorf("%d of %d", covered, trials)
	}
}

func TestTheSameDataGiveTheSameInterval(t *testing.T) {
	a, b := []float64{1, 2, 3, 4, 9}, []float64{1, 1, 2, 2, 3}
	if first, second := ratioOf(a, b), ratioOf(a, b); first != second {
		t.Error(first, second)
	}
}
