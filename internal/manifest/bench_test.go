package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/strict"
)

// largeInput returns nodes and jobs as kubectl prints them in JSON, and the same as YAML.
func largeInput(b testing.TB, n int) (asJSON, asYAML []byte) {
	b.Helper()
	var j, y strings.Builder
	j.WriteString("{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n")
	for i := range n {
		fmt.Fprintf(&j, `        {
            "apiVersion": "berth.dev/v1alpha1",
            "kind": "Node",
            "metadata": {
                "labels": {
                    "rack": "r%d"
                },
                "name": "n%d"
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
        },
`, i/32, i)
		fmt.Fprintf(&y, `---
apiVersion: berth.dev/v1alpha1
kind: Node
metadata:
  labels:
    rack: r%d
  name: n%d
spec:
  devices:
    count: 8
    memory: 80Gi
    product: NVIDIA-H100-80GB-HBM3
  resources:
    cpu: "96"
    memory: 1Ti
`, i/32, i)
	}
	j.WriteString("        {\"apiVersion\": \"berth.dev/v1alpha1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"last\"}}\n    ],\n    \"kind\": \"List\"\n}\n")
	return []byte(j.String()), []byte(y.String())
}

// BenchmarkParse measures how fast files are decoded into API objects.
func BenchmarkParse(b *testing.B) {
	asJSON, asYAML := largeInput(b, 10_000)
	for name, data := range map[string][]byte{"JSON": asJSON, "YAML": asYAML} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for range b.N {
				if _, err := Parse("f", data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecodeYAML measures how fast YAML in blocks is decoded into API objects, without the
// checks of each object.
func BenchmarkDecodeYAML(b *testing.B) {
	_, data := largeInput(b, 10_000)
	b.SetBytes(int64(len(data)))
	for range b.N {
		ok := strict.Blocks(data, func(o *strict.JSON) {
			if !o.Decode(&v1alpha1.Node{}, strict.Options{}) {
				b.Fatal("an object is not decoded")
			}
		})
		if !ok {
			b.Fatal("this is not YAML in blocks")
		}
	}
}

// BenchmarkDecodeJSON measures how fast JSON is decoded into API objects, without the checks of
// each object.
func BenchmarkDecodeJSON(b *testing.B) {
	data, _ := largeInput(b, 10_000)
	b.SetBytes(int64(len(data)))
	for range b.N {
		root, ok := strict.ParseJSON(data)
		if !ok {
			b.Fatal("this is not JSON")
		}
		root.Items("items", func(o *strict.JSON) {
			if !o.Decode(&v1alpha1.Node{}, strict.Options{}) {
				b.Fatal("an object is not decoded")
			}
		})
	}
}
