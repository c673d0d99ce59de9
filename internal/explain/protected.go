package explain

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/quantity"
)

// protectionText returns why the workloads were protected, as a clause that follows "3
// workloads". If they are protected for a time, it names the time, or the general text of the
// reason if the times differ.
func (ph Phrases) protectionText(s *cluster.State, p engine.Purpose, reason engine.Reason, jobs []string) string {
	doc := ph[reason]
	if doc.Protects == "" {
		return "(" + splitWords(string(reason)) + ")"
	}
	if doc.Span == nil {
		return doc.Protects
	}
	span := int64(0)
	for i, id := range jobs {
		least := int64(0)
		if j := s.Job(id); j != nil {
			least = doc.Span(s.View(), j, p)
		}
		if i > 0 && least != span {
			return strings.Replace(doc.Protects, "{time}", doc.Spans, 1)
		}
		span = least
	}
	return strings.Replace(doc.Protects, "{time}", quantity.Span(span), 1)
}

// protectedText returns how many workloads were protected, and why: "8 workloads in queues that
// would hold less than their fair share (job/a, job/b and 6 more), 4 of a stronger tier (…)".
func (ph Phrases) protectedText(s *cluster.State, p engine.Purpose, all []engine.Protection) string {
	var out []string
	for i, x := range all {
		names := naturalNames(x.Jobs)[:min(len(x.Jobs), 2)]
		list := strings.Join(names, " and ")
		if more := x.Count - len(names); more > 0 {
			list = strings.Join(names, ", ") + fmt.Sprintf(" and %d more", more)
		}
		many := strconv.Itoa(x.Count)
		if i == 0 {
			many = english.Count(x.Count, "workload")
		}
		out = append(out, fmt.Sprintf("%s %s (%s)", many, ph.protectionText(s, p, x.Reason, x.Jobs), list))
	}
	return strings.Join(out, ", ")
}
