package guard

import (
	"bufio"
	"cmp"
	"debug/elf"
	"debug/gosym"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Budget is what budgets.txt grants to a target, in bytes.
func Budget(budgets, target string) (int64, error) {
	lines := bufio.NewScanner(strings.NewReader(budgets))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 || words[0] == "#" || words[1] != target {
			continue
		}
		return strconv.ParseInt(words[0], 10, 64)
	}
	return 0, fmt.Errorf("tools/guard/budgets.txt has no line for %s: add one", target)
}

// Size is a package's machine code, in bytes.
type Size struct {
	Package string
	Bytes   uint64
}

// Largest lists the n packages with most machine code in a Go program, which may
// be stripped: the table that the runtime needs for stack traces stays.
func Largest(program string, n int) ([]Size, error) {
	file, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, lines := file.Section(".text"), file.Section(".gopclntab")
	if text == nil || lines == nil {
		return nil, fmt.Errorf("%s is no Go program: it lacks .text or .gopclntab", program)
	}
	data, err := lines.Data()
	if err != nil {
		return nil, err
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
	if err != nil {
		return nil, err
	}
	sums := map[string]uint64{}
	for _, f := range table.Funcs {
		sums[packageOf(f.Name)] += f.End - f.Entry
	}
	var sizes []Size
	for name, bytes := range sums {
		sizes = append(sizes, Size{name, bytes})
	}
	slices.SortFunc(sizes, func(a, b Size) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Package, b.Package))
	})
	return sizes[:min(n, len(sizes))], nil
}

// packageOf a.b/c.(*T).f is a.b/c.
func packageOf(function string) string {
	function, _, _ = strings.Cut(function, "[") // type arguments have paths, too
	slash := strings.LastIndex(function, "/") + 1
	name, _, _ := strings.Cut(function[slash:], ".")
	return function[:slash] + name
}
