package workload

import (
	"fmt"
	"regexp"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/field"
	"github.com/berth-project/berth/internal/launch"
	"github.com/berth-project/berth/internal/model"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// maxName is the most characters of a model: its name is a label and the name of a Service.
	maxName = validation.DNS1035LabelMaxLength
	// maxNodesName is the most characters of a model whose replicas may be divided over nodes. The
	// pods of the LeaderWorkerSet NAME-r9999 have a label with the name of their StatefulSet, which is
	// NAME-r9999-0, a hyphen and a hash of at most 10 characters.
	maxNodesName = maxName - len("-r9999") - len("-0") - len("-") - 10
)

// serviceOfReplica matches the names of the Services of replicas on several nodes.
var serviceOfReplica = regexp.MustCompile(`-r[0-9]+-0$`)

// CheckName returns an error if objects of the model cannot be named after it. It is a
// *launch.Problem.
func CheckName(m *v1alpha1.Model, s *model.Spec) error {
	most, why := maxName, "a Service and a label have its name"
	if s.Place.Distributed || s.Place.WholeNodes {
		most, why = maxNodesName, "its replicas may be on several nodes, and labels of their pods contain the name; write a shorter one"
		if !s.Place.WholeNodes {
			why += ", or set placement.distributed to false"
		}
	}
	message := ""
	switch name := m.Name; {
	case len(name) > most:
		message = fmt.Sprintf("the name has %d characters; %d are the most, because %s", len(name), most, why)
	case len(validation.IsDNS1035Label(name)) > 0:
		message = fmt.Sprintf("%s cannot be the name of a Service: use lower-case letters, digits and -, begin with a letter, and end with a letter or digit", name)
	case serviceOfReplica.MatchString(name):
		message = fmt.Sprintf("%s may be the name of the Service of a replica of another model; do not end a name with -r, a number and -0", name)
	default:
		return nil
	}
	return &launch.Problem{Path: field.Path{"metadata", "name"}, Message: message}
}
