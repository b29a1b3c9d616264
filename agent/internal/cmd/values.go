package cmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"aether.internal/agent/internal/proxy/hotrestart"
)

// baseID is a flag's value that can say what a base-id is.
type baseID uint32

func (b *baseID) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n > hotrestart.MaxBaseID {
		return fmt.Errorf("a base-id is a whole number from 0 to %d, since Envoy multiplies it by ten in 32 bits",
			hotrestart.MaxBaseID)
	}
	*b = baseID(n)
	return nil
}

func (b *baseID) String() string { return strconv.FormatUint(uint64(*b), 10) }
func (b *baseID) Type() string   { return "number" }

// oneOf is a flag's value that is one of a few words.
type oneOf struct {
	value *string
	words []string
}

// choice starts with its first word.
func choice(value *string, words ...string) *oneOf {
	*value = words[0]
	return &oneOf{value, words}
}

func (o *oneOf) Set(s string) error {
	if !slices.Contains(o.words, s) {
		return fmt.Errorf("it is one of %s", strings.Join(o.words, ", "))
	}
	*o.value = s
	return nil
}

func (o *oneOf) String() string { return *o.value }
func (o *oneOf) Type() string   { return "word" }
