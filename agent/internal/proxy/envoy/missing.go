package envoy

import (
	"fmt"
	"slices"
)

// Missing says, one sentence each, what the newcomer that has got lacks
// (rule 2): listeners of its own bootstrap, dynamic listeners and clusters that
// the serving epoch had, the control plane. want is what the serving epoch
// had, nil where nobody served. No sentence means that nothing is missing.
//
// LIVE is no proof of any of it (fact 20).
func Missing(boot Bootstrap, want *Resources, got Resources) []string {
	missing := missingStatic(boot.Listeners, got.Active)
	if want != nil {
		missing = append(missing, missingDynamic("listener", want.DynamicListeners, got.DynamicListeners)...)
		missing = append(missing, missingDynamic("cluster", want.DynamicClusters, got.DynamicClusters)...)
	}
	if boot.ControlPlane && !got.Connected {
		missing = append(missing, "the control plane is not connected (control_plane.connected_state is not 1)")
	}
	return missing
}

// missingStatic finds each listener of a bootstrap among the active ones. Each
// active one stands for one listener: two unnamed ones may share an address
// (TCP and UDP).
func missingStatic(listeners, active []Listener) []string {
	free := slices.Clone(active)
	var missing []string
	for _, l := range claimOrder(listeners) {
		i := slices.IndexFunc(free, l.isServedBy)
		if i < 0 {
			missing = append(missing, fmt.Sprintf("listener %s of the bootstrap is not active", l.label()))
			continue
		}
		free = slices.Delete(free, i, i+1)
	}
	return missing
}

// claimOrder has those listeners first that can be only one thing: a name, a
// port, then port 0, which would take another one's place.
func claimOrder(listeners []Listener) []Listener {
	choice := func(l Listener) int {
		switch {
		case l.Name != "":
			return 0
		case l.Internal || l.Address.IsUnix() || l.Address.Port != 0:
			return 1
		}
		return 2
	}
	return slices.SortedStableFunc(slices.Values(listeners), func(a, b Listener) int { return choice(a) - choice(b) })
}

// isServedBy tells whether the active listener is l. Without a name Envoy
// makes one up, so the address must do. Its protocol can't: /listeners doesn't
// tell it.
func (l Listener) isServedBy(active Listener) bool {
	if l.Name != "" {
		return l.Name == active.Name
	}
	if l.Internal || active.Internal {
		return l.Internal && active.Internal
	}
	address := l.Address
	address.UDP = active.Address.UDP
	return address.covers(active.Address)
}

func (l Listener) label() string {
	switch {
	case l.Internal && l.Name == "":
		return "without a name (internal)"
	case l.Internal:
		return fmt.Sprintf("%q (internal)", l.Name)
	case l.Name == "":
		return "without a name at " + l.Address.String()
	}
	return fmt.Sprintf("%q at %s", l.Name, l.Address)
}

// missingDynamic compares by name. What the serving epoch itself didn't use,
// only heard of, isn't asked for.
func missingDynamic(kind string, want, got []Resource) []string {
	have := make(map[string]Resource, len(got))
	for _, r := range got {
		have[r.Name] = r
	}
	var missing []string
	for _, w := range want {
		if !w.Active && !w.Warm {
			continue
		}
		g, there := have[w.Name]
		if there && g.Warm {
			continue
		}
		state := "absent"
		if there {
			state = "not warm yet"
		}
		if g.Error != "" {
			state = "refused by Envoy: " + cut(g.Error, tellingLine)
		}
		missing = append(missing, fmt.Sprintf("dynamic %s %q, which the serving epoch has, is %s", kind, w.Name, state))
	}
	return missing
}
