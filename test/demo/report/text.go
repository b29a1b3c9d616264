package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Short writes a time with as many digits as anybody reads.
func Short(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case d == 0:
		return "0"
	case d >= 100*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case ms >= 10:
		return fmt.Sprintf("%.0f ms", ms)
	case ms >= 0.1:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f µs", ms*1000)
}

// Count writes 12345 as "12,345".
func Count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// brief is the beginning and the end of a text: errors name the step first
// and the cause last.
func brief(text string, begin, end int) string {
	r := []rune(text)
	if len(r) <= begin+end+3 {
		return text
	}
	head, tail := string(r[:begin]), string(r[len(r)-end:])
	if i := strings.LastIndexByte(head, ' '); i > 0 { // whole words
		head = head[:i]
	}
	if i := strings.IndexByte(tail, ' '); i >= 0 && i < len(tail)-1 {
		tail = tail[i+1:]
	}
	return head + " … " + tail
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Count(n) + " " + what + "s"
}
