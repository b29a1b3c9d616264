package report

import (
	"cmp"
	"fmt"
	"slices"
)

// hues are the classes of colour of bootstraps, by tag. Neighbours in time
// differ; after the last colour comes the first.
type hues map[string]string

const colours = 8

// newHues gives colours to the tags that served, in the order of time.
func (r Run) newHues() hues {
	h := hues{}
	for _, tag := range r.tags() {
		h[tag] = fmt.Sprintf("hue%d", len(h)%colours)
	}
	return h
}

// tags are those of bootstraps that served or answered, in the order of time.
func (r Run) tags() []string {
	var tags []string
	add := func(tag string) {
		if !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	for _, l := range r.Lanes {
		if l.Length("serving") > 0 {
			add(l.Tag)
		}
	}
	var strangers []string
	for tag := range r.Load.Epochs() {
		strangers = append(strangers, tag)
	}
	slices.SortFunc(strangers, cmp.Compare)
	for _, tag := range strangers {
		add(tag)
	}
	return tags
}
