package main

import (
	"math/rand/v2"
	"slices"
)

// quantile of values by linear interpolation between the two nearest; q from 0
// to 1. It is 0 for no values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low >= len(sorted)-1 {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// interval holds an estimate and its 95 % confidence interval.
type interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

const resamples = 2000

// ratioOf compares the medians of a and b, the same rounds of two sides. Whole
// rounds are resampled: what slowed the machine down in one slowed both sides.
func ratioOf(a, b []float64) interval { return ratioBy(resamples, a, b) }

func ratioBy(resamples int, a, b []float64) interval {
	n := min(len(a), len(b))
	if n == 0 || median(b[:n]) == 0 {
		return interval{}
	}
	rng := rand.New(rand.NewPCG(1, 2)) // the same data give the same interval
	drawnA, drawnB, ratios := make([]float64, n), make([]float64, n), make([]float64, resamples)
	for r := range ratios {
		for i := range n {
			round := rng.IntN(n)
			drawnA[i], drawnB[i] = a[round], b[round]
		}
		ratios[r] = median(drawnA) / median(drawnB)
	}
	return interval{
		Value: median(a[:n]) / median(b[:n]),
		Low:   quantile(ratios, 0.025), High: quantile(ratios, 0.975),
	}
}
