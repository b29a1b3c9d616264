package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// testCase is a test function, or a subtest, in a target's test.xml.
type testCase struct {
	Name    string   `xml:"name,attr"`
	Failure *message `xml:"failure"`
	Error   *message `xml:"error"`
	Skipped *message `xml:"skipped"`
}

type message struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// readCases reads what rules_go, or Bazel for tests of another kind, wrote.
func readCases(name string) ([]testCase, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var report struct {
		Suites []struct {
			Cases []testCase `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(data, &report); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var cases []testCase
	for _, suite := range report.Suites {
		cases = append(cases, suite.Cases...)
	}
	return cases, nil
}

func (c testCase) bad() bool { return c.Failure != nil || c.Error != nil }

var position = regexp.MustCompile(`^\S+\.go:\d+: `)

// reason is what was given to t.Skip: the last line logged.
func (c testCase) reason() string {
	reason := "no reason given"
	for line := range strings.Lines(c.Skipped.Text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			reason = position.ReplaceAllString(line, "")
		}
	}
	return reason
}
