package envoy

import (
	"bytes"
	"encoding/hex"
	"testing"
	"time"
)

// What Envoy 1.40.0 was seen to send (fact 28).
var datagrams = map[Request]string{
	PassListenSocket: "000000000000001a 0a18 0a16 0a14 7463703a2f2f3132372e302e302e313a38303830",
	ShutdownAdmin:    "0000000000000004 0a02 1200",
	StatsRequest:     "0000000000000004 0a02 1a00",
	DrainListeners:   "0000000000000004 0a02 2200",
	Terminate:        "0000000000000004 0a02 2a00",
}

func datagram(t *testing.T, text string) []byte {
	t.Helper()
	d, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(text), []byte(" "), nil)))
	wantNil(t, err)
	return d
}

func TestEachRequestIsKnown(t *testing.T) {
	for want, text := range datagrams {
		if got := ParseRequest(datagram(t, text)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if got := ParseRequest(drainRequest); got != DrainListeners {
		t.Errorf("our own: %v", got)
	}
	// An address of over 127 bytes: its length takes two.
	long := frame(append([]byte{0x0a, 0x85, 0x02, 0x0a, 0x82, 0x02}, bytes.Repeat([]byte{'x'}, 258)...)...)
	if got := ParseRequest(long); got != PassListenSocket {
		t.Errorf("a long one: %v", got)
	}
}

func TestAnythingElseIsUnknown(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                "",
		"a header alone":         "0000000000000000",
		"a request without kind": "0000000000000002 0a00",
		"cut in the length":      "0000000000000003 0a8080",
		"an endless length":      "000000000000000d 0affffffffffffffffffffffff",
		"an answer":              "0000000000000004 1202 1a00",
		"a kind from the future": "0000000000000004 0a02 3200",
		"field 0":                "0000000000000004 0a02 0200",
		"not length-delimited":   "0000000000000004 0a02 0801",
		"no message":             "ffffffffffffffffffffffff",
	} {
		if got := ParseRequest(datagram(t, text)); got != UnknownRequest {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A parent aborts for what isn't whole, so that mustn't get past the relay.
func TestARequestIsSoundAsAWholeOnly(t *testing.T) {
	for _, text := range datagrams {
		d := datagram(t, text)
		if !sound(d) {
			t.Errorf("%s is not sound", text)
		}
		for n := range d {
			if sound(d[:n]) {
				t.Errorf("%x is sound, the beginning of %x", d[:n], d)
			}
		}
		for name, bad := range map[string][]byte{
			"more behind it":      append(bytes.Clone(d), 0),
			"two in one":          append(bytes.Clone(d), d...),
			"a field behind it":   frame(append(bytes.Clone(d[frameHeader:]), 0x18, 1)...),
			"an inner length off": append(bytes.Clone(d[:frameHeader+3]), append([]byte{d[frameHeader+3] + 1}, d[frameHeader+4:]...)...),
		} {
			if sound(bad) {
				t.Errorf("%s: %x is sound", name, bad)
			}
		}
	}
}

// Nothing that arrives may end the supervisor, in whose process this runs.
func FuzzParseRequest(f *testing.F) {
	for _, d := range [][]byte{drainRequest, frame(0x0a, 0xff), frame(), {0x0a}, bytes.Repeat([]byte{0xff}, 5000)} {
		f.Add(d)
	}
	f.Fuzz(func(t *testing.T, d []byte) {
		r := ParseRequest(d)
		if r.String() == "" || r < UnknownRequest || r > Terminate {
			t.Errorf("%x: %v", d, r)
		}
	})
}

func TestAnswersForAParentThatIsGone(t *testing.T) {
	started := time.Unix(1_700_000_000, 0)
	for r, want := range map[Request]string{
		StatsRequest: "0000000000000004 1202 1a00",
		// fd = -1
		PassListenSocket: "000000000000000f 120d 0a0b 08 ffffffffffffffffff01",
		// Never empty: that means "no reuse_port".
		ShutdownAdmin:  "000000000000000c 120a 1208 08 80e2cfaa06 10 01",
		DrainListeners: "",
		Terminate:      "",
		UnknownRequest: "",
	} {
		if got := answerFor(r, started); !bytes.Equal(got, datagram(t, want)) {
			t.Errorf("%v: %x, want %s", r, got, want)
		}
	}
	// A clock before 1970 is no reason for an endless varint.
	if got := answerFor(ShutdownAdmin, time.Time{}); !bytes.Equal(got, frame(0x12, 6, 0x12, 4, 0x08, 0, 0x10, 1)) {
		t.Errorf("no start time: %x", got)
	}
}
