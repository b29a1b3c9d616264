package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"aether.internal/test/load"
)

func render(t *testing.T, r Run) string {
	t.Helper()
	var out bytes.Buffer
	if err := Render(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPage(t *testing.T) {
	page := render(t, sample())
	for _, want := range []string{
		`<h1 class="good">Nothing was dropped: 1,200 operations, 1 hot restart, 0 failures.</h1>`,
		`<li class="good"><b>0</b><span>failed operations</span></li>`,
		`<text class="label" x="26" y="`, `>epoch 1</text>`, `>v2 · 1.40.0</text>`,
		`<rect class="bar serving" x="`, `<title>epoch 0 serving for 3.70 s, from 500 ms to 4.20 s</title>`,
		`<title>at 4.20 s epoch 0 hands over to epoch 1 in 200 ms</title>`,
		`<g class="cross"><title>validate: no such field</title>`,
		`<path class="hue1" d="M`, `<title>answered by bootstrap v2</title>`,
		`<path class="p99" d="M`, `<text class="none"`,
		`<td class="n">4.0 s</td><td>Change it.</td><td>epoch 1 serves</td><td class="n">200 ms</td>`,
		`<tr><td>tcp</td><td>yes</td><td class="n">200</td>`,
		`<dt>Envoy</dt><dd>1.39.3 → 1.40.0</dd>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("without %s", want)
		}
	}
	if strings.Contains(page, `class="failure"`) || strings.Contains(page, "First failures") {
		t.Error("a failure is drawn, and there was none")
	}
}

func TestPageOfFailures(t *testing.T) {
	page := render(t, dropping())
	for _, want := range []string{
		`<h1 class="bad">Dropped: 3 of 1,200`, `<li class="bad"><b>3</b>`, `<rect class="failure" x="`, `<title>3 failed</title>`, `<text class="some" `,
		`<tr class="bad"><td>new</td>`, "<li>at 4.50 s, new: reset: connection reset by peer</li>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("without %s", want)
		}
	}
	if strings.Contains(page, `<text class="none"`) {
		t.Error("it says that none failed")
	}
}

// hostile is what a bootstrap, an error or a peer could say.
const hostile = `"><script>alert(1)</script>' onload=x {{.}} \u003c`

func TestNothingThatIsSaidBecomesMarkup(t *testing.T) {
	r := dropping()
	r.Broken = hostile
	r.Lanes[0].Tag, r.Lanes[0].Version = hostile, hostile
	r.Lanes[0].Phases[0].Name = hostile
	r.Steps[0].Title, r.Steps[0].Say, r.Steps[0].Outcome = hostile, hostile, hostile
	r.Refusals[0].Error, r.Refusals[0].Step = hostile, hostile
	r.Load.Errors[0].Message, r.Load.Kinds[0].Kind = hostile, hostile
	r.Load.Timeline[0].Epochs = map[string]int{hostile: 5}
	r.Load.Kinds[0].Epochs[hostile] = 5
	r.Facts = []Fact{{hostile, hostile}}
	page := render(t, r)
	if strings.Contains(page, "<script") || strings.Contains(page, `"><`+"script") {
		t.Error("a script got in")
	}
	if n := strings.Count(page, "&lt;script&gt;"); n < 10 {
		t.Errorf("shown as text %d times only", n)
	}
	wellFormed(t, page)
}

// Strict XML: a drawing can be cut out of the page and used elsewhere.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	drawings := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1)
	if len(drawings) != 2 {
		t.Fatalf("%d drawings", len(drawings))
	}
	for _, drawing := range drawings {
		d := xml.NewDecoder(strings.NewReader(drawing))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, drawing)
			}
		}
	}
}

func TestDrawingsAreWellFormed(t *testing.T) { wellFormed(t, render(t, sample())) }

func TestDrawingsAreExplained(t *testing.T) {
	page := render(t, sample())
	for _, tag := range regexp.MustCompile(`<svg[^>]*>`).FindAllString(page, -1) {
		ids := regexp.MustCompile(`role="img" aria-labelledby="([\w-]+) ([\w-]+)"`).FindStringSubmatch(tag)
		if ids == nil {
			t.Fatalf("%s has no role or no name", tag)
		}
		if !strings.Contains(page, `<title id="`+ids[1]+`">`) || !strings.Contains(page, `<desc id="`+ids[2]+`">`) {
			t.Errorf("%s: title or desc is missing", tag)
		}
	}
	if !strings.Contains(page, `<html lang="en">`) || !strings.Contains(style, "prefers-color-scheme: dark") {
		t.Error("no language, or no dark colours")
	}
}

func TestPageNeedsNothingElse(t *testing.T) {
	page := render(t, dropping())
	if found := regexp.MustCompile(`(?i)https?://|<script|<link|<img|<iframe|@import|@font-face|\bsrc=|url\([^#]`).FindString(page); found != "" {
		t.Errorf("it has %q", found)
	}
	if strings.Contains(page, "ZgotmplZ") {
		t.Error("the template refused a value")
	}
	if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Error("a number isn't one")
	}
}

func TestPagesOfLittle(t *testing.T) {
	early := Run{Began: noon, Broken: "step 1, start: disk full", Steps: []Step{{Title: "start", Failed: true}}}
	idle := sample()
	idle.Load = load.Report{}
	silent := sample()
	silent.Load.Timeline = nil
	for name, r := range map[string]Run{"nothing": {}, "a story that broke off at once": early, "no load": idle, "no answers yet": silent} {
		page := render(t, r)
		wellFormed(t, page)
		if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") || strings.Contains(page, "ZgotmplZ") {
			t.Errorf("%s: a number isn't one", name)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "demo.html")
	for range 2 { // it replaces an older one
		if err := Write(path, sample()); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left beside it: %v", entries)
	}
	plain := filepath.Join(dir, "file")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{filepath.Join(plain, "demo.html"), filepath.Join(dir, "a")} {
		if err := Write(bad, sample()); err == nil || !strings.HasPrefix(err.Error(), "report: ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left after a failure: %v", entries)
	}
}
