package envoy

import "strings"

// KnownHotRestartVersion is the hot-restart protocol that the relay, the
// segment's layout and everything else in this package were measured with
// (fact 13: 1.36.4 up to 1.40.0 print it).
const KnownHotRestartVersion = "11.104"

// release is "1.40.0" of "9e55…/1.40.0/Clean/RELEASE/BoringSSL", the way Envoy
// writes its version; "" when it isn't written that way.
func release(version string) string {
	parts := strings.Split(version, "/")
	if len(parts) < 3 {
		return ""
	}
	return parts[1]
}
