"""Modules that may not be linked into the product, each with its reason."""

_KUBERNETES = "the supervisor runs where no API server is, and a client with its caches is 30 MB beside every Envoy; slot-operator alone talks to Kubernetes"
_TESTS = "it is for tests and tools, and its init() would run in every supervisor"

NEVER_IN_AGENT = {
    # Makes images.
    "github.com/google/go-containerregistry": _TESTS,
    # Drives containers.
    "github.com/moby/moby/client": _TESTS,
    "github.com/testcontainers/testcontainers-go": _TESTS,
    # Speaks HTTP/3, which here only Envoy and its tests do.
    "github.com/quic-go/quic-go": _TESTS,
    "go.uber.org/goleak": _TESTS,
    "k8s.io": _KUBERNETES,
    "sigs.k8s.io/controller-runtime": _KUBERNETES,
}

# The package is an API for programs that need nothing of ours but it.
NEVER_IN_HOTRESTART = NEVER_IN_AGENT | {
    "github.com/spf13/cobra": "the command line is agent/internal/cmd's; a program that embeds the package has its own",
}

NOT_YET = [
    "sigs.k8s.io/controller-runtime",
]
