package load

import (
	"strings"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	r := Report{
		Kinds: []KindReport{
			{Kind: New, Started: 100, OK: 97, Failed: 3, Refused: 2, Cut: 1, P50: 1234 * time.Microsecond,
				P90: 12345 * time.Microsecond, P99: 1234 * time.Millisecond, Max: 12345 * time.Millisecond,
				LongestGap: 123 * time.Microsecond, Epochs: map[string]int{"v2": 90, "v1": 7}},
			{Kind: KeepAlive, TLS: true, Started: 10, OK: 8, Abandoned: 2, ToldToClose: 4, IdleClosed: 5, Retried: 6, Overrun: 7},
		},
		Errors: []Error{{Kind: New, Offset: 1500 * time.Millisecond, Heading: cut, Epoch: "v1", Message: "ended"}},
	}
	want := `KIND        TLS  STARTED  OK   FAILED  TOLD  IDLE  RETRIED  OVERRUN  P50    P90   P99    MAX    GAP    EPOCHS
new         -    100      97   3       0     0     0        0        1.2ms  12ms  1.23s  12.3s  120µs  v1:7 v2:90
keep-alive  yes  10       8    0       4     5     6        7        0s     0s    0s     0s     0s     
all              110      105  3       4     5     6        7                                          v1:7 v2:90
new: 3 failed: 2 refused, 1 cut
keep-alive+tls: 0 failed, 2 abandoned by us
     +1.5s  new  cut: ended (epoch v1)
`
	if got := r.Table(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for range 30 {
		r.Errors = append(r.Errors, r.Errors[0])
	}
	if got := r.Table(); strings.Count(got, "ended") != tableErrors || !strings.Contains(got, "(11 more") {
		t.Errorf("31 errors are shown as\n%s", got)
	}
}

func TestTotals(t *testing.T) {
	r := Report{Kinds: []KindReport{
		{Kind: New, Started: 1, OK: 2, Failed: 3, Retried: 4, Overrun: 5},
		{Kind: New, TLS: true, Started: 10, OK: 20, Failed: 30, Retried: 40, Overrun: 50},
	}}
	got := [...]int{r.Started(), r.OK(), r.Failures(), r.Retried(), r.Overruns(), r.Kind(New, true).OK, r.Kind(TCP, false).OK}
	if want := [...]int{11, 22, 33, 44, 55, 20, 0}; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
