// The first process of a pod: it holds the pod's namespaces until it is told to end.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGINT, syscall.SIGTERM)
	<-ends
}
