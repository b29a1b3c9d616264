// Guard is the program behind deps_guard_test and size_guard_test.
//
//	guard deps GUARD LABELS GO_MOD    // see defs.bzl
//	guard size TARGET PROGRAM BUDGETS
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"aether.internal/tools/guard"
)

func main() {
	wrong, err := run(os.Args[1:])
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	for _, sentence := range wrong {
		fmt.Println("FAIL:", sentence)
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
}

// run returns what is wrong, sentences.
func run(args []string) ([]string, error) {
	switch {
	case len(args) == 4 && args[0] == "deps":
		return deps(args[1], args[2], args[3])
	case len(args) == 4 && args[0] == "size":
		return size(args[1], args[2], args[3])
	}
	return nil, fmt.Errorf("wrong arguments %q: see the head of tools/guard/cmd/guard/main.go", args)
}

func deps(guardFile, labelsFile, goModFile string) ([]string, error) {
	var texts [3]string
	for i, name := range []string{guardFile, labelsFile, goModFile} {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		texts[i] = string(data)
	}
	var d guard.Deps
	if err := json.Unmarshal([]byte(texts[0]), &d); err != nil {
		return nil, fmt.Errorf("%s: %w", guardFile, err)
	}
	labels := strings.Fields(texts[1])
	fmt.Printf("%s: %d labels\n", d.Target, len(labels))
	return d.Check(labels, texts[2]), nil
}

// shown is how many packages are printed.
const shown = 10

func size(target, program, budgetsFile string) ([]string, error) {
	budgets, err := os.ReadFile(budgetsFile)
	if err != nil {
		return nil, err
	}
	budget, err := guard.Budget(string(budgets), target)
	if err != nil {
		return nil, err
	}
	fi, err := os.Stat(program)
	if err != nil {
		return nil, err
	}
	largest, err := guard.Largest(program, shown)
	if err != nil {
		return nil, err
	}
	fmt.Printf("%s: %d bytes, %d are granted. Most machine code:\n", target, fi.Size(), budget)
	for _, s := range largest {
		fmt.Printf("%9d %s\n", s.Bytes, s.Package)
	}
	if over := fi.Size() - budget; over > 0 {
		return []string{fmt.Sprintf("%s is %d bytes over its budget of %d: undo what made it grow (which import is new? The largest packages are above), "+
			"or raise its line in tools/guard/budgets.txt and say in the commit what is bought with it", target, over, budget)}, nil
	}
	return nil, nil
}
