//go:build !race

package hotrestart

// underRace: the race detector makes the simulator, which has no goroutines of its
// own to race, ten times slower. Then it plays fewer schedules; all of them are
// played without it (tools/test weight).
const underRace = false
