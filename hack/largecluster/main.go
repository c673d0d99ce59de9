// Command largecluster writes a large cluster as JSON, in the form in which kubectl prints
// lists, to measure how long it takes to read:
//
//	go run ./hack/largecluster -nodes 100000 -jobs 20000 > large.json
//
// Equal flags give equal bytes.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
)

func main() {
	nodes := flag.Int("nodes", 100_000, "number of nodes, each with 8 devices")
	jobs := flag.Int("jobs", 20_000, "number of jobs, of 1 to 8 devices each")
	flag.Parse()
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	write(out, *nodes, *jobs)
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

const (
	node = `        {
            "apiVersion": "berth.dev/v1alpha1",
            "kind": "Node",
            "metadata": {
                "labels": {
                    "rack": "r%d",
                    "zone": "z%d"
                },
                "name": "n%06d"
            },
            "spec": {
                "devices": {
                    "count": 8,
                    "memory": "80Gi",
                    "product": "NVIDIA-H100-80GB-HBM3"
                },
                "resources": {
                    "cpu": "96",
                    "memory": "1Ti"
                }
            }
        }`
	job = `        {
            "apiVersion": "berth.dev/v1alpha1",
            "kind": "Job",
            "metadata": {
                "name": "j%06d"
            },
            "spec": {
                "priority": %d,
                "tasks": [
                    {
                        "devices": {
                            "count": %d
                        },
                        "name": "worker"
                    }
                ]
            }
        }`
)

// write writes the cluster. An error of the writer is returned by its Flush.
func write(w io.Writer, nodes, jobs int) {
	fmt.Fprint(w, "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n")
	for i := range nodes {
		fmt.Fprintf(w, node, i/32, i/4096, i)
		separate(w, i+1 < nodes+jobs)
	}
	for i := range jobs {
		fmt.Fprintf(w, job, i, i%10, 1<<(i%4))
		separate(w, i+1 < jobs)
	}
	fmt.Fprint(w, "    ],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n")
}

// separate ends an item, with a comma if another follows.
func separate(w io.Writer, more bool) {
	if more {
		fmt.Fprint(w, ",")
	}
	fmt.Fprintln(w)
}
