// Command chart writes what is derived from the Helm chart: the copies of the definitions in it,
// deploy/berth.yaml, and the pages of docs/reference about the chart. It needs bin/kube/helm, which
// `make helm` builds. Run it with `make manifest`.
package main

import (
	"fmt"
	"os"

	"github.com/berth-project/berth/kube/internal/chart"
)

func main() {
	if err := chart.Write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
