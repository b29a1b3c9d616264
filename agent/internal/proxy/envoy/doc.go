// Package envoy is all our knowledge of Envoy: its bootstrap, its arguments,
// its admin interface, its hot-restart sockets, its shared segment and its
// executables. Everything here was measured on 1.36.4, 1.39.3 and 1.40.0; the
// facts that comments cite are listed in docs/rules-and-facts.md.
//
// Nothing here decides. Functions tell what is, or do one thing.
package envoy
