package drain

import "time"

// Pauses between two counts: short at first, because most pods are idle by then,
// and never so long that the end waits for them.
const (
	firstPause = 10 * time.Millisecond
	mostPause  = 250 * time.Millisecond
)

// unknown is the number of connections when a count has failed: it is not zero.
const unknown = -1

// tally is how often in a row there was no connection, and how many looks there
// were. Once is not enough: a count has an instant between two requests of a
// client that reconnects, and what a listener has accepted a worker may not have
// counted yet.
type tally struct{ zeros, looks int }

// add takes one count; true: idle.
func (t *tally) add(n int) bool {
	t.looks++
	if n != 0 {
		t.zeros = 0
		return false
	}
	t.zeros++
	return t.zeros >= 2
}

// pause is how long to wait for the next look.
func (t *tally) pause() time.Duration {
	pause := firstPause
	for range t.looks - 1 {
		if pause = pause * 3 / 2; pause >= mostPause {
			return mostPause
		}
	}
	return pause
}
