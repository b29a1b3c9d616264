package hotrestart

// SupervisorMetrics holds the hot-restart lifecycle instruments. All methods
// are nil-receiver-safe, so that the supervisor runs unchanged without
// telemetry. The instruments themselves come with telemetry; until then there
// is no way to make one.
type SupervisorMetrics struct{ measured func(Measure) }

func (m *SupervisorMetrics) record(x Measure) {
	if m != nil && m.measured != nil {
		m.measured(x)
	}
}
