package envoy

import "strings"

// Listener is one listener, of a bootstrap or of a running Envoy.
type Listener struct {
	Name        string // "" when a bootstrap gives none: Envoy then makes up a UUID
	Address     Address
	More        []Address // additional addresses
	UDP         bool      // any of its addresses is UDP
	QUIC        bool
	Transparent bool   // TPROXY: its connections' local ports tell nothing
	NetNS       string // network_namespace_filepath, "" for our own
	Internal    bool   // user-space listener: no socket at all
	Unbound     bool   // bind_to_port: false: no socket of its own
}

// Addresses is every address at which l has a socket: none for an internal or
// an unbound one.
func (l Listener) Addresses() []Address {
	if l.Internal || l.Unbound {
		return nil
	}
	return append([]Address{l.Address}, l.More...)
}

func staticListeners(list tree) []Listener {
	var listeners []Listener
	for _, item := range list.items() {
		o := item.object()
		if o.has("api_listener") {
			continue // for in-process use; Envoy never lists it as active
		}
		listeners = append(listeners, listenerOf(o))
	}
	return listeners
}

// listenerOf reads an envoy.config.listener.v3.Listener.
func listenerOf(o object) Listener {
	l := Listener{
		Name:        strings.Clone(o["name"].text()),
		QUIC:        o["udp_listener_config"].at("quic_options").exists() || hasQUICTransport(o["filter_chains"]),
		Transparent: o["transparent"].truth(false),
		Internal:    o.has("internal_listener"),
		Unbound:     !o["bind_to_port"].truth(true) || !o["deprecated_v1"].at("bind_to_port").truth(true),
	}
	l.readAddress(o["address"])
	for _, more := range o["additional_addresses"].items() {
		l.readAddress(more.at("address"))
	}
	return l
}

// readAddress adds one address of an envoy.config.core.v3.Address.
func (l *Listener) readAddress(t tree) {
	if t.at("envoy_internal_address").exists() {
		l.Internal = true
		return
	}
	a, ok := addressOf(t)
	if !ok {
		return
	}
	if l.Address == (Address{}) {
		l.Address = a
	} else {
		l.More = append(l.More, a)
	}
	l.UDP = l.UDP || a.UDP
	if ns := t.at("socket_address", "network_namespace_filepath").text(); ns != "" {
		l.NetNS = strings.Clone(ns)
	}
}

// addressOf reads an envoy.config.core.v3.Address: a socket or a pipe.
func addressOf(t tree) (Address, bool) {
	if path := t.at("pipe", "path").text(); path != "" {
		return Address{Path: strings.Clone(path)}, true
	}
	socket := t.at("socket_address").object()
	if len(socket) == 0 {
		return Address{}, false
	}
	protocol := socket["protocol"].text()
	return Address{
		Host: strings.Clone(socket["address"].text()),
		Port: socket["port_value"].port(),
		UDP:  protocol == "UDP" || protocol == "1",
	}, true
}

func hasQUICTransport(chains tree) bool {
	for _, chain := range chains.items() {
		transport := chain.at("transport_socket")
		if strings.HasSuffix(transport.at("name").text(), ".quic") ||
			strings.HasSuffix(transport.at("typed_config", "@type").text(), ".QuicDownstreamTransport") {
			return true
		}
	}
	return false
}
