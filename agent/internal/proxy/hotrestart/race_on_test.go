//go:build race

package hotrestart

const underRace = true
