package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// RequestText returns one sentence that says what the job requests: its chosen alternative, or
// all of them if none is chosen yet.
func RequestText(j *cluster.Job) string {
	var forms []string
	alternatives := j.Alternatives
	if j.Chosen >= 0 {
		alternatives = alternatives[j.Chosen : j.Chosen+1]
	} else if runs := slices.IndexFunc(alternatives, func(a cluster.Alternative) bool { return a.Running }); runs > 0 {
		alternatives = alternatives[:runs] // the last alternative is what ran before, and is not requested
	}
	for i := range alternatives {
		// Alternatives that differ only in where they may run have the same text, which is
		// written once.
		if f := formText(&alternatives[i]); len(forms) == 0 || forms[len(forms)-1] != f {
			forms = append(forms, f)
		}
	}
	text := capitalized(j.ID) + " requests " + forms[0]
	others := formNames(alternatives[1:])
	switch {
	case len(forms) == 1:
	case alternatives[0].Tasks[0].Shape.ServesModel() && others != "":
		text += ", or else " + others
	case len(forms) == 2:
		text += ", or else " + forms[1]
	default:
		text += fmt.Sprintf(", or else one of %d other forms", len(forms)-1)
	}
	return text + "."
}

// formNames returns the names of the alternatives, joined with "or". It returns "" if one of
// them has no name.
func formNames(forms []cluster.Alternative) string {
	const most = 4
	var out []string
	for i := range forms {
		if forms[i].Name == "" {
			return ""
		}
		out = append(out, forms[i].Name)
	}
	if more := len(out) - most; more > 0 {
		return strings.Join(out[:most], ", ") + fmt.Sprintf(" or one of %d other forms", more)
	}
	if n := len(out); n > 1 {
		return strings.Join(out[:n-1], ", ") + " or " + out[n-1]
	}
	return strings.Join(out, "")
}

// capitalized returns s, which must not be empty, with a capital first letter.
func capitalized(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// formText describes one alternative of a job, role by role.
func formText(alt *cluster.Alternative) string {
	if w := alt.Whole; w != nil {
		text := "whole nodes of one group for " + english.Count(w.Replicas, "replica")
		switch {
		case w.Only != nil: // the alternative is for one node group, and the job is one replica of a set
			text = english.Count(w.NodesPerReplica, "whole node") + " of " + w.Only.String()
		case w.NodesPerReplica > 1:
			text += fmt.Sprintf(", %d nodes each", w.NodesPerReplica)
		}
		if w.Memory > 0 {
			text += ", " + quantity.Memory(w.Memory) + " of device memory"
		}
		if w.Memory > 0 && w.Only == nil {
			text += " each"
		}
		return text + conditionsText(alt.Tasks[0].Shape) + topologyText(&alt.Topology)
	}
	var parts []string
	same := !slices.ContainsFunc(alt.Tasks, func(t *cluster.Task) bool {
		return t.Shape != alt.Tasks[0].Shape && conditionsText(t.Shape) != conditionsText(alt.Tasks[0].Shape)
	})
	for i := 0; i < len(alt.Tasks); {
		n := i
		for n < len(alt.Tasks) && alt.Tasks[n].Shape == alt.Tasks[i].Shape && alt.Tasks[n].Role == alt.Tasks[i].Role {
			n++
		}
		s := alt.Tasks[i].Shape
		text := needText(s)
		if n-i > 1 {
			text = fmt.Sprintf("%d × %s", n-i, text)
		}
		if role := alt.Tasks[i].Role; role != "" && n-i < len(alt.Tasks) {
			if !same {
				role += conditionsText(s)
			}
			text += " (" + role + ")"
		}
		parts = append(parts, text)
		i = n
	}
	text := listInOrder(parts, 4)
	if same {
		text += conditionsText(alt.Tasks[0].Shape)
	}
	if alt.Min < len(alt.Tasks) {
		text += fmt.Sprintf(", at least %d of them", alt.Min)
	}
	return text + topologyText(&alt.Topology) + subgroupsText(alt)
}

// PodSlots is the resource of which every pod requests one. Texts leave it out.
const PodSlots = "pods"

// needText returns what one task requests of its node: "2 devices with 40 GiB each and 4 cores".
func needText(s *cluster.Shape) string {
	var parts []string
	n := &s.Need
	switch {
	case n.Layers != nil && n.Devices == 1 && !n.Layers.Spill: // the model is not divided
		parts = append(parts, "a device with "+quantity.Memory(n.Layers.Fixed+n.Layers.All()))
	case n.Layers != nil:
		parts = append(parts, layersText(n))
	case n.WholeNode:
		parts = append(parts, "a whole node")
	case n.Devices > 0:
		what := "device"
		if n.Partition != "" {
			what = n.Partition + " slice"
		} else if len(n.Products) == 1 {
			what = n.Products[0] + " device"
		}
		text := english.Count(n.Devices, what)
		each := ""
		if n.Devices > 1 {
			each = " each"
		}
		switch {
		case n.Share > 0 && n.Devices == 1:
			text = quantity.Fraction(int64(n.Share)) + " of a " + what
			if n.SumAtLeast > 0 {
				text += " (at least " + quantity.Memory(n.SumAtLeast) + ")"
			}
		case n.Share > 0:
			text = fmt.Sprintf("%s of each of %s", quantity.Fraction(int64(n.Share)), text)
			if n.SumAtLeast > 0 {
				text += " (together at least " + quantity.Memory(n.SumAtLeast) + ")"
			}
		case n.Memory > 0:
			text += " with " + quantity.Memory(n.Memory) + each
		case n.SumAtLeast > 0 && n.Devices == 1:
			text += " (at least " + quantity.Memory(n.SumAtLeast) + ")"
		case n.SumAtLeast > 0:
			text += " (together at least " + quantity.Memory(n.SumAtLeast) + ")"
		}
		parts = append(parts, text)
	}
	if s.Isolation.Exclusive() && len(parts) > 0 {
		parts[len(parts)-1] += ", exclusively,"
	}
	for _, r := range s.Resources {
		if r.Value > 0 && r.Name != PodSlots {
			parts = append(parts, quantity.Resource(r.Name, r.Value))
		}
	}
	if len(parts) == 0 {
		return "a place"
	}
	return strings.TrimSuffix(strings.ReplaceAll(listInOrder(parts, 8), ",,", ","), ",")
}

// layersText returns what divisible work requests: "2 devices for 10 layers of 4 GiB", or
// "devices for 81 layers of 40 GiB together" if the layers differ in size.
func layersText(n *cluster.Need) string {
	devices := "devices"
	if n.Devices > 0 {
		devices = english.Count(n.Devices, "device")
	}
	if len(n.Layers.Sizes) == 0 {
		return fmt.Sprintf("%s for %s of %s", devices, english.Count(n.Layers.Total, "layer"), quantity.Memory(n.Layers.Bytes))
	}
	return fmt.Sprintf("%s for %s of %s together", devices, english.Count(n.Layers.Total, "layer"), quantity.Memory(n.Layers.All()))
}

// conditionsText returns on which nodes and devices the task may run, beginning with a comma;
// "" if it may run on any.
func conditionsText(s *cluster.Shape) string {
	text := ""
	labels := wire.Map(s.Selector, func(l cluster.Label) string { return l.Key + "=" + l.Value })
	labels = append(labels, wire.Map(s.Required, TermText)...)
	if len(labels) > 0 {
		text += ", on nodes with " + List(labels, 3)
	}
	if len(s.Need.Products) > 1 {
		text += ", of " + strings.Join(s.Need.Products, " or ")
	}
	if s.Need.SameLink && s.Need.Devices > 1 {
		text += ", in one NVLink domain"
	}
	if s.Cell != "" {
		text += ", in cell " + s.Cell
	}
	if s.Isolation.CPU != "" && s.Isolation.CPU != cluster.CPUBestEffort {
		text += ", with CPU isolation " + string(s.Isolation.CPU)
	}
	return text
}

// TermText returns the conditions of the term: "rack=r1 and zone In a,b".
func TermText(t cluster.Term) string {
	var out []string
	for _, r := range t {
		s := r.Key + " " + string(r.Operator)
		if len(r.Values) > 0 {
			s += " " + strings.Join(r.Values, ",")
		}
		if r.Operator == cluster.In && len(r.Values) == 1 {
			s = r.Key + "=" + r.Values[0]
		}
		out = append(out, s)
	}
	return strings.Join(out, " and ")
}
