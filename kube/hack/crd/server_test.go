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

// server is an API server on which the definitions are installed. It is used for objects of one
// kind.
type server struct {
	dynamic.ResourceInterface
	config *rest.Config
	path   string // of the objects
	client dynamic.Interface
}

// startServer starts an API server and installs the definitions. The result is for queues.
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
	return server{client.Resource(crdtest.Resource), config, "queues", client}
}

// models returns the server for models of the namespace default.
func (s server) models() server {
	return server{s.client.Resource(crdtest.Models).Namespace(metav1.NamespaceDefault), s.config, "namespaces/default/models", s.client}
}

// create creates the object as kubectl does, which reports unknown fields.
func (s server) create(ctx context.Context, u *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	return s.Create(ctx, u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun})
}

// documents returns the documents with an object of a kind in the files below a directory, by
// file.
func documents(t *testing.T, dir, of string) map[string][]string {
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
			if yaml.Unmarshal(text, &kind) == nil && kind.APIVersion == v1alpha1.APIVersion && kind.Kind == of {
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
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.config.Host+"/apis/"+v1alpha1.APIVersion+"/"+s.path, nil)
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
