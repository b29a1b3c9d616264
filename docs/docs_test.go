// Package docs checks the documentation against the code: what it cites has to
// exist, and what an operator may meet has to be explained.
package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	rulesAndFacts   = "docs/rules-and-facts.md"
	troubleshooting = "docs/troubleshooting.md"
)

// Comments cite rules and facts by number, and public reports as B and two
// digits. A number without an entry explains nothing.
func TestCitedNumbersAreListed(t *testing.T) {
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (Rule|Fact) (\d+): \S|^\| (B\d\d) \|`).FindAllStringSubmatch(read(t, rulesAndFacts), -1) {
		listed[strings.TrimSpace(strings.ToLower(m[1])+" "+m[2]+m[3])] = true
	}
	if len(listed) < 15+28 {
		t.Fatalf("%s lists only %d numbers: its headings are not found", rulesAndFacts, len(listed))
	}
	cited := 0
	for _, file := range goFiles(t) {
		for _, comment := range file.Comments {
			for _, number := range citations(comment.Text()) {
				if cited++; !listed[number] {
					t.Errorf("%s cites %s, which %s doesn't list", file.name, number, rulesAndFacts)
				}
			}
		}
	}
	if cited < 50 {
		t.Errorf("only %d citations found in all comments", cited)
	}
}

var (
	numbered = regexp.MustCompile(`(?i)\b(rule|fact)s?\s+(\d+(?:(?:,\s+|\s+and\s+|,\s+and\s+)\d+)*)\b`)
	digits   = regexp.MustCompile(`\d+`)
	reported = regexp.MustCompile(`\bB\d\d\b`)
)

// citations are "rule 3", "fact 28", "B33".
func citations(text string) []string {
	found := reported.FindAllString(text, -1)
	for _, m := range numbered.FindAllStringSubmatch(text, -1) {
		for _, n := range digits.FindAllString(m[2], -1) {
			found = append(found, strings.ToLower(m[1])+" "+n)
		}
	}
	return found
}

func TestCitations(t *testing.T) {
	for text, want := range map[string][]string{
		"Rule 15 and fact\n3: a thread": {"rule 15", "fact 3"},
		"(rules 5, 10 and 13)":          {"rule 5", "rule 10", "rule 13"},
		"(fact 11, B37)":                {"B37", "fact 11"},
		"fact 28: 3 cut, rule":          {"fact 28"},
	} {
		if got := citations(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Whatever is logged as a warning or an error has an entry.
func TestEveryWarningIsExplained(t *testing.T) {
	said := sayings(t)
	if len(said.messages) < 20 || len(said.steps) < 10 {
		t.Fatalf("only %d messages and %d steps found", len(said.messages), len(said.steps))
	}
	entries := quotedEntries(read(t, troubleshooting))
	for _, all := range []map[string]string{said.messages, said.steps} {
		for _, text := range slices.Sorted(maps.Keys(all)) {
			if !entries[text] {
				t.Errorf("%s says %q, and %s has no heading or row `%s`", all[text], text, troubleshooting, text)
			}
		}
	}
}

// A heading about a line that nobody logs any more misleads.
func TestEveryExplainedLineIsLogged(t *testing.T) {
	said := sayings(t)
	for _, m := range regexp.MustCompile("(?m)^### `(.*)`$").FindAllStringSubmatch(read(t, troubleshooting), -1) {
		if said.messages[m[1]] == "" {
			t.Errorf("%s explains `%s`, which nothing logs as a warning or an error", troubleshooting, m[1])
		}
	}
}

// quotedEntries are the texts in backticks of headings and of rows' first cells.
func quotedEntries(doc string) map[string]bool {
	entries := map[string]bool{}
	for line := range strings.Lines(doc) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "| ") {
			continue
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
			entries[m[1]] = true
		}
	}
	return entries
}

// The README's promises, each one sentence that names its rules.
func TestTheReadmeHasTheInvariants(t *testing.T) {
	_, section, found := strings.Cut(read(t, "README.md"), "\n## Invariants\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("README.md has no section Invariants")
	}
	items := 0
	for line := range strings.Lines(section) {
		item, isItem := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !isItem {
			continue
		}
		items++
		if !strings.Contains(item, "](docs/rules-and-facts.md#rule-") || !strings.HasSuffix(item, ").") {
			t.Errorf("an invariant must be one sentence that links its rule: %q", item)
		}
	}
	if items < 8 {
		t.Errorf("only %d invariants", items)
	}
}

// Links within the repository lead somewhere, down to the heading.
func TestLinksResolve(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	links := 0
	for _, doc := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(withoutCode(read(t, doc)), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			path, anchor, _ := strings.Cut(m[1], "#")
			target := doc
			if path != "" {
				target = filepath.Join(filepath.Dir(doc), path)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links %s: %v", doc, m[1], err)
			} else if anchor != "" && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s links %s: %s has no such heading", doc, m[1], target)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links found", links)
	}
}
