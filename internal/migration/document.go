package migration

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/manifest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// typeMeta returns the version of Berth and the kind.
func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: kind}
}

// check sets the problem of a document that Berth refuses on its own, without other objects.
func (d *Document) check() {
	if d.Problem != "" {
		return
	}
	text, err := d.yaml()
	var b *manifest.Bundle
	if err == nil {
		b, err = manifest.Parse("output.yaml", text)
	}
	if err == nil && !b.Empty() { // a bundle with a namespace alone has nothing to schedule
		_, err = b.State()
	}
	d.Problem = problem(err)
}

// problem returns the first error without its place, which is one in the output.
func problem(err error) string {
	var list manifest.Errors
	switch {
	case err == nil:
		return ""
	case errors.As(err, &list) && len(list) > 0 && list[0].Path != "":
		return list[0].Path + ": " + list[0].Message
	case len(list) > 0:
		return list[0].Message
	}
	return err.Error()
}

func (d *Document) yaml() ([]byte, error) {
	var w bytes.Buffer
	err := manifest.WriteObjects(&w, []any{d.Object})
	return w.Bytes(), err
}

// Write writes the documents as one YAML file. Those with a problem are comments.
func (r *Result) Write(w io.Writer) error {
	for i, d := range r.Documents {
		text, err := d.yaml()
		if err != nil {
			return err
		}
		if d.Problem != "" {
			text = comment(d.Problem, text)
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// comment returns the text as a comment that begins with the problem.
func comment(problem string, text []byte) []byte {
	var w bytes.Buffer
	w.WriteString("# Complete this object and remove the comment marks: " + strings.Join(strings.Fields(problem), " ") + "\n")
	for line := range bytes.Lines(text) {
		w.WriteString("# ")
		w.Write(line)
	}
	return w.Bytes()
}
