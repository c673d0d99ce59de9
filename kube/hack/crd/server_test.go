package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/crdtest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// server is an API server on which the definition is installed.
type server struct {
	dynamic.ResourceInterface
	config *rest.Config
}

// startServer starts an API server and installs the definition.
func startServer(t *testing.T) server {
	t.Helper()
	cp := controlplane.StartForTest(t, controlplane.Options{})
	config := cp.Config()
	config.QPS = -1 // without a limit
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	crdtest.Install(t, client)
	return server{client.Resource(crdtest.Resource), config}
}

// create creates the queue as kubectl does, which reports unknown fields.
func (s server) create(ctx context.Context, u *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	return s.Create(ctx, u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun})
}

// queueDocuments returns the documents with a Queue in the files below a directory, by file.
func queueDocuments(t *testing.T, dir string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
			text, err := r.Read()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			var kind metav1.TypeMeta
			if yaml.Unmarshal(text, &kind) == nil && kind.APIVersion == v1alpha1.APIVersion && kind.Kind == v1alpha1.KindQueue {
				out[path] = append(out[path], string(text))
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// table returns the rows that kubectl get prints with -o wide. Ages are left out.
func (s server) table(t *testing.T) []string {
	t.Helper()
	client, err := rest.HTTPClientFor(s.config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.config.Host+"/apis/"+v1alpha1.APIVersion+"/"+plural, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var table metav1.Table
	if err := json.NewDecoder(answer.Body).Decode(&table); err != nil {
		t.Fatal(err)
	}
	var head []string
	for _, c := range table.ColumnDefinitions {
		head = append(head, c.Name)
	}
	out := []string{strings.Join(head, "|")}
	for _, row := range table.Rows {
		var cells []string
		for _, c := range row.Cells[:len(row.Cells)-1] {
			cells = append(cells, fmt.Sprint(c))
		}
		out = append(out, strings.Join(cells, "|"))
	}
	return out
}
