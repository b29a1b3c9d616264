package envoy

import "testing"

func TestAddressReadsBackItsOwnForm(t *testing.T) {
	for text, want := range map[string]Address{
		"127.0.0.1:9901":        {Host: "127.0.0.1", Port: 9901},
		"[::1]:9901":            {Host: "::1", Port: 9901},
		"localhost:0":           {Host: "localhost"},
		"unix:/run/admin.sock":  {Path: "/run/admin.sock"},
		"unix:@abstract":        {Path: "@abstract"},
		"unix:relative/adm:1:2": {Path: "relative/adm:1:2"},
	} {
		got, err := ParseAddress(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if got.String() != text || got.IsUnix() != (want.Path != "") {
			t.Errorf("%q comes back as %q", text, got)
		}
	}
}

func TestAddressRefusesHalfAnAddress(t *testing.T) {
	for text, word := range map[string]string{
		"":                "host:port or unix:PATH",
		"9901":            "host:port or unix:PATH",
		":9901":           "host:port or unix:PATH",
		"::1:9901":        "host:port or unix:PATH",
		"unix:":           "path",
		"127.0.0.1:":      "not a number",
		"127.0.0.1:http":  "not a number",
		"127.0.0.1:65536": "0 to 65535",
		"127.0.0.1:-1":    "not a number",
	} {
		_, err := ParseAddress(text)
		if err == nil {
			t.Errorf("%q was taken", text)
			continue
		}
		wantError(t, err, word)
	}
}

func TestAddressCoversWhatItAskedFor(t *testing.T) {
	for _, c := range []struct {
		asked, bound Address
		want         bool
	}{
		{Address{Host: "127.0.0.1", Port: 80}, Address{Host: "127.0.0.1", Port: 80}, true},
		{Address{Host: "127.0.0.1"}, Address{Host: "127.0.0.1", Port: 41000}, true},
		{Address{Host: "0:0::1", Port: 80}, Address{Host: "::1", Port: 80}, true},
		{Address{Host: "127.0.0.1", Port: 80}, Address{Host: "127.0.0.1", Port: 81}, false},
		{Address{Host: "127.0.0.1"}, Address{Host: "0.0.0.0", Port: 80}, false},
		{Address{Host: "127.0.0.1", Port: 80, UDP: true}, Address{Host: "127.0.0.1", Port: 80}, false},
		{Address{Path: "/a"}, Address{Path: "/a"}, true},
		{Address{Path: "/a"}, Address{Host: "127.0.0.1"}, false},
	} {
		if got := c.asked.covers(c.bound); got != c.want {
			t.Errorf("%v covers %v: %v", c.asked, c.bound, got)
		}
	}
}
