package envoy

import (
	"fmt"
	"strconv"
	"strings"
)

// ExtraArgs are the user's own arguments for Envoy, checked.
type ExtraArgs struct {
	Args        []string // without --concurrency
	Concurrency int      // 0: not given
}

// CheckExtra checks arguments before the first start: a mistake that Envoy
// only tells at a restart would come at the worst moment. Flags that it
// doesn't know are left to Envoy, whose next version may.
func CheckExtra(args []string) (ExtraArgs, error) {
	var extra ExtraArgs
	seen := map[string]bool{}
	for len(args) > 0 {
		args = apart(args) // or "--base-id 3" in one would pass for an unknown flag
		flag := canonical(args[0])
		if err := checkFlag(args, flag, seen[flag]); err != nil {
			return ExtraArgs{}, err
		}
		seen[flag] = true
		n := widthOf(args)
		if flag != "--concurrency" {
			extra.Args = append(extra.Args, args[:n]...)
		} else if err := extra.setConcurrency(args[1]); err != nil {
			return ExtraArgs{}, err
		}
		args = args[n:]
	}
	return extra, nil
}

func (e *ExtraArgs) setConcurrency(value string) error {
	n, err := strconv.ParseUint(value, 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("envoy argument --concurrency %q: want a number of workers from 1 to 65535", value)
	}
	e.Concurrency = int(n)
	return nil
}

// checkFlag judges the flag at the head of args.
func checkFlag(args []string, flag string, seen bool) error {
	name, value, joined := strings.Cut(flag, "=")
	if !strings.HasPrefix(flag, "-") {
		return fmt.Errorf("envoy argument %q: a value without its flag", flag)
	}
	if instead, ours := ourFlags[canonical(name)]; ours {
		return fmt.Errorf("envoy argument %q is not yours to give: %s", name, instead)
	}
	if joined { // fact 12
		return fmt.Errorf("envoy argument %q: Envoy does not accept %s=…; give it as two arguments, %s %s", flag, name, name, value)
	}
	if seen && flag != "--stats-tag" { // fact 12
		return fmt.Errorf("envoy argument %q is given twice, which Envoy does not accept", flag)
	}
	if takes, known := envoyFlags[flag]; known && takes && (len(args) < 2 || isFlag(args[1])) {
		return fmt.Errorf("envoy argument %q: its value is missing", flag)
	}
	return nil
}

// canonical is the one name of a flag that has two.
func canonical(flag string) string {
	if long, ok := shortFlags[flag]; ok {
		return long
	}
	return flag
}

// widthOf is how many of args belong to the flag at their head. A flag that
// we don't know has a value if something follows that isn't a flag.
func widthOf(args []string) int {
	takes, known := envoyFlags[canonical(args[0])]
	if !known && strings.HasPrefix(args[0], "-") {
		takes = len(args) > 1 && !strings.HasPrefix(args[1], "-")
	}
	if takes {
		return 2
	}
	return 1
}

func isFlag(arg string) bool {
	_, known := envoyFlags[canonical(arg)]
	return known
}
