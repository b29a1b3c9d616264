package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// mostPark keeps Envoy's own timers, which are set from it, within their range.
const mostPark = 24 * time.Hour

func (c Config) check() error {
	if len(c.Listeners) == 0 {
		return errors.New("no listeners")
	}
	targets := map[string]string{} // name → kind
	for _, p := range c.Pools {
		if err := p.check(); err != nil {
			return fmt.Errorf("pool %q: %w", p.Name, err)
		}
		if _, twice := targets[p.Name]; twice {
			return fmt.Errorf("pool %q: the name is taken", p.Name)
		}
		targets[p.Name] = "pool"
	}
	for _, k := range c.Clusters {
		if err := k.check(); err != nil {
			return fmt.Errorf("cluster %q: %w", k.Name, err)
		}
		if _, twice := targets[k.Name]; twice {
			return fmt.Errorf("cluster %q: the name is taken", k.Name)
		}
		targets[k.Name] = "cluster"
	}
	names, addresses := map[string]bool{}, map[string]string{}
	for _, l := range c.Listeners {
		if err := l.check(targets); err != nil {
			return fmt.Errorf("listener %q: %w", l.Name, err)
		}
		if other, taken := addresses[l.Address]; taken || names[l.Name] {
			return fmt.Errorf("listener %q: name or address is taken (%s)", l.Name, other)
		}
		names[l.Name], addresses[l.Address] = true, l.Name
	}
	return nil
}

func (p Pool) check() error {
	switch {
	case p.Name == "":
		return errors.New("no name")
	case p.Queue < 0:
		return fmt.Errorf("queue %d is negative", p.Queue)
	case p.Park < 0 || p.Park > mostPark:
		return fmt.Errorf("park %v: want 0s to %v", p.Park, mostPark)
	case p.Queue > 0 && p.Park == 0:
		return fmt.Errorf("queue %d, but no time to park: set park", p.Queue)
	}
	seen := map[string]bool{}
	for _, w := range p.Workers {
		if _, err := netip.ParseAddrPort(w.Address); err != nil {
			return fmt.Errorf("worker %q: want IP:port, which Envoy connects to as it stands", w.Address)
		}
		if w.Slots < 0 || seen[w.Address] {
			return fmt.Errorf("worker %q: twice, or with negative slots", w.Address)
		}
		seen[w.Address] = true
	}
	return checkProtocol(p.Protocol)
}

func (k Cluster) check() error {
	if k.Name == "" || len(k.Endpoints) == 0 {
		return errors.New("no name, or no endpoints")
	}
	for _, e := range k.Endpoints {
		if _, err := netip.ParseAddrPort(e); err != nil {
			return fmt.Errorf("endpoint %q: want IP:port", e)
		}
	}
	return checkProtocol(k.Protocol)
}

func checkProtocol(p string) error {
	if !slices.Contains([]string{"", Auto, HTTP1, HTTP2}, p) {
		return fmt.Errorf("protocol %q: there are %s, %s and %s", p, Auto, HTTP1, HTTP2)
	}
	return nil
}

func (l Listener) check(targets map[string]string) error {
	at, err := netip.ParseAddrPort(l.Address)
	switch {
	case l.Name == "":
		return errors.New("no name")
	case err != nil || at.Port() == 0:
		return fmt.Errorf("address %q: want IP:port", l.Address)
	case l.TLS != nil && (l.TLS.Certificate == "" || l.TLS.Key == ""):
		return errors.New("tls: want certificate and key")
	case (len(l.Routes) > 0) == (l.TCP != ""):
		return errors.New("want either routes or tcp")
	case l.TCP != "" && targets[l.TCP] != "cluster":
		return fmt.Errorf("tcp: there is no cluster %q", l.TCP)
	case l.IdleTimeout < 0:
		return fmt.Errorf("idle_timeout %v is negative", l.IdleTimeout)
	}
	for i, r := range l.Routes {
		if err := r.check(targets); err != nil {
			return fmt.Errorf("route %d: %w", i+1, err)
		}
	}
	return nil
}

func (r Route) check(targets map[string]string) error {
	switch {
	case (r.Pool != "") == (r.Cluster != ""):
		return errors.New("want either pool or cluster")
	case r.Pool != "" && targets[r.Pool] != "pool":
		return fmt.Errorf("there is no pool %q", r.Pool)
	case r.Cluster != "" && targets[r.Cluster] != "cluster":
		return fmt.Errorf("there is no cluster %q", r.Cluster)
	case r.Prefix != "" && r.Prefix[0] != '/':
		return fmt.Errorf("prefix %q: it must begin with /", r.Prefix)
	case r.Timeout < 0:
		return fmt.Errorf("timeout %v is negative", r.Timeout)
	}
	return nil
}
