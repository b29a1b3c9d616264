package envoy

import (
	"slices"
	"strings"
	"testing"
)

func at(port int) Address { return Address{Host: "127.0.0.1", Port: port} }

// Rule 2: nothing is committed that isn't verified.
func TestRule2MissingListenersOfTheBootstrap(t *testing.T) {
	uuid := "2b30db07-b75e-492a-859b-65b96c678d3b"
	for name, c := range map[string]struct {
		boot, active []Listener
		want         []string // a part of each sentence
	}{
		"nothing asked":           {},
		"there, by name":          {[]Listener{{Name: "web", Address: at(0)}}, []Listener{{Name: "web", Address: at(4711)}}, nil},
		"absent":                  {[]Listener{{Name: "web", Address: at(80)}}, nil, []string{`listener "web" at 127.0.0.1:80 of the bootstrap is not active`}},
		"another name there":      {[]Listener{{Name: "web", Address: at(80)}}, []Listener{{Name: "other", Address: at(80)}}, []string{`"web"`}},
		"no name, by address":     {[]Listener{{Address: at(80)}}, []Listener{{Name: uuid, Address: at(80)}}, nil},
		"no name, other port":     {[]Listener{{Address: at(80)}}, []Listener{{Name: uuid, Address: at(81)}}, []string{"without a name at 127.0.0.1:80"}},
		"no name, port 0":         {[]Listener{{Address: at(0)}}, []Listener{{Name: uuid, Address: at(4711)}}, nil},
		"no name, pipe":           {[]Listener{{Address: Address{Path: "/x"}}}, []Listener{{Name: uuid, Address: Address{Path: "/x"}}}, nil},
		"UDP beside TCP, no name": {[]Listener{{Address: at(53)}, {UDP: true, Address: Address{Host: "127.0.0.1", Port: 53, UDP: true}}}, []Listener{{Address: at(53)}}, []string{"127.0.0.1:53"}},
		"both":                    {[]Listener{{Address: at(53)}, {UDP: true, Address: Address{Host: "127.0.0.1", Port: 53, UDP: true}}}, []Listener{{Address: at(53)}, {Address: at(53)}}, nil},
		"port 0 takes nobody's place": {[]Listener{{Address: at(0)}, {Address: at(80)}},
			[]Listener{{Name: uuid, Address: at(80)}, {Name: uuid, Address: at(4711)}}, nil},
		"a named one isn't an unnamed one": {[]Listener{{Address: at(0)}, {Name: "web", Address: at(80)}},
			[]Listener{{Name: "web", Address: at(80)}}, []string{"without a name at 127.0.0.1:0"}},
		"internal":          {[]Listener{{Name: "in", Internal: true}, {Internal: true}}, []Listener{{Name: "in", Internal: true}, {Name: uuid, Internal: true}}, nil},
		"internal absent":   {[]Listener{{Name: "in", Internal: true}}, []Listener{{Name: "web", Address: at(80)}}, []string{`"in" (internal)`}},
		"internal unnamed":  {[]Listener{{Internal: true}}, []Listener{{Name: uuid, Address: at(80)}}, []string{"without a name (internal)"}},
		"unbound, as bound": {[]Listener{{Name: "u", Unbound: true, Address: at(80)}}, []Listener{{Name: "u", Address: at(80)}}, nil},
		"two absent":        {[]Listener{{Name: "a"}, {Name: "b"}, {Name: "c"}}, []Listener{{Name: "b"}}, []string{`"a"`, `"c"`}},
	} {
		t.Run(name, func(t *testing.T) {
			boot := Bootstrap{Listeners: c.boot}
			wantSentences(t, Missing(boot, nil, Resources{Active: c.active}), c.want)
			wantSentences(t, Missing(boot, &Resources{}, Resources{Active: slices.Clone(c.active)}), c.want)
		})
	}
}

// Fact 20: LIVE does not mean configured.
func TestRule2MissingDynamicResources(t *testing.T) {
	warm := Resource{Name: "a", Active: true, Warm: true}
	for name, c := range map[string]struct {
		want, got []Resource
		say       []string
	}{
		"there":                           {[]Resource{warm}, []Resource{warm}, nil},
		"more than before":                {nil, []Resource{warm}, nil},
		"absent":                          {[]Resource{warm}, nil, []string{`"a", which the serving epoch has, is absent`}},
		"still warming":                   {[]Resource{warm}, []Resource{{Name: "a"}}, []string{"is not warm yet"}},
		"active, newer warming":           {[]Resource{warm}, []Resource{{Name: "a", Active: true}}, []string{"is not warm yet"}},
		"refused":                         {[]Resource{warm}, []Resource{{Name: "a", Error: "unknown cluster"}}, []string{"is refused by Envoy: unknown cluster"}},
		"serves on, last update refused":  {[]Resource{{Name: "a", Active: true, Warm: true, Error: "x"}}, nil, []string{"is absent"}},
		"the serving epoch never used it": {[]Resource{{Name: "a", Error: "x"}, {Name: "b"}}, nil, nil},
		"warming there as well":           {[]Resource{{Name: "a", Active: true}}, nil, []string{"is absent"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Missing(Bootstrap{}, &Resources{DynamicListeners: c.want}, Resources{DynamicListeners: c.got})
			wantSentences(t, got, prefixed("dynamic listener ", c.say))
			got = Missing(Bootstrap{}, &Resources{DynamicClusters: c.want}, Resources{DynamicClusters: c.got})
			wantSentences(t, got, prefixed("dynamic cluster ", c.say))
			if got := Missing(Bootstrap{}, nil, Resources{DynamicListeners: c.got}); len(got) > 0 {
				t.Errorf("nobody served, nothing can be missing: %q", got)
			}
		})
	}
}

func TestRule2MissingControlPlane(t *testing.T) {
	for _, c := range []struct{ wanted, connected, missing bool }{
		{false, false, false}, {true, true, false}, {false, true, false}, {true, false, true},
	} {
		got := Missing(Bootstrap{ControlPlane: c.wanted}, nil, Resources{Connected: c.connected})
		if (len(got) > 0) != c.missing {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func wantSentences(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("got %q, want %q", got, want)
		return
	}
	for i, part := range want {
		for word := range strings.SplitSeq(part, "|") {
			if !strings.Contains(got[i], word) {
				t.Errorf("%q does not say %q", got[i], word)
			}
		}
	}
}

func prefixed(prefix string, parts []string) []string {
	var all []string
	for _, part := range parts {
		all = append(all, prefix+"|"+part)
	}
	return all
}
