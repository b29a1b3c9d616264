package envoy

import "time"

// readDynamic reads dynamic_resources.
func (b *Bootstrap) readDynamic(dynamic object) {
	ads := dynamic["ads_config"]
	b.ControlPlane = overGRPC(ads)
	b.WaitsForFirstFetch = true
	for _, name := range []string{"lds_config", "cds_config"} {
		if source := dynamic[name]; source.exists() {
			b.Dynamic = true
			b.ControlPlane = b.ControlPlane || overGRPC(source.at("api_config_source"))
			b.WaitsForFirstFetch = b.WaitsForFirstFetch && waits(source.object())
		}
	}
	// xdstp locators take their source from elsewhere in the bootstrap; that
	// it waits would have to be proven there, so it isn't claimed.
	for _, name := range []string{"lds_resources_locator", "cds_resources_locator"} {
		if dynamic.has(name) {
			b.Dynamic, b.WaitsForFirstFetch = true, false
		}
	}
	b.WaitsForFirstFetch = b.WaitsForFirstFetch && b.Dynamic
}

// grpcTypes are the values of ApiConfigSource.ApiType that hold a stream open.
var grpcTypes = setOf("GRPC", "DELTA_GRPC", "AGGREGATED_GRPC", "AGGREGATED_DELTA_GRPC", "2", "3", "5", "6")

func overGRPC(source tree) bool { return grpcTypes[source.at("api_type").text()] }

// waits tells whether Envoy waits for a source's first answer as long as it
// takes. Files are read at start: they can be wrong, but not silent.
func waits(source object) bool {
	if source.has("path") || source.has("path_config_source") {
		return true
	}
	timeout, err := time.ParseDuration(source["initial_fetch_timeout"].text())
	return err == nil && timeout == 0
}
