// Pause holds a pod's namespaces open and does nothing else. Containers don't
// share its PID namespace here, so there is nobody to reap.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}
