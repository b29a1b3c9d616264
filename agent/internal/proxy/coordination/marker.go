package coordination

import "aether.internal/agent/internal/proxy/coordination/marker"

// Marker is the ready marker; see package marker, which stands alone because
// the readiness probe links nothing else of ours.
type Marker = marker.Marker

// NewMarker is the marker at path, not yet published.
func NewMarker(path string) *Marker { return marker.New(path) }

// MarkerFresh is nil while path is a published marker.
func MarkerFresh(path string) error { return marker.Fresh(path) }
