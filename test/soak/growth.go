package main

import (
	"fmt"
	"slices"
)

// fewestSamples make four quarters of at least two.
const fewestSamples = 8

// allowance is what may be noise.
type allowance struct {
	by      float64 // above what it was
	percent float64 // of what it was, beside by
	never   bool    // it has to be 0 in every sample
}

// verdict is what became of one series.
type verdict struct {
	Name string `json:"name"`
	// Before and After are the medians of the second and of the last quarter.
	// The first one doesn't count: caches and pools fill in it.
	Before      float64 `json:"before"`
	After       float64 `json:"after"`
	Most        float64 `json:"most"`         // in any sample
	Allowed     float64 `json:"allowed"`      // After - Before
	PerThousand float64 `json:"per_thousand"` // handoffs, by a straight line through all but the first quarter; told, not judged
	Failed      bool    `json:"failed"`
}

func (v verdict) grown() float64 { return v.After - v.Before }

// judge compares the second quarter of values with the last one. at are the
// handoffs made by then. Medians, so that one look at a bad moment decides
// nothing.
func judge(name string, at, values []float64, allow allowance) (verdict, error) {
	if len(values) < fewestSamples || len(at) != len(values) {
		return verdict{}, fmt.Errorf("%s: %d samples are too few to judge; %d are needed", name, len(values), fewestSamples)
	}
	quarter := len(values) / 4
	v := verdict{
		Name:        name,
		Before:      median(values[quarter : 2*quarter]),
		After:       median(values[len(values)-quarter:]),
		Most:        slices.Max(values),
		PerThousand: 1000 * slope(at[quarter:], values[quarter:]),
	}
	v.Allowed = allow.by + v.Before*allow.percent/100
	v.Failed = v.grown() > v.Allowed || allow.never && v.Most > 0
	return v, nil
}

func judgeAll(samples []sample) ([]verdict, error) {
	at := make([]float64, len(samples))
	for i, s := range samples {
		at[i] = float64(s.Handoffs)
	}
	var verdicts []verdict
	for _, one := range series {
		values := make([]float64, len(samples))
		for i, s := range samples {
			values[i] = float64(one.of(s))
		}
		v, err := judge(one.name, at, values, one.allow)
		if err != nil {
			return nil, err
		}
		verdicts = append(verdicts, v)
	}
	return verdicts, nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// slope is that of the straight line with the least squares; 0 where all x are
// the same.
func slope(x, y []float64) float64 {
	meanX, meanY := mean(x), mean(y)
	var covariance, variance float64
	for i := range x {
		covariance += (x[i] - meanX) * (y[i] - meanY)
		variance += (x[i] - meanX) * (x[i] - meanX)
	}
	if variance == 0 {
		return 0
	}
	return covariance / variance
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
